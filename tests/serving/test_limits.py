"""A stranger at a real server: odd bodies, slow and silent clients, too much of anything; the server goes on."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdp.base.workspace import Workspace
from cdp.serving.server import Serving
from tests.serving.support import TOKEN, error_of, serving

pytestmark = pytest.mark.slow

JSON = {"content-type": "application/json"}


def post(server: Serving, body: Any, path: str = "/v1/embeddings", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx.post(f"{server.address}{path}", content=content, headers=given, timeout=30)


def asked(server: Serving, text: str = "a") -> httpx.Response:
    return post(server, {"model": "tiny", "input": text})


ODD = [
    (b"", 400, "invalid_json"),
    (b"{", 400, "invalid_json"),
    (b"\xff\xfe", 400, "invalid_json"),
    (b"null", 400, "invalid_body"),
    (b"[]", 400, "invalid_body"),
    (b'"text"', 400, "invalid_body"),
    (b"{}", 400, "missing_parameter"),
    (b'{"model": "tiny", "input": "\\ud800"}', 400, "invalid_json"),
    (b'{"model": "tiny", "input": "\xed\xa0\x80"}', 400, "invalid_json"),
    (b'{"model": "tiny", "input": NaN}', 400, "invalid_type"),
    (b'{"model": "tiny", "input": "a", "dimensions": 1e999}', 400, "invalid_value"),
    (b'{"model": "tiny", "input": "a", "dimensions": ' + b"9" * 5000 + b"}", 400, "invalid_json"),
    (b'{"model": "tiny", "input": [' + b'"a",' * 2048 + b'"a"]}', 400, "too_many_inputs"),
    (b'{"model": "tiny", "input": [' + b'"a",' * 99_999 + b'"a"]}', 400, "too_many_inputs"),
    (b"[" * 100_000, 400, "invalid_json"),
    (b'{"model": "tiny", "input": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "invalid_json"),
    (b'{"a":' * 50_000, 400, "invalid_json"),
]


@pytest.mark.parametrize(("body", "status", "code"), ODD, ids=lambda value: str(value)[:50])
def test_bodies_that_are_no_requests(server: Serving, body: bytes, status: int, code: str) -> None:
    for path in ("/v1/embeddings", "/v1/search"):
        answer = post(server, body, path)
        error = error_of(answer)
        if path == "/v1/embeddings":
            assert (answer.status_code, error["code"]) == (status, code)
        assert answer.status_code == 400
    assert asked(server).status_code == 200


def test_nul_and_long_texts_are_read(server: Serving) -> None:
    assert asked(server, "a\0b").status_code == 200
    assert asked(server, "word " * 20_000).status_code == 200


def test_what_is_not_json_by_its_headers(server: Serving) -> None:
    body = {"model": "tiny", "input": "a"}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"):
        answer = post(server, body, content_type=kind)
        assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_media_type"), kind
    answer = post(server, body, content_encoding="gzip")
    assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_encoding")
    assert post(server, body, content_type="application/json; charset=utf-8").status_code == 200


def test_routes_that_do_not_exist(server: Serving) -> None:
    for path in (
        "/",
        "/v1",
        "/v1/chat/completions",
        "/v1/embeddings/",
        "/../../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/%00",
    ):
        answer = httpx.get(f"{server.address}{path}")
        assert (answer.status_code, error_of(answer)["code"]) == (404, "not_found")
        assert "/v1/embeddings and /v1/search" in error_of(answer)["message"]
    answer = httpx.delete(f"{server.address}/v1/embeddings")
    assert (answer.status_code, error_of(answer)["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"
    answer = httpx.get(f"{server.address}/v1/models/..%2f..%2fetc")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "model_not_found")
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = httpx.options(f"{server.address}/v1/embeddings", headers=preflight)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert not [line for line in httpx.get(f"{server.address}/metrics").text.splitlines() if "etc" in line]


TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from(["tiny", "query", "float"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        "model",
        "input",
        "input_type",
        "encoding_format",
        "dimensions",
        "user",
        "query",
        "queries",
        "top_k",
        "text_characters",
    ]
)
BODIES = (
    st.binary(max_size=80)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(NAMES, VALUES).map(lambda value: json.dumps({"model": "tiny", "input": "a", **value}).encode())
    | st.dictionaries(NAMES, VALUES).map(lambda value: json.dumps({"query": "a", **value}).encode())
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, path=st.sampled_from(["/v1/embeddings", "/v1/search"]))
def test_any_body_is_answered_or_refused(server: Serving, body: bytes, path: str) -> None:
    with CLIENT.stream("POST", f"{server.address}{path}", content=body, headers=JSON) as answer:
        answer.read()
    if answer.status_code != 200:
        assert answer.status_code in (400, 404)
        error_of(answer)


CLIENT = httpx.Client(timeout=30)


@pytest.fixture
def strict(demo_workspace: Workspace, static_model: Path) -> Iterator[Serving]:
    """Little patience, room for few."""
    with serving(
        demo_workspace, str(static_model), TOKEN, name="tiny", read_timeout_s=0.5, max_connections=20, max_inputs=10,
        max_queue=10, max_body_mb=0.1, timeout_s=1,
    ) as made:  # fmt: skip
        yield made


def connect(server: Serving, sent: bytes) -> socket.socket:
    host, port = server.listener.getsockname() if server.listener.fileno() >= 0 else ("127.0.0.1", _port(server))
    connection = socket.create_connection((host, port), timeout=20)
    connection.sendall(sent)
    return connection


def _port(server: Serving) -> int:
    return int(server.address.rpartition(":")[2])


def all_of(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


HEAD = (
    b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "
    + TOKEN.encode()
    + b"\r\n"
)


def test_slow_and_silent_clients_are_closed(strict: Serving) -> None:
    silent = connect(strict, b"")
    half_a_head = connect(strict, b"POST /v1/embeddings HTTP/1.1\r\nHost: local")
    half_a_body = connect(strict, HEAD + b"Content-Length: 50\r\n\r\n{")
    refused = connect(strict, HEAD.replace(TOKEN.encode(), b"wrong") + b"Content-Length: 500000\r\n\r\n{")
    assert all_of(silent) == all_of(half_a_head) == b""
    assert all_of(half_a_body).startswith(b"HTTP/1.1 408 ")
    assert all_of(refused).startswith(b"HTTP/1.1 401 ")
    chunked = connect(strict, HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    try:
        for _ in range(100):
            chunked.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
    except OSError:
        pass
    assert b" 413 " in all_of(chunked)


def test_what_is_no_http_is_refused_in_the_same_form(strict: Serving) -> None:
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /" + b"a" * 70_000,
    ):
        answer = all_of(connect(strict, sent + b"\r\n\r\n"))
        if answer:  # else it was closed while it still sent
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_http"


def test_connections_beyond_the_limit_are_closed(strict: Serving) -> None:
    open_ones = [connect(strict, b"") for _ in range(20)]
    assert all_of(connect(strict, b"")) == b"", "at once, not when its patience ends"
    for connection in open_ones:
        connection.close()
    deadline = time.monotonic() + 20
    while True:
        try:
            answer = httpx.get(f"{strict.address}/healthz")
            break
        except httpx.TransportError:
            assert time.monotonic() < deadline
    assert answer.status_code == 200


def test_a_full_queue_a_late_answer_and_a_fault(strict: Serving) -> None:
    """The retriever is kept from working, as a long batch would."""
    batcher, work, may = strict.api.batcher, strict.api.served.run, threading.Event()  # type: ignore[union-attr]
    assert batcher is not None

    def kept(kind: str, items: list[Any]) -> Any:
        assert may.wait(20)
        if "fault" in items:
            raise RuntimeError("a secret text")
        return work(kind, items)

    batcher.run = kept
    with httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, base_url=strict.address, timeout=20) as client:
        late = client.post("/v1/embeddings", json={"model": "tiny", "input": "a"})
        assert (late.status_code, error_of(late)["code"]) == (503, "timeout")
        body = b'{"model": "tiny", "input": "gone"}'
        gone = connect(strict, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        _until(lambda: batcher.waiting == 1)
        gone.close()
        _until(lambda: batcher.waiting == 0)
        batcher.max_queue = 0
        full = client.post("/v1/embeddings", json={"model": "tiny", "input": "a"})
        assert (full.status_code, error_of(full)["code"]) == (429, "server_busy")
        assert 1 <= int(full.headers["retry-after"]) <= 30
        batcher.max_queue = 10
        may.set()
        fault = client.post("/v1/embeddings", json={"model": "tiny", "input": "fault"})
        assert (fault.status_code, error_of(fault)["code"]) == (500, "internal_error")
        assert "secret" not in fault.text
        assert fault.headers["x-request-id"] in fault.json()["error"]["message"]
        assert client.post("/v1/embeddings", json={"model": "tiny", "input": "a"}).status_code == 200
        page = client.get("/metrics").text
    for line in (
        'cdp_refused_total{code="timeout"} 1.0', 'cdp_refused_total{code="server_busy"} 1.0',
        'cdp_requests_total{route="/v1/embeddings",status="499"} 1.0',
        'cdp_requests_total{route="/v1/embeddings",status="500"} 1.0', "cdp_waiting_texts 0.0", "cdp_ready 1.0",
    ):  # fmt: skip
        assert line in page, line


def _until(true: Any) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)
