"""A local HTTP server that speaks the OpenAI protocol (chat, embeddings), with faults on demand. It counts what it was
asked.

``MALFORMED``, ``ODD`` and ``LOST`` are the table of what goes wrong with an answer: bodies that come with status 200
and cannot be used, those that can although they look strange, and answers that never come whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.endpoint_situations import SITUATIONS

KEY = "sk-test-0123456789abcdef-secret"
MODEL = "test-model"
FAULTS = ("429", "500", "timeout", "malformed")


def completion(**changes: Any) -> dict[str, Any]:
    """A good answer's body with some of its fields replaced; ``message`` stands for that of its only choice."""
    message = changes.pop("message", {"role": "assistant", "content": "What is it?"})
    finish_reason = changes.pop("finish_reason", "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        **changes,
    }


def _bytes_of(**changes: Any) -> bytes:
    return json.dumps(completion(**changes)).encode()


def _content(text: Any) -> bytes:
    return _bytes_of(message={"role": "assistant", "content": text})


def _long(text: bytes) -> bytes:
    """A body with much plain text, not made by json, which takes a tenth of a second for it in each process."""
    return _content("TEXT").replace(b"TEXT", text)


JSON_TYPE = {"Content-Type": "application/json"}
# Bodies that are no answer, with their headers.
MALFORMED: dict[str, tuple[bytes, dict[str, str]]] = {
    "message null": (_bytes_of(message=None), JSON_TYPE),
    "message text": (_bytes_of(message="1. What?"), JSON_TYPE),
    "choices null": (_bytes_of(choices=None), JSON_TYPE),
    "choices empty": (_bytes_of(choices=[]), JSON_TYPE),
    "choices object": (_bytes_of(choices={"0": {}}), JSON_TYPE),
    "choices text": (_bytes_of(choices="What?"), JSON_TYPE),
    "choice null": (_bytes_of(choices=[None]), JSON_TYPE),
    "content null": (_content(None), JSON_TYPE),
    "content number": (_content(7), JSON_TYPE),
    "content object": (_content({"text": "What?"}), JSON_TYPE),
    "content list of numbers": (_content([1, 2]), JSON_TYPE),
    "content of images alone": (_content([{"type": "image_url", "text": None}]), JSON_TYPE),
    "cut off before any text": (_bytes_of(message={"content": None}, finish_reason="length"), JSON_TYPE),
    "refusal": (_bytes_of(message={"content": None, "refusal": "I cannot help with that."}), JSON_TYPE),
    "refusal of another type": (_bytes_of(message={"content": None, "refusal": {"why": ["x"]}}), JSON_TYPE),
    "tool call": (_bytes_of(message={"content": None, "tool_calls": [{"id": "1"}]}), JSON_TYPE),
    "deep JSON": (b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", JSON_TYPE),
    "deep usage": (b'{"usage": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, JSON_TYPE),
    "number without end": (b'{"choices": ' + b"9" * 100_000 + b"}", JSON_TYPE),
    "invalid UTF-8": (b'{"choices": [{"message": {"content": "caf\xe9 \xff"}}]}', JSON_TYPE),
    "raw NUL": (_content("What?").replace(b"What?", b"Wh\x00t?"), JSON_TYPE),
    "a list": (b"[]", JSON_TYPE),
    "null": (b"null", JSON_TYPE),
    "nothing": (b"", JSON_TYPE),
    "half": (_content("What?")[:90], JSON_TYPE),
    "HTML with status 200": (b"<html><h1>502 Bad Gateway</h1>", {"Content-Type": "text/html"}),
    "events": (b"data: {}\n\ndata: [DONE]\n\n", {"Content-Type": "text/event-stream"}),
    "ten megabytes": (_long(b"What? " * 1_700_000), JSON_TYPE),
    "ten megabytes packed": (gzip.compress(_long(b" " * 10_000_000), 1), {**JSON_TYPE, "Content-Encoding": "gzip"}),
}

# Bodies whose description is wrong or unusual, and whose text is an answer all the same.
ODD: dict[str, tuple[bytes, dict[str, str]]] = {
    "usage null": (_bytes_of(usage=None), JSON_TYPE),
    "usage text": (_bytes_of(usage="many"), JSON_TYPE),
    "usage negative": (_bytes_of(usage={"prompt_tokens": -5, "completion_tokens": -1}), JSON_TYPE),
    "usage huge": (_bytes_of(usage={"prompt_tokens": 10**15, "completion_tokens": 10**30}), JSON_TYPE),
    "usage infinite": (_content("What?").replace(b": 100,", b": Infinity,").replace(b": 20,", b": NaN,"), JSON_TYPE),
    "usage fractions": (_bytes_of(usage={"prompt_tokens": 1.5, "completion_tokens": 0.1}), JSON_TYPE),
    "usage texts": (_bytes_of(usage={"prompt_tokens": "100", "completion_tokens": "20"}), JSON_TYPE),
    "usage truths": (_bytes_of(usage={"prompt_tokens": True, "completion_tokens": False}), JSON_TYPE),
    "finish reason null": (_bytes_of(finish_reason=None), JSON_TYPE),
    "finish reason object": (_bytes_of(finish_reason={"a": 1}), JSON_TYPE),
    "usage of 5,000 digits": (_content("What is it?").replace(b": 100,", b": 1" + b"0" * 5000 + b","), JSON_TYPE),
    "created endless": (_content("What is it?").replace(b'"created": 1', b'"created": -' + b"9" * 5000), JSON_TYPE),
    "lone surrogate": (_content("What is it?").replace(b"it?", b"it?\\ud83d"), JSON_TYPE),
    "created infinite": (_content("What is it?").replace(b'"created": 1', b'"created": 1e999'), JSON_TYPE),
    "model number": (_bytes_of(model=7), JSON_TYPE),
    "content in parts": (_content([{"type": "text", "text": "What "}, {"type": "text", "text": "is it?"}]), JSON_TYPE),
    "plain text type": (_content("What is it?"), {"Content-Type": "text/plain; charset=latin-1"}),
    "packed": (gzip.compress(_content("What is it?")), {**JSON_TYPE, "Content-Encoding": "gzip"}),
    "escaped NUL": (_content("What\x00 is it?"), JSON_TYPE),
    "half a character in a query": (_content('{"queries": ["half \\ud83d", "What is it?"]}'), JSON_TYPE),
    "deep lists in the text": (_content("[" * 50_000 + "\n1. What is it?"), JSON_TYPE),
}

# Ways of not answering after the request was taken in.
LOST = ("reset", "closed", "half headers", "short body", "trickle", "timeout")


def embedding(text: str, dim: int = 32) -> list[float]:
    """A bag of hashed words: texts that share words are near each other."""
    values = [0.0] * dim
    for word in re.findall(r"\w+", text.lower()):
        values[int(hashlib.sha256(word.encode()).hexdigest(), 16) % dim] += 1.0
    return values


# Answers to a request for embeddings that cannot be used, made of those that can.
NO_VECTORS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "one too few": lambda data: data[1:],
    "one twice": lambda data: [*data, data[0]],
    "not finite": lambda data: [{**data[0], "embedding": [float("nan")] * 32}, *data[1:]],
    "too large": lambda data: [{**data[0], "embedding": [1e300] * 32}, *data[1:]],
    "two widths": lambda data: [{**data[0], "embedding": [1.0] * 31}, *data[1:]] if len(data) > 1 else [],
    "no numbers": lambda data: [{**data[0], "embedding": ["1"] * 32}, *data[1:]],
    "nothing in it": lambda data: [{**data[0], "embedding": []}, *data[1:]],
    "no list": lambda data: {"0": data[0]},
}


# Vectors that cannot be used, of a text on which a model fails.
BAD_VECTOR: dict[str, Any] = {"NaN": [float("nan")] * 32, "null": None, "empty": [], "nulls": [None] * 32}


def numbered(prompt: str, m: int) -> str:
    """A well-formed answer that continues the opened list and depends on the prompt."""
    word = document_of(prompt).split()[0]
    return "\n".join(f"{'' if i == 1 else f'{i}. '}What is fact {i} about {word}?" for i in range(1, m + 1))


def document_of(prompt: str) -> str:
    """What stands between the document marks of a prompt; of a judge's prompt the passage with its query."""
    if "<passage>\n" in prompt:
        return f"{marked(prompt, 'passage')} {marked(prompt, 'query')}"
    return marked(prompt, "document")


def marked(prompt: str, name: str) -> str:
    """What stands between the last such marks of a prompt."""
    return prompt.rpartition(f"<{name}>\n")[2].partition(f"\n</{name}>")[0]


def asked_for(prompt: str) -> int:
    match = re.search(r"Write exactly (\d+)", prompt)
    return int(match[1]) if match else 1


class ChatServer:
    """``script`` holds the faults of the next requests, in order; after it, ``rates`` gives each fault's probability.

    ``fault_for`` gives a document (by its first word) a fault of its own, each time that it is asked about.
    ``answer`` makes the content of a good answer from prompt and M, ``embedding`` the vector of a text. ``asked`` and
    ``answered`` count by document, ``embedded`` by text,
    ``bodies`` and ``paths`` hold what came in.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        rates: dict[str, float] | None = None,
        seed: int = 0,
        port: int = 0,
    ) -> None:
        self.latency = latency
        self.models = {MODEL}
        self.rates = rates or {}
        self.script: list[str] = []
        self.habits: list[str] = []
        """Names of ``SITUATIONS`` that this server answers to each request which they are about."""
        self.per_text: dict[str, str] = {}
        """By a word of a text: how its embedding fails, a name of ``SITUATIONS`` or of ``BAD_VECTOR``."""
        self.shape: Callable[[list[dict[str, Any]]], Any] = lambda data: data[::-1]
        """What is sent in place of the embeddings in order."""
        self.answer: Callable[[str, int], str] = numbered
        self.embedding: Callable[[str], list[float]] = embedding
        self.embedded: Counter[str] = Counter()
        self.changes: dict[str, Any] = {}
        """Fields of each good answer's body that are replaced, as those of ``completion``."""
        self.logprobs: Callable[[str], list[float]] | None = None
        """The log-probabilities of an answer's tokens, told to who asks; None: this endpoint gives none."""
        self.retry_after = "0.05"
        self.hang = 3.0
        self.fault_for: dict[str, str] = {}
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.most_at_once = self._at_once = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                chat._open.add(self.connection)

            def finish(self) -> None:
                chat._open.discard(self.connection)
                super().finish()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                chat.paths.append(self.path)
                chat.handle(self, body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_: object) -> None:
                """Quiet: clients that are killed leave in the middle."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def handle(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        texts = body.get("input")
        prompt = body["messages"][0]["content"] if texts is None else " ".join(texts)
        name = document_of(prompt)[-120:]
        with self._lock:
            self.bodies.append(body)
            self.times.append(time.monotonic())
            self.asked[name] += 1
            fault = self.fault_for.get(name.split()[0]) or self._fault()
            self.faults[fault] += bool(fault)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self.latency)
        with self._lock:
            self._at_once -= 1
        if handler.headers["Authorization"] != f"Bearer {KEY}":
            sent = handler.headers["Authorization"].removeprefix("Bearer ")
            return self._error(handler, 401, f"Incorrect API key provided: {sent}.", "invalid_api_key")
        if body["model"] not in self.models:
            return self._error(handler, 404, f"The model {body['model']!r} does not exist", "model_not_found")
        own = [bad for word, bad in self.per_text.items() if texts is not None and word in prompt.split()]
        for habit in (fault, *self.habits, *own):
            if habit in SITUATIONS and (said := SITUATIONS[habit]).applies(body):
                with self._lock:
                    self.faults[habit] += habit != fault
                return self._bytes(handler, said.status, said.body, said.headers)
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
        if fault in LOST:
            return self._lose(handler, fault)
        if fault in MALFORMED or fault in ODD:
            with self._lock:
                self.answered[name] += 1
            return self._bytes(handler, 200, *(MALFORMED | ODD)[fault])
        if "max_tokens" in body and "max_tokens" in fault:
            message = "Unsupported parameter: 'max_tokens' is not supported with this model."
            return self._error(handler, 400, message, "unsupported_parameter", param="max_tokens")
        if fault == "no schema":
            return self._error(handler, 400, "'response_format' of type 'json_schema' is not supported", "invalid")
        if fault in ("html", "broken"):
            kind = "text/html" if fault == "html" else "application/json"
            return self._bytes(handler, 200, b"<html>{Welcome", {"Content-Type": kind})
        if texts is not None:
            return self._embed(handler, texts, fault)
        m = asked_for(prompt)
        content = "I would rather talk about something else." if fault == "malformed" else self.answer(prompt, m)
        with self._lock:
            self.answered[name] += 1
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(content) // 4}
        reply = {"role": "assistant", "content": content}
        told = completion(**{"message": reply, "usage": usage, **self.changes})
        if body.get("logprobs"):
            if fault == "no logprobs":
                message = "Unsupported parameter: 'logprobs' is not supported with this model."
                return self._error(handler, 400, message, "unsupported_parameter", param="logprobs")
            if self.logprobs is not None:
                tokens = [{"token": "t", "logprob": value} for value in self.logprobs(content)]
                told["choices"][0]["logprobs"] = {"content": tokens}
        return self._send(handler, 200, told)

    def _embed(self, handler: BaseHTTPRequestHandler, texts: list[str], fault: str) -> None:
        if not all(text.strip() for text in texts):
            return self._error(handler, 400, "'$.input' is invalid: an input is empty", "invalid_request_error")
        data: Any = [{"object": "embedding", "index": i, "embedding": self.embedding(t)} for i, t in enumerate(texts)]
        with self._lock:
            self.embedded.update(texts)
        for item, text in zip(data, texts, strict=True):
            bad = [BAD_VECTOR[name] for word, name in self.per_text.items() if word in text.split()]
            item |= {"embedding": bad[0]} if bad else {}
        data = NO_VECTORS[fault](data) if fault in NO_VECTORS else self.shape(data)
        tokens = sum(len(text) // 4 for text in texts)
        usage = None if fault == "no usage" else {"prompt_tokens": tokens, "total_tokens": tokens}
        return self._send(handler, 200, {"object": "list", "data": data, "model": MODEL, "usage": usage})

    def _lose(self, handler: BaseHTTPRequestHandler, fault: str) -> None:
        """End the connection in one of the ways of ``LOST``; a trickle goes on for as long as ``hang``."""
        handler.close_connection = True
        connection = handler.connection
        try:
            if fault == "reset":  # with bytes still unread by the other side, closing sends RST
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            elif fault == "half headers":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Ty")
            elif fault == "short body":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
            elif fault == "trickle":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
                ends = time.monotonic() + self.hang
                while time.monotonic() < ends:
                    connection.sendall(b" ")
                    time.sleep(0.05)
        except OSError:
            return

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
        """Nobody listens any more, and nobody who is connected gets an answer."""
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def chat_server(**options: Any) -> Iterator[ChatServer]:
    server = ChatServer(**options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
