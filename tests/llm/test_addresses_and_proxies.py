"""Addresses as people paste them, and proxies of the environment: what is sent where, and what is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest

from cdp.base.errors import ConfigError, ProviderError
from cdp.base.workspace import Workspace
from cdp.llm.address import Endpoint, address, check_proxies, resolve, same
from cdp.llm.answers import Usage
from cdp.llm.client import ChatClient
from cdp.services import doctor
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import KEY, MODEL, ChatServer, completion

__all__ = ["_no_keys", "_short_backoff", "server"]

AZURE = "https://name.openai.azure.com/openai/deployments/gpt"
BODY = {"messages": [{"role": "user", "content": "x"}]}


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://h/v1/", "https://h/v1"),
        (" https://h/v1/chat/completions ", "https://h/v1"),
        ("https://h/v1/embeddings/", "https://h/v1"),
        ("https://h/v1/completions", "https://h/v1"),
        (f"{AZURE}/chat/completions?api-version=2024-10-21", f"{AZURE}?api-version=2024-10-21"),
        (f"{AZURE}/?api-version=2025-04-01-preview", f"{AZURE}?api-version=2025-04-01-preview"),
        ("https://h/models/chat/completions?api-version=2024-05-01", "https://h/models?api-version=2024-05-01"),
        ("https://h/v1?", "https://h/v1"),
    ],
)
def test_an_address_is_kept_with_its_parameters_and_without_the_path_of_a_request(given: str, kept: str) -> None:
    assert address(given, {}) == kept
    assert same(given, kept)


@pytest.mark.parametrize(
    "query",
    [
        "key=AIza", "api_key=x", "api-key=x", "token=x", "access_token=x", "code=x", "sig=x", "k=1", "Password=x",
        "subscription-key=x", "x=" + "a1" * 20, "api-version=1&key=x", "sk-0123456789abcdef",
    ],
)  # fmt: skip
def test_a_key_in_the_parameters_is_refused(query: str) -> None:
    with pytest.raises(ConfigError, match="must not hold a user, a password or a key") as caught:
        address(f"https://h/v1?{query}", {})
    assert query not in str(caught.value)


def test_a_key_goes_to_the_address_with_its_parameters_alone() -> None:
    own = f"{AZURE}?api-version=1"
    environment = {"CDP_BASE_URL": own, "CDP_API_KEY": "sk-own"}
    assert resolve(f"{AZURE}/chat/completions?api-version=1", environment=environment) == Endpoint(own, "sk-own")
    for other in (AZURE, f"{AZURE}?api-version=2", own.replace("name", "other"), own.replace("https", "http"),
                  own.replace("gpt", "gpt5"), f"https://evil/?api-version=1&u={'x' * 5}"):  # fmt: skip
        with pytest.raises(ConfigError, match="is not sent to"):
            resolve(other, environment=environment)


class Recorder(ThreadingHTTPServer):
    """Answers each chat request, and keeps request lines and headers; as a proxy it sees whole addresses."""

    daemon_threads = True

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                recorder.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                body = httpx2.Response(200, json=completion()).content
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_CONNECT(self) -> None:
                recorder.seen.append((self.path, {}))
                self.send_error(403, "Not this way")

            def log_message(self, *_: object) -> None:
                """Quiet."""

        super().__init__(("127.0.0.1", 0), Handler)
        self.at = f"127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with Recorder() as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield running
        running.shutdown()


def client(url: str, retries: int = 0) -> ChatClient:
    return ChatClient(Endpoint(url, KEY), MODEL, concurrency=1, timeout_s=5.0, retries=retries)


@pytest.mark.slow
def test_azures_form_is_asked_with_its_version_and_header(recorder: Recorder) -> None:
    url = address(f"http://{recorder.at}/openai/deployments/gpt/chat/completions?api-version=2024-10-21", {})
    client(url).complete(BODY, Usage())
    client(f"http://{recorder.at}/openai/v1").complete(BODY, Usage())
    (first, headers), (second, others) = recorder.seen
    assert first == "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
    assert (headers["api-key"], headers["authorization"]) == (KEY, f"Bearer {KEY}")
    assert second == "/openai/v1/chat/completions"
    assert "api-key" not in others


BAD = {
    "ALL_PROXY": "socks://user:hunter22@proxy:1080", "HTTPS_PROXY": "ftp://proxy:80", "HTTP_PROXY": "http://",
    "https_proxy": "proxy:port", "all_proxy": "user:hunter22@:80",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_proxy_that_cannot_be_used_is_named(name: str, monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    monkeypatch.setenv(name, BAD[name])
    with pytest.raises(ConfigError, match=f"The proxy {name}=.* cannot be used") as caught:
        client("https://example.org/v1")
    assert "hunter22" not in str(caught.value)
    assert client("http://localhost:1/v1"), "an address of this machine needs none"
    [check] = [check for check in doctor.check(workspace) if check.name == "proxies"]
    assert not check.ok
    assert name in check.text
    assert "hunter22" not in check.text


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_socks_needs_a_package(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"{scheme}://proxy:1080")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="SOCKS needs the package socksio"):
        check_proxies()


@pytest.mark.slow
@pytest.mark.parametrize("value", ["http://{at}", "{at}"])
def test_requests_go_through_the_proxy_but_for_this_machine_and_no_proxy(
    value: str, recorder: Recorder, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", value.format(at=recorder.at))
    client("http://far.invalid/v1").complete(BODY, Usage())
    assert [path for path, _ in recorder.seen] == ["http://far.invalid/v1/chat/completions"]
    client(server.url).complete(BODY, Usage())
    client(server.url.replace("127.0.0.1", "localhost")).complete(BODY, Usage())
    assert len(server.bodies) == 2
    monkeypatch.setenv("NO_PROXY", "far.invalid, 10.0.0.0/8, [odd")
    with pytest.raises(ProviderError, match="cannot be reached") as caught:
        client("http://far.invalid/v1").complete(BODY, Usage())
    assert "proxy" not in str(caught.value).lower()
    assert len(recorder.seen) == 1


@pytest.mark.slow
def test_a_proxy_in_the_way_is_named(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter22@{recorder.at}")
    with pytest.raises(ProviderError, match=rf"go through HTTPS_PROXY=http://{recorder.at}") as caught:
        client("https://far.invalid/v1").complete(BODY, Usage())
    assert "hunter22" not in str(caught.value)
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ProviderError, match=r"cannot be reached.*go through HTTPS_PROXY=http://127.0.0.1:9"):
        client("https://far.invalid/v1").complete(BODY, Usage())
