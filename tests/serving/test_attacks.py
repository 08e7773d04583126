"""A stranger at a real server: odd bodies, headers and paths, too much of anything. Refused in a sentence."""

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
from cdp.serving import public
from cdp.serving.public import Loaded, Serving
from tests.serving.support import TOKEN, error_of, serving

pytestmark = pytest.mark.slow

JSON = {"content-type": "application/json"}
CLIENT = httpx.Client(timeout=30)


def post(server: Serving, body: Any, path: str = "/v1/embeddings", **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return CLIENT.post(f"{server.address}{path}", content=content, headers=given)


def raw(server: Serving, sent: bytes) -> bytes:
    """What the server answers to these bytes."""
    with socket.create_connection(("127.0.0.1", int(server.address.rpartition(":")[2])), timeout=20) as connection:
        answer = b""
        try:
            connection.sendall(sent)
            connection.shutdown(1)
            while part := connection.recv(65536):
                answer += part
        except OSError:
            pass  # it closed the connection while we still sent
        return answer


def answers(server: Serving) -> bool:
    return post(server, {"model": "tiny", "input": "a"}).status_code == 200


TINY = b'{"model": "tiny", "input": '
ODD = [
    b"", b"{", b"\xff\xfe", b"null", b"[]", b'"text"', b"{}", TINY + b'"\\ud800"}', TINY + b'"\xed\xa0\x80"}',
    TINY + b"NaN}", TINY + b'"a", "dimensions": 1e999}', TINY + b'"a", "dimensions": ' + b"9" * 5000 + b"}",
    TINY + b'"a", "dimensions": ' + b"9" * 300 + b"}", TINY + b"[" + b'"a",' * 99_999 + b'"a"]}', b"[" * 100_000,
    TINY + b"[" * 50_000 + b"]" * 50_000 + b"}", b'{"a":' * 50_000, b'{"query": "a", "top_k": ' + b"9" * 5000 + b"}",
    b'{"query": "a", "top_k": true}', b'{"query": {"a": 1}}',
]  # fmt: skip


def test_bodies_that_are_no_requests(server: Serving) -> None:
    for body in ODD:
        for path in ("/v1/embeddings", "/v1/search"):
            answer = post(server, body, path)
            error_of(answer)
            assert answer.status_code == 400, body[:60]
    for kind in ("text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"):
        answer = post(server, {"model": "tiny", "input": "a"}, content_type=kind)
        assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_media_type"), kind
    answer = post(server, {"model": "tiny", "input": "a"}, content_encoding="gzip")
    assert (answer.status_code, error_of(answer)["code"]) == (415, "unsupported_encoding")
    assert post(server, {"model": "tiny", "input": ["a\0b", "word " * 20_000]}).status_code == 200
    assert answers(server)


TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.sampled_from(["tiny", "query", "float"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["model", "input", "encoding_format", "dimensions", "user", "query", "top_k", "text_characters"]
)
BODIES = (
    st.binary(max_size=80)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(NAMES, VALUES).map(lambda value: json.dumps({"model": "tiny", "input": "a", **value}).encode())
    | st.dictionaries(NAMES, VALUES).map(lambda value: json.dumps({"query": "a", **value}).encode())
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=BODIES, path=st.sampled_from(["/v1/embeddings", "/v1/search"]))
def test_any_body_is_answered_or_refused(server: Serving, body: bytes, path: str) -> None:
    answer = post(server, body, path)
    if answer.status_code != 200:
        assert answer.status_code in (400, 404)
        error_of(answer)


def test_paths_that_do_not_exist(server: Serving) -> None:
    for path in ("/", "/v1/chat/completions", "/v1/embeddings/", "/../../etc/passwd", "/%2e%2e/etc/passwd", "/%00"):
        answer = CLIENT.get(f"{server.address}{path}")
        assert (answer.status_code, error_of(answer)["code"]) == (404, "not_found")
    answer = CLIENT.delete(f"{server.address}/v1/embeddings")
    assert (answer.status_code, error_of(answer)["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"
    answer = CLIENT.get(f"{server.address}/v1/models/..%2f..%2fetc")
    assert (answer.status_code, error_of(answer)["code"]) == (404, "model_not_found")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://[", "http://localhost:1", "http://", "", "\xff", "file://"]
)
def test_pages_of_other_sites_are_refused(server: Serving, origin: str) -> None:
    """``http://[`` was answered with 500."""
    for method in ("GET", "OPTIONS"):
        url = f"{server.address}/v1/models"
        answer = CLIENT.request(method, url, headers=[(b"origin", origin.encode("latin-1"))])
        assert (answer.status_code, error_of(answer)["code"]) == (403, "origin_not_allowed")
        assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_page_of_the_same_site_is_answered(server: Serving) -> None:
    url = f"{server.address}/v1/models"
    assert CLIENT.get(url, headers={"origin": server.address}).status_code == 200
    for site, status in (("same-site", 403), ("cross-site", 403), ("same-origin", 200), ("none", 200)):
        assert CLIENT.get(url, headers={"sec-fetch-site": site}).status_code == status


def test_a_name_that_is_pointed_here_is_refused(server: Serving) -> None:
    url = f"{server.address}/v1/models"
    for host in ("evil.example:8600", "localhost.evil.example", "127.0.0.1.nip.io", "[::", "0.0.0.0", "@", "[", "\xff"):
        answer = CLIENT.get(url, headers=[(b"host", host.encode("latin-1"))])
        assert (answer.status_code, error_of(answer)["code"]) == (403, "host_not_allowed"), host
        assert CLIENT.get(f"{server.address}/healthz", headers={"host": "evil.example"}).status_code == 200
    for host in ("localhost:8600", "127.0.0.1:8600", "[::1]:8600", "LOCALHOST"):
        assert CLIENT.get(url, headers={"host": host}).status_code == 200


# What some parsers take for localhost and others for another host, and what is no host at all.
NO_HOSTS = [
    "evil.example\\@localhost", "localhost\\@evil.example", "localhost\\.evil.example", "evil.example@localhost",
    "user:word@127.0.0.1:8600", "localhost evil.example", "localhost\tevil.example", "localhost,evil.example",
    "localhost/evil.example", "localhost?evil.example", "localhost#evil.example", "http://localhost", "//localhost",
    "localhost:", "localhost:a", "localhost:-1", "localhost:99999", "localhost:80:80", "localhost:٣", "localhost.",
    "127.0.0.1.", "127.1", "0x7f.0.0.1", "2130706433", "[::1%lo]", "[::1%25lo]", "[::1]evil", "[::1", "::1", "[]",
    "[localhost]", "%6cocalhost", "localhost%00", "localhost%2eevil.example", "ｌocalhost", "", "*", ".", "localhost;",
]  # fmt: skip


def test_a_host_is_matched_exactly_or_refused(server: Serving) -> None:
    """``evil.example\\@localhost`` was answered."""
    for host in NO_HOSTS:
        answer = raw(server, b"GET /v1/models HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 "), host
        assert b"host_not_allowed" in answer
    for host in ("localhost", "LocalHost:0", " 127.0.0.1:65535 ", "[::1]", "[0:0:0:0:0:0:0:1]:80"):
        answer = raw(server, b"GET /v1/models HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 "), host


def test_heads_that_name_two_hosts_or_none(server: Serving) -> None:
    """A request line with an address is not answered for another host than its header's."""
    local = b"Host: localhost\r\n"
    for head, status in (
        (b"GET /v1/models HTTP/1.1\r\n" + 2 * local, b"400"),
        (b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n" + local, b"400"),
        (b"GET /v1/models HTTP/1.1\r\nHost : localhost\r\n", b"400"),
        (b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n evil.example\r\n", b"403"),
        (b"GET /v1/models HTTP/1.1\r\n", b"400"),
        (b"GET /v1/models HTTP/1.0\r\n", b"200"),
        (b"GET http://evil.example/v1/models HTTP/1.1\r\n" + local, b"404"),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
        (b"GET http://localhost/v1/models HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
        (b"GET //evil.example/v1/models HTTP/1.1\r\n" + local, b"404"),
        (b"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
    ):
        answer = raw(server, head + b"\r\n")
        assert answer.split(b" ")[1:2] == [status], (head, answer[:200])


def test_what_is_no_http_or_too_large_a_head_is_refused(server: Serving) -> None:
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        get + b"X-Large: " + b"a" * 70_000 + b"\r\n\r\n",
        get + b"A: b\r\n" * 20_000 + b"\r\n",
        get + b"Content-Length: -1\r\n\r\n",
        get + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        get + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ):
        answer = raw(server, sent)
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200")), (sent[:60], answer[:100])
    assert answers(server)


@pytest.fixture
def strict(demo_workspace: Workspace, static_model: Path) -> Iterator[Serving]:
    """A token, and room for few."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("CONNECTIONS", 20), ("MAX_INPUTS", 10), ("LARGEST_BODY", 100_000)):
            patch.setattr(public, name, value)
        with serving(demo_workspace, str(static_model), TOKEN, name="tiny", allowed_hosts="search.example") as made:
            yield made


def test_the_token_and_the_allowed_names(strict: Serving) -> None:
    url = f"{strict.address}/v1/models"
    wrong = (
        "",
        "Bearer",
        f"Basic {TOKEN}",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        TOKEN,
        "Bearer \xe4",
    )
    for value in wrong:
        answer = CLIENT.get(url, headers=[(b"authorization", value.encode("latin-1"))])
        assert (answer.status_code, error_of(answer)["code"]) == (401, "invalid_api_key"), value
        assert TOKEN not in answer.text
    bearer = {"authorization": f"bearer {TOKEN}"}
    assert CLIENT.get(url, headers=bearer).status_code == 200
    assert CLIENT.get(url, headers={**bearer, "host": "Search.example:443"}).status_code == 200
    assert CLIENT.get(url, headers={**bearer, "host": "other.example"}).status_code == 403


def test_endless_bodies_and_too_many_connections(strict: Serving) -> None:
    head = (
        b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer "
        + TOKEN.encode()
    )
    chunks = (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 20
    assert raw(strict, head + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n").startswith(
        b"HTTP/1.1 413 "
    )
    address = ("127.0.0.1", int(strict.address.rpartition(":")[2]))
    silent = [socket.create_connection(address, timeout=20) for _ in range(25)]
    assert httpx.get(f"{strict.address}/healthz").status_code == 503
    for connection in silent:
        connection.close()
    deadline = time.monotonic() + 20
    while httpx.get(f"{strict.address}/healthz").status_code != 200:
        assert time.monotonic() < deadline


def test_a_full_queue_and_a_fault(strict: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """The retriever is kept from working, as a long batch would."""
    api, may = strict.api, threading.Event()
    work = public.Loaded.embed

    def kept(loaded: Loaded, texts: list[str], role: str) -> Any:
        assert may.wait(20)
        if "fault" in texts:
            raise RuntimeError("a secret text")
        return work(loaded, texts, role)

    monkeypatch.setattr(Loaded, "embed", kept)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    waiting = threading.Thread(target=post, args=(strict, {"model": "tiny", "input": ["a"] * 10}), kwargs=bearer)
    waiting.start()
    deadline = time.monotonic() + 20
    while not api.waiting:
        assert time.monotonic() < deadline
    monkeypatch.setattr(public, "MAX_WAITING", 10)
    full = post(strict, {"model": "tiny", "input": "a"}, **bearer)
    assert (full.status_code, error_of(full)["code"]) == (429, "server_busy")
    assert int(full.headers["retry-after"]) >= 1
    monkeypatch.setattr(public, "MAX_WAITING", 20)
    may.set()
    fault = post(strict, {"model": "tiny", "input": "fault"}, **bearer)
    assert (fault.status_code, error_of(fault)["code"]) == (500, "internal_error")
    assert "secret" not in fault.text
    assert fault.headers["x-request-id"] in fault.json()["error"]["message"]
    assert post(strict, {"model": "tiny", "input": "a"}, **bearer).status_code == 200
    waiting.join(20)
    assert api.waiting == 0
