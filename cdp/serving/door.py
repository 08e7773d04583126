"""Who comes in: rate, host, origin and token are checked before anything is read. What went on is counted and logged.

On loopback nobody needs a token, so a page in a browser must not be able to ask through it: by its own address (it
sends an ``Origin``, or a ``Sec-Fetch-Site``), or by a name that its owner points to 127.0.0.1 (the ``Host`` is not this
machine's). Nothing is ever answered with CORS headers.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import secrets
import sys
import time
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cdp.base.config import ServingConfig
from cdp.serving.errors import SERVER, ApiError, busy
from cdp.serving.metrics import Metrics
from cdp.serving.rate import RateLimit

ROUTES = ("/healthz", "/readyz", "/metrics", "/v1/models", "/v1/embeddings", "/v1/search")
"""What metrics and log call a route; any other path is ``other``."""

OPEN = ("/healthz", "/readyz")
"""Asked by whoever looks after the process, by address and without a token. They say nothing but a word."""

ELSEWHERE_RATE = 50.0
"""Requests per second and client where others reach the server: beyond loopback, or through a proxy."""

GONE = 499
"""The status in log and metrics of a request whose client left before it was answered."""

BROWSER = "Requests of web pages are not answered: this server is for programs."


@dataclass
class Facts:
    """What the log says of a request; handlers add to it."""

    id: str
    route: str
    began: float
    status: int = GONE
    code: str = ""
    inputs: int = 0
    tokens: int = 0
    texts: list[str] = field(default_factory=list)


def loopback(host: str) -> bool:
    """Whether a name or address is this machine's alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


ALWAYS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Headers of every answer."""


class Door:
    """The outermost ASGI application. ``token`` is empty where none is needed."""

    def __init__(self, app: ASGIApp, config: ServingConfig, token: str, metrics: Metrics) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self.digest = _digest(token) if token else b""
        self.local = loopback(config.host)
        self.hosts = {name.strip().lower() for name in config.allowed_hosts.split(",") if name.strip()}
        alone = self.local and not config.proxy
        self.rate = RateLimit(config.rate if config.rate is not None else 0.0 if alone else ELSEWHERE_RATE)
        self.open = 0
        self.start, self.number = secrets.token_hex(4), itertools.count(1)  # an id is unique, and costs no system call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        route = "/v1/models" if path.startswith("/v1/models/") else path if path in ROUTES else "other"
        facts = scope["facts"] = Facts(f"{self.start}-{next(self.number):x}", route, time.perf_counter())
        self.open += 1
        self.metrics.open.inc()
        try:
            await self._answer(scope, receive, self._with_headers(send, facts), facts)
        finally:
            self.open -= 1
            self.metrics.open.dec()
            self._tell(scope, facts)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, facts: Facts) -> None:
        scope["app"] = self  # so that the router raises what it refuses, and does not answer it in its own form
        try:
            self.check(Headers(scope=scope), _client(scope), facts.route)
            await self.app(scope, receive, send)
        except ClientDisconnect:
            pass
        except Exception as error:
            if not isinstance(error, ApiError):
                # Where it was, and not its message: that may hold what somebody asked.
                frames = "".join(traceback.format_tb(error.__traceback__))
                print(f"{type(error).__name__} in request {facts.id}\n{frames}", file=sys.stderr, flush=True)
                error = ApiError(500, "internal_error", f"The server failed. Request {facts.id}.", kind=SERVER)
            if facts.status != GONE:  # the answer has begun: all that is left is to end the connection
                raise
            facts.code = error.code
            await error.response()(scope, receive, send)

    def check(self, headers: Headers, client: str, route: str) -> None:
        """ApiError for whoever may not come in."""
        if route in OPEN:
            return
        if wait := self.rate.take(client):
            raise busy("rate_limit_exceeded", f"At most {self.rate.rate:g} requests per second are answered.", wait)
        host = headers.get("host", "")
        name = _name(host)
        known = name in self.hosts or (self.local and (loopback(name) or not host))
        if (self.local or self.hosts) and not known:
            raise ApiError(403, "host_not_allowed", "This server is not called by that name: see allowed_hosts.")
        origin = headers.get("origin")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise ApiError(403, "origin_not_allowed", BROWSER)
        if origin is not None and urlsplit(origin).netloc != host:
            raise ApiError(403, "origin_not_allowed", BROWSER)
        if self.digest and not hmac.compare_digest(_digest(_bearer(headers)), self.digest):
            raise ApiError(
                401,
                "invalid_api_key",
                "The token is missing or wrong. Send it as: Authorization: Bearer TOKEN.",
                headers={"www-authenticate": "Bearer"},
            )

    def _with_headers(self, send: Send, facts: Facts) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", facts.id.encode()), *ALWAYS]
            await send(message)

        return sent

    def _tell(self, scope: Scope, facts: Facts) -> None:
        seconds = time.perf_counter() - facts.began
        self.metrics.requests.labels(facts.route, str(facts.status)).inc()
        self.metrics.seconds.labels(facts.route).observe(seconds)
        if facts.code:
            self.metrics.refused.labels(facts.code).inc()
        if self.config.access_log and not (facts.route in (*OPEN, "/metrics") and facts.status == 200):
            print(log_line(scope, facts, seconds, texts=self.config.log_texts), file=sys.stderr, flush=True)


def log_line(scope: Scope, facts: Facts, seconds: float, *, texts: bool) -> str:
    """One line: never the address's query, which holds what is searched for; no bytes that move a terminal's cursor."""
    values = {
        "inputs": facts.inputs or "",
        "tokens": facts.tokens or "",
        "code": facts.code,
        "id": facts.id,
        "texts": json.dumps([text[:200] for text in facts.texts[:10]]) if texts and facts.texts else "",
    }
    path = scope["path"][:100].encode("unicode_escape").decode("ascii").replace(" ", "\\x20")
    named = "".join(f" {name}={value}" for name, value in values.items() if value)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{now} {_client(scope)} {scope['method']} {path} {facts.status} {1000 * seconds:.1f}ms{named}"


def _client(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "-"


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _digest(token: str) -> bytes:
    """Of equal length for every token, so that a comparison tells nothing of the right one."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
