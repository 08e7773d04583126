"""A server that speaks as much of the Hugging Face hub's API as a download needs, on this machine.

Repositories have commits, the last one is main. ``cut`` ends the connection in the middle of a file, once.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Commits = list[tuple[str, dict[str, bytes]]]


@dataclass
class Hub:
    """What is on it, and what was asked of it."""

    repositories: dict[str, Commits] = field(default_factory=dict)
    plain: dict[str, bytes] = field(default_factory=dict)
    leads: dict[str, str] = field(default_factory=dict)
    """Where plain files have moved to."""
    gated: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """(method, path, Range) of every request."""
    address: str = ""

    def commit(self, repository: str, files: dict[str, bytes]) -> str:
        """Add a commit; its hash."""
        commits = self.repositories.setdefault(repository, [])
        sha = hashlib.sha1(f"{repository}{len(commits)}".encode()).hexdigest()
        commits.append((sha, files))
        return sha

    def find(self, repository: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        commits = self.repositories[repository]
        if revision == "main":
            return commits[-1]
        return next((c for c in commits if c[0].startswith(revision)), None)

    def fetched(self) -> list[str]:
        """The files that were given, in order."""
        return [path for method, path, _ in self.asked if method == "GET" and not path.startswith("/api/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, self.headers.get("Range", "")))
        words = path.strip("/").split("/")
        if words[:2] == ["api", "models"] and words[4:5] == ["tree"]:
            return self._tree("/".join(words[2:4]), words[5])
        if words[:2] == ["api", "models"]:
            return self._info("/".join(words[2:4]), words[5] if words[4:5] == ["revision"] else "main")
        if words[2:3] == ["resolve"]:  # a model's file
            return self._file("/".join(words[:2]), words[3], "/".join(words[4:]), body)
        if words[:2] == ["api", "datasets"]:
            return self._info("/".join(words[2:4]), words[5] if words[4:5] == ["revision"] else "main")
        if words[:1] == ["datasets"] and words[3:4] == ["resolve"]:
            return self._file("/".join(words[1:3]), words[4], "/".join(words[5:]), body)
        if words[-1] in self.hub.leads:
            self.send_response(302)
            self.send_header("Location", self.hub.leads[words[-1]])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        data = self.hub.plain.get(words[-1])
        if data is None:
            return self._refuse(404, "EntryNotFound")
        half = len(data) // 2 if words[-1] in self.hub.cut else None
        self.hub.cut.discard(words[-1])
        self._send(data, {}, body, upto=half)

    def _known(self, repository: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        if repository in self.hub.gated:
            self._refuse(403, "GatedRepo")
        elif repository not in self.hub.repositories:
            self._refuse(404, "RepoNotFound")
        elif (found := self.hub.find(repository, revision)) is None:
            self._refuse(404, "RevisionNotFound")
        else:
            return found
        return None

    def _info(self, repository: str, revision: str) -> None:
        found = self._known(repository, revision)
        if found is not None:
            files = [{"rfilename": name, "size": len(data)} for name, data in found[1].items()]
            value = {"id": repository, "sha": found[0], "siblings": files, "cardData": {"license": "cc-by-4.0"}}
            self._send(json.dumps({**value, "private": False, "gated": False, "tags": []}).encode(), {}, True)

    def _tree(self, repository: str, revision: str) -> None:
        found = self._known(repository, revision)
        if found is not None:
            about = [(name, len(data), hashlib.sha1(data).hexdigest()) for name, data in found[1].items()]
            files = [{"type": "file", "path": name, "size": size, "oid": oid} for name, size, oid in about]
            self._send(json.dumps(files).encode(), {}, True)

    def _file(self, repository: str, revision: str, path: str, body: bool) -> None:
        found = self._known(repository, revision)
        if found is None:
            return
        data = found[1].get(path)
        if data is None:
            return self._refuse(404, "EntryNotFound")
        headers = {"X-Repo-Commit": found[0], "ETag": f'"{hashlib.sha1(data).hexdigest()}"', "Accept-Ranges": "bytes"}
        if body and path in self.hub.cut:
            self.hub.cut.discard(path)
            self._send(data, headers, True, upto=len(data) // 2)
            return
        self._send(data, headers, body)

    def _send(self, data: bytes, headers: dict[str, str], body: bool, upto: int | None = None) -> None:
        first = 0
        asked = self.headers.get("Range", "")
        if asked.startswith("bytes=") and asked[6:].split("-")[0].isdigit():
            first = int(asked[6:].split("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        if body:
            self.wfile.write(data[first:upto])
        if upto is not None:
            self.close_connection = True

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", code)
        self.send_header("Content-Length", "0")
        self.end_headers()


class Server:
    """``with Server(hub):`` serves it; ``hub.address`` is where."""

    handler: type[BaseHTTPRequestHandler] = _Handler

    def __init__(self, hub: Any) -> None:
        handler = type("Handler", (self.handler,), {"hub": hub})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        hub.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
