"""A small OpenID Connect provider on this machine: discovery, authorisation code with PKCE, RS256 tokens, sign-out.

It speaks HTTP as a real one does, so that the server's sign-in runs through its own library. One person has an
account; the page at ``/authorize`` is where that person signs in.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "studio", "only for this test"


def new_key() -> RSAKey:
    """A key to sign with; all have one name, so that only the signature tells them apart."""
    return RSAKey.generate_key(2048, {"kid": "test", "use": "sig", "alg": "RS256"})


@dataclass
class Provider:
    """Who may sign in, what was handed out, and what was asked."""

    url: str
    email: str
    published_key: RSAKey
    signing_key: RSAKey
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def configuration(self) -> dict[str, Any]:
        """The discovery document."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "end_session_endpoint": f"{self.url}/logout",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def token(self, form: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """The tokens for a code that was handed out to this client; None for any other request."""
        client = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        query = self.codes.pop(form.get("code", ""), None)
        if query is None or authorization != f"Basic {client}" or form.get("redirect_uri") != query["redirect_uri"]:
            return None
        if "code_challenge" in query and query["code_challenge"] != _challenge(form.get("code_verifier", "")):
            return None
        clock = int(time.time())
        claims = {
            "iss": self.url, "aud": CLIENT_ID, "sub": "1", "iat": clock, "exp": clock + 600, "nonce": query["nonce"],
            "email": self.email, "email_verified": True, "name": "Ada",
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "test"}, claims, self.signing_key)
        return {"access_token": "opaque", "token_type": "Bearer", "expires_in": 600, "id_token": signed}


def _challenge(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@contextmanager
def provider(email: str) -> Iterator[Provider]:
    """The provider at work on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            there.asked.append(address.path)
            if address.path == "/.well-known/openid-configuration":
                self._json(there.configuration())
            elif address.path == "/jwks":
                self._json({"keys": [there.published_key.as_dict(private=False)]})
            elif address.path == "/authorize":
                code = secrets.token_urlsafe(16)
                there.codes[code] = query
                back = urlencode({"code": code, "state": query["state"]})
                self._send(
                    200, "text/html", f'<a href="{query["redirect_uri"]}?{back}">Continue as {there.email}</a>'.encode()
                )
            elif address.path == "/logout":
                self.send_response(302)
                self.send_header("Location", query["post_logout_redirect_uri"])
                self.end_headers()
            else:
                self._send(404, "text/plain", b"")

        def do_POST(self) -> None:
            there.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            tokens = there.token(form, self.headers.get("Authorization", ""))
            self._json(tokens or {"error": "invalid_grant"}, 200 if tokens else 400)

        def _json(self, value: dict[str, Any], status: int = 200) -> None:
            self._send(status, "application/json", json.dumps(value).encode())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    key = new_key()
    there = Provider(f"http://127.0.0.1:{server.server_port}", email, key, key)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield there
    server.shutdown()
    server.server_close()
    thread.join()
