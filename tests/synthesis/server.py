"""A local HTTP server that speaks the OpenAI chat protocol, with faults on demand. It counts what it was asked."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-0123456789abcdef-secret"
MODEL = "test-model"
FAULTS = ("429", "500", "timeout", "malformed")


def numbered(prompt: str, m: int) -> str:
    """A well-formed answer that continues the opened list and depends on the prompt."""
    word = document_of(prompt).split()[0]
    return "\n".join(f"{'' if i == 1 else f'{i}. '}What is fact {i} about {word}?" for i in range(1, m + 1))


def document_of(prompt: str) -> str:
    """What stands between the document marks of a prompt."""
    return prompt.rpartition("<document>\n")[2].partition("\n</document>")[0]


def asked_for(prompt: str) -> int:
    match = re.search(r"Write exactly (\d+)", prompt)
    return int(match[1]) if match else 1


class ChatServer:
    """``script`` holds the faults of the next requests, in order; after it, ``rates`` gives each fault's probability.

    ``answer`` makes the content of a good answer from prompt and M. ``asked`` and ``answered`` count by document,
    ``bodies`` and ``headers`` hold what came in.
    """

    def __init__(self, *, latency: float = 0.0, rates: dict[str, float] | None = None, seed: int = 0) -> None:
        self.latency = latency
        self.rates = rates or {}
        self.script: list[str] = []
        self.answer: Callable[[str, int], str] = numbered
        self.retry_after = "0.05"
        self.hang = 3.0
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.most_at_once = self._at_once = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                chat.handle(self, body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def handle(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        prompt = body["messages"][0]["content"]
        name = document_of(prompt)[:60]
        with self._lock:
            self.bodies.append(body)
            self.times.append(time.monotonic())
            self.asked[name] += 1
            fault = self._fault()
            self.faults[fault] += bool(fault)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self.latency)
        with self._lock:
            self._at_once -= 1
        if handler.headers["Authorization"] != f"Bearer {KEY}":
            sent = handler.headers["Authorization"].removeprefix("Bearer ")
            return self._error(handler, 401, f"Incorrect API key provided: {sent}.", "invalid_api_key")
        if body["model"] != MODEL:
            return self._error(handler, 404, f"The model {body['model']!r} does not exist", "model_not_found")
        if fault == "429":
            return self._error(handler, 429, "Rate limit reached", "rate_limit", {"Retry-After": self.retry_after})
        if fault == "quota":
            return self._error(handler, 429, "You exceeded your current quota", "insufficient_quota")
        if fault == "500":
            return self._error(handler, 500, "The server had an error", "server_error")
        if fault == "400":
            return self._error(handler, 400, "This prompt was refused by the content filter", "content_filter")
        if fault == "timeout":
            time.sleep(self.hang)
            handler.close_connection = True
            return None
        if "max_tokens" in body and "max_tokens" in fault:
            message = "Unsupported parameter: 'max_tokens' is not supported with this model."
            return self._error(handler, 400, message, "unsupported_parameter", param="max_tokens")
        if fault == "no schema":
            return self._error(handler, 400, "'response_format' of type 'json_schema' is not supported", "invalid")
        if fault in ("html", "broken"):
            kind = "text/html" if fault == "html" else "application/json"
            return self._bytes(handler, 200, b"<html>{Welcome", {"Content-Type": kind})
        m = asked_for(prompt)
        content = "I would rather talk about something else." if fault == "malformed" else self.answer(prompt, m)
        with self._lock:
            self.answered[name] += 1
        return self._send(
            handler,
            200,
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
                ],
                "usage": {
                    "prompt_tokens": len(prompt) // 4,
                    "completion_tokens": len(content) // 4,
                    "total_tokens": (len(prompt) + len(content)) // 4,
                },
            },
        )

    def _fault(self) -> str:
        if self.script:
            return self.script.pop(0)
        draw = self._random.random()
        for fault, rate in self.rates.items():
            if draw < rate:
                return fault
            draw -= rate
        return ""

    def _error(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        message: str,
        code: str,
        headers: dict[str, str] | None = None,
        param: str | None = None,
    ) -> None:
        error = {"message": message, "type": "error", "code": code, "param": param}
        self._send(handler, status, {"error": error}, headers or {})

    def _send(
        self, handler: BaseHTTPRequestHandler, status: int, value: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        self._bytes(
            handler, status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})}
        )

    def _bytes(self, handler: BaseHTTPRequestHandler, status: int, data: bytes, headers: dict[str, str]) -> None:
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(data)))
            for name, content in headers.items():
                handler.send_header(name, content)
            handler.end_headers()
            handler.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def chat_server(**options: Any) -> Iterator[ChatServer]:
    server = ChatServer(**options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
