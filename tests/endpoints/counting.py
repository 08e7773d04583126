"""A server between this program and another one, that passes everything on and counts what was asked and answered."""

from __future__ import annotations

import hashlib
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PASSED_ON = ("Authorization", "Content-Type", "Accept")
LONGEST_S = 300.0

# Within this time of its delivery an answer may not have been stored, on a machine that is busy.
JUST_S = 0.5


class Counting:
    """``asked`` counts each unit that came in, ``paid`` those that the server answered with 200, by their hash.

    A unit is a chat request's body, or one text of a request for embeddings: no text may be paid twice, in whichever
    batch it comes. ``statuses`` counts the server's answers. ``lost`` are the units whose answers a killed client may
    not have kept.
    """

    def __init__(self, url: str, latency_s: float) -> None:
        self._target = urlsplit(url)
        self._lock = threading.Lock()
        self.latency_s = latency_s
        self.forget()
        counting = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                counting._pass(self)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        class Between(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_: object) -> None:
                """Quiet: clients that are killed leave in the middle."""

        self._server = Between(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{self._target.path}"

    def forget(self) -> None:
        """Count from here."""
        with self._lock:
            self.asked, self.paid, self.statuses = Counter[str](), Counter[str](), Counter[int]()
            self.lost = set[str]()
            self._on_their_way = Counter[str]()
            self._delivered = dict[str, float]()
            self._client_dead = False

    def client_killed(self) -> None:
        """Note what was on its way to a client that has just been killed, or had only just come to it.

        What it had sent and is read only now counts too, until ``settle``.
        """
        with self._lock:
            self._client_dead = True
            since = time.monotonic() - JUST_S
            self.lost.update(+self._on_their_way, (unit for unit, at in self._delivered.items() if at > since))

    def settle(self) -> None:
        """Wait until all that a killed client had sent is answered; what comes now is the next one's."""
        busy_at = time.monotonic()
        while time.monotonic() <= busy_at + JUST_S:
            with self._lock:
                busy_at = time.monotonic() if +self._on_their_way else busy_at
            time.sleep(0.02)
        self._client_dead = False

    @property
    def answered(self) -> int:
        """Requests that were answered with 200."""
        with self._lock:
            return self.statuses[200]

    @property
    def twice(self) -> int:
        """How often a unit was paid again whose answer had come to the client."""
        with self._lock:
            return sum(times - 1 for unit, times in self.paid.items() if unit not in self.lost)

    def _pass(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"] or 0))
        units = _units(body)
        with self._lock:
            self.asked.update(units)
            self._on_their_way.update(units)
            self.lost.update(units if self._client_dead else ())
        try:
            self._answer(handler, body, units)
        finally:
            with self._lock:
                self._on_their_way.subtract(units)
                self._delivered.update(dict.fromkeys(units, time.monotonic()))

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes, units: list[str]) -> None:
        time.sleep(self.latency_s)
        headers = {name: value for name in PASSED_ON if (value := handler.headers[name])}
        connection = http.client.HTTPConnection(self._target.hostname or "", self._target.port, timeout=LONGEST_S)
        try:
            connection.request(handler.command, handler.path, body, headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):  # as the server did: no answer
            handler.close_connection = True
            return
        finally:
            connection.close()
        with self._lock:
            self.statuses[response.status] += 1
            if response.status == 200:
                self.paid.update(units)
        with suppress(BrokenPipeError, ConnectionResetError):
            handler.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() in ("content-type", "retry-after"):
                    handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _units(body: bytes) -> list[str]:
    try:
        texts = json.loads(body).get("input")
    except (ValueError, AttributeError):
        texts = None
    parts = [text.encode() for text in texts] if isinstance(texts, list) else [body]
    return [hashlib.sha256(part).hexdigest() for part in parts]


@contextmanager
def counting(url: str, *, latency_s: float = 0.0) -> Iterator[Counting]:
    """A counting server before the one at ``url``."""
    between = Counting(url, latency_s)
    between.start()
    try:
        yield between
    finally:
        between.stop()
