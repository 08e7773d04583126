"""The server's key goes to the operator's endpoint alone, and a shared dashboard asks no other address."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cdp import jobs as room
from cdp.base import permission
from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, ProviderError
from cdp.base.permission import NotAllowedError
from cdp.base.workspace import Workspace
from cdp.llm.address import OPENAI_URL
from cdp.services import access, corpora, jobs, queries, studies, tuning
from cdp.studies.config import StudyConfig
from tests.services.conftest import HeldJobs

SERVERS = "sk-servers-own-0123456789"
TYPED = "sk-typed-by-a-visitor-01"
SECONDS = 60


@dataclass
class Listener:
    """An endpoint that writes down with which key it was asked, and answers or leads elsewhere."""

    url: str = ""
    keys: list[str] = field(default_factory=list)
    leads_to: str = ""
    pause: float = 0.0
    answers: Callable[[str, str], tuple[int, dict[str, Any]]] | None = None
    """Status and body, by the key that was sent and the request's text."""


@contextmanager
def listening(host: str = "127.0.0.1") -> Iterator[Listener]:
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            listener.keys.append(self.headers.get("Authorization", ""))
            time.sleep(listener.pause)
            message = {"role": "assistant", "content": "1. What is salt?\n2. Who needs salt?"}
            body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                    "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}  # fmt: skip
            status = 307 if listener.leads_to else 200
            if listener.answers is not None:
                status, body = listener.answers(listener.keys[-1], asked)
            data = json.dumps(body).encode()
            self.send_response(status)
            if listener.leads_to:
                self.send_header("Location", f"{listener.leads_to}/chat/completions")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    listener.url = f"http://{host}:{server.server_address[1]}/v1"
    try:
        yield listener
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDP_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CDP_API_KEY", SERVERS)


def preview(workspace: Workspace, url: str, **more: Any) -> None:
    if not corpora.list_corpora(workspace):
        source = workspace.root.parent / "docs.jsonl"
        source.write_text('{"_id": "1", "text": "Salt keeps food."}\n{"_id": "2", "text": "Sugar is sweet."}\n')
        before, permission._declared = permission._declared, None
        corpora.add(workspace, source, name="docs")
        permission._declared = before
    queries.preview(workspace, "docs", "1", methods=["diverse"], per_doc=2, generator="openai", model="m",
                    base_url=url, output="list", retries=0, timeout=5.0, **more)  # fmt: skip


@pytest.mark.slow
def test_the_servers_key_is_not_sent_to_an_address_that_somebody_typed(
    workspace: Workspace, listener: Listener
) -> None:
    permission.in_dashboard()
    preview(workspace, listener.url)
    assert listener.keys == ["Bearer none"]
    preview(workspace, listener.url, api_key=TYPED)
    assert listener.keys[1:] == [f"Bearer {TYPED}"]


@pytest.mark.slow
def test_the_servers_key_goes_to_the_endpoint_it_was_set_up_for(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", listener.url + "/")
    permission.in_dashboard(shared=True)
    preview(workspace, listener.url)
    assert listener.keys == [f"Bearer {SERVERS}"]
    preview(workspace, "")  # which is that endpoint, and no longer OpenAI
    assert listener.keys == [f"Bearer {SERVERS}"] * 2
    with pytest.raises(NotAllowedError):
        preview(workspace, OPENAI_URL)


@pytest.mark.slow
def test_each_of_two_keys_goes_to_its_own_endpoint(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-other-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", listener.url)
    monkeypatch.setenv("CDP_BASE_URL", "http://127.0.0.1:9/v1")
    permission.in_dashboard()
    preview(workspace, listener.url)
    assert listener.keys == ["Bearer sk-the-other-0123456789"]
    endpoint = access.endpoint_for({"generator": "openai", "base_url": listener.url})
    assert endpoint.environment == {
        "CDP_BASE_URL": listener.url, "CDP_API_KEY": "sk-the-other-0123456789", "OPENAI_API_KEY": ""
    }  # fmt: skip


@pytest.mark.slow
def test_a_shared_dashboard_asks_only_endpoints_of_the_operator(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    permission.in_dashboard(shared=True)
    with pytest.raises(NotAllowedError, match="may not be asked"):
        preview(workspace, listener.url, api_key=TYPED)
    assert listener.keys == []
    monkeypatch.setenv(access.ENDPOINTS, f"http://elsewhere.example/v1, {listener.url}")
    preview(workspace, listener.url, api_key=TYPED)
    preview(workspace, listener.url)
    assert listener.keys == [f"Bearer {TYPED}", "Bearer none"]


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_what_stands_behind_the_server_is_asked_by_nothing(workspace: Workspace, listener: Listener) -> None:
    config = {"corpus": "demo", "generator": "openai", "base_url": listener.url, "model": "m"}
    permission.in_dashboard(shared=True)
    for call in (
        lambda: jobs.start(workspace, "synthesis", SynthesisConfig.from_dict(config), api_key=TYPED),
        lambda: tuning.start(workspace, PromptTuningConfig.from_dict({**config, "documents": 2}), api_key=TYPED),
        lambda: studies.run(
            workspace, StudyConfig.from_dict({**config, "benchmarks": "demo", "methods": "sap"}), api_key=TYPED
        ),
    ):
        with pytest.raises(NotAllowedError, match="may not be asked"):
            call()
    assert listener.keys == []
    assert jobs.list_jobs(workspace) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data", "http://[::1]/v1", "http://localhost/v1", "http://127.1/v1",
        "http://allowed.example@127.0.0.1/v1", "http://127.0.0.1\\@allowed.example/v1", "http://allowed.example.evil/v1",
        "http://allowed.example:81/v1", "https://allowed.example/v1", "http://allowed.example/v2",
        "http://allowed.example/v1#@127.0.0.1", "http://allowed.example/v1?x=http://127.0.0.1", "file:///etc/passwd",
        "http://127.0.0.1:abc/v1", "http://[::1/v1", "gopher://allowed.example/v1", "http:///v1",
    ],
)  # fmt: skip
def test_an_address_that_only_looks_allowed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.ENDPOINTS, "http://allowed.example/v1")
    permission.in_dashboard(shared=True)
    with pytest.raises((NotAllowedError, ConfigError)):
        access.check_endpoint(url)


@pytest.mark.parametrize(
    "url", ["http://allowed.example/v1/", "HTTP://ALLOWED.example:80/v1", "http://allowed.example./v1"]
)
def test_an_allowed_address_spelt_otherwise(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(access.ENDPOINTS, "http://allowed.example/v1")
    permission.in_dashboard(shared=True)
    access.check_endpoint(url)


@pytest.mark.slow
def test_a_redirect_takes_neither_key_nor_document_to_another_host(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", listener.url)
    permission.in_dashboard(shared=True)
    with listening("127.0.0.2") as elsewhere:
        listener.leads_to = elsewhere.url
        with pytest.raises(CdpError, match=r"points to '127\.0\.0\.2:\d+' \(30\d\).*set base_url to it"):
            preview(workspace, listener.url)
        assert listener.keys == [f"Bearer {SERVERS}"]
        assert elsewhere.keys == [], "neither a key nor a document is sent on"


@pytest.mark.slow
@pytest.mark.usefixtures("with_demo")
def test_a_job_and_its_resume_do_not_get_the_servers_key(
    workspace: Workspace, listener: Listener, request: pytest.FixtureRequest
) -> None:
    permission.in_dashboard()
    config = SynthesisConfig.from_dict(
        {"corpus": "demo", "generator": "openai", "base_url": listener.url, "model": "m", "limit": 1, "per_doc": 2,
         "output": "list", "retries": 0}
    )  # fmt: skip
    job = jobs.start(workspace, "synthesis", config)
    room.wait(workspace, job, timeout_s=SECONDS)
    assert listener.keys
    assert set(listener.keys) == {"Bearer none"}

    held: HeldJobs = request.getfixturevalue("held_jobs")
    typed = jobs.start(workspace, "synthesis", config, api_key=TYPED)
    held.end()
    room.stop(workspace, typed)
    assert jobs.missing_secrets(workspace, typed) == ["CDP_API_KEY"]
    with pytest.raises(ConfigError, match="needs CDP_API_KEY"):
        jobs.resume(workspace, typed, allow=[listener.url])
    jobs.resume(workspace, typed, env_secrets={"CDP_API_KEY": TYPED}, allow=[listener.url])
    assert [(given["CDP_API_KEY"], given.get("OPENAI_API_KEY", "")) for given in held.secrets] == [(TYPED, "")] * 2


def test_a_job_of_the_operator_at_another_address_is_not_resumed_with_the_key(
    workspace: Workspace, listener: Listener
) -> None:
    """A visitor of a shared dashboard cannot have it asked either."""
    settings = {"generator": "openai", "base_url": listener.url}
    permission.in_dashboard(shared=True)
    with pytest.raises(NotAllowedError):
        access.endpoint_for(settings)
    assert access.needs_key(settings)


def test_openai_itself_needs_a_key_that_is_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    permission.in_dashboard()
    assert access.endpoint_for({"generator": "openai", "base_url": ""}).key == SERVERS
    assert access.server_key(OPENAI_URL) == "CDP_API_KEY"
    monkeypatch.setenv("CDP_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError, match="needs an API key"):
        access.endpoint_for({"generator": "openai", "base_url": OPENAI_URL})
