"""The API key over every surface: preview, job, batch, exports, failures, prices, process list, and what is said."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cdp import jobs as room
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace, read_json
from cdp.cli import main
from cdp.query_sets.exports import EXPORTS
from cdp.services import access, jobs, queries
from cdp.synthesis import pricing
from tests.support import supervise
from tests.synthesis.conftest import CorpusMaker
from tests.synthesis.server import KEY, MODEL, ChatServer

pytestmark = pytest.mark.slow


def holding(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return found


def test_the_key_is_on_no_surface_and_a_stop_keeps_what_arrives_within_its_grace(
    server: ChatServer,
    workspace: Workspace,
    make_corpus: CorpusMaker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real job is stopped while its requests are on their way, and goes on in this process."""
    n = 20
    corpus = make_corpus(n)
    server.script = ["malformed", "500", "429"]
    config = SynthesisConfig(
        corpus=corpus.id, generator="openai", model=MODEL, base_url=server.url, per_doc=2, concurrency=4
    )
    settings = {"generator": "openai", "model": MODEL, "base_url": server.url}
    shown = queries.preview(workspace, corpus.id, "d1", api_key=KEY, **settings)  # type: ignore[arg-type]
    assert KEY not in repr(shown)
    server.script = ["malformed", "500", "429"]
    server.latency = 0.5
    server.answered.clear()
    job = jobs.start(workspace, "synthesis", config, api_key=KEY)
    sent = len(server.bodies)
    seen: list[bytes] = []
    while len(server.bodies) < sent + 8 and jobs.show(workspace, job).active:
        seen += command_lines()
        time.sleep(0.05)
    jobs.stop(workspace, job)
    view = jobs.wait(workspace, job)
    assert view.state == "stopped", view.failure
    assert any(b"cdp.workers.synthesis" in line for line in seen)
    assert not any(KEY.encode() in line for line in seen)
    arrived = sum(server.answered.values())
    assert 0 < arrived < n
    server.latency = 0.0
    monkeypatch.setattr("cdp.jobs._start_supervisor", supervise)
    room.resume(workspace, job, env_secrets=access.environment_for(config.to_dict(), KEY))
    assert sum(server.answered.values()) == n + server.faults["malformed"] - 1, "nothing is asked for twice"
    spent = read_json(workspace.job(job) / "results" / "synthesis.json")["spent"]
    assert spent["requests"] == sum(server.answered.values())
    assert "unanswered" not in spent
    view = jobs.show(workspace, job)
    assert view.state == "finished", view.failure
    assert KEY not in json.dumps(view.to_dict()) + jobs.log(workspace, job)
    made = next(q for q in queries.list_query_sets(workspace) if q.job_id == job)
    out = tmp_path / "out"
    for form in EXPORTS.keys() - {"pylate"}:
        queries.export(workspace, made.id, form, out / form)
    queries.batch_write(workspace, config.replace(per_doc=3), out / "batch")
    assert repr(pricing.bill_of_job(workspace, made.job_id))
    assert len([path for path in out.rglob("*") if path.is_file()]) >= 7
    assert holding(out) == []
    assert len([path for path in workspace.root.rglob("*") if path.is_file()]) > 10
    assert holding(workspace.root) == []


@pytest.mark.usefixtures("jobs_here")
def test_a_refused_key_is_in_no_message(server: ChatServer, workspace: Workspace, make_corpus: CorpusMaker) -> None:
    corpus = make_corpus(3)
    wrong = KEY + "-wrong"
    settings = {"generator": "openai", "model": MODEL, "base_url": server.url}
    with pytest.raises(CdpError) as caught:
        queries.preview(workspace, corpus.id, "d1", api_key=wrong, **settings)  # type: ignore[arg-type]
    assert KEY not in str(caught.value)
    config = SynthesisConfig(corpus=corpus.id, **settings)  # type: ignore[arg-type]
    job = jobs.start(workspace, "synthesis", config, api_key=wrong)
    view = jobs.wait(workspace, job)
    assert view.state == "failed"
    assert KEY not in json.dumps(view.to_dict()) + jobs.log(workspace, job)
    assert holding(workspace.root) == []


def test_a_key_in_the_address_is_refused_before_anything_is_written(
    workspace: Workspace, make_corpus: CorpusMaker
) -> None:
    corpus = make_corpus(2)
    for address in (f"http://user:{KEY}@localhost/v1", f"http://localhost/v1?key={KEY}"):
        config = SynthesisConfig(corpus=corpus.id, generator="openai", base_url=address)
        with pytest.raises(ConfigError) as caught:
            jobs.start(workspace, "synthesis", config, api_key="x")
        assert KEY not in str(caught.value)
    assert holding(workspace.root) == []


@pytest.mark.usefixtures("jobs_here")
def test_the_command_line_takes_the_key_from_the_environment_and_repeats_it_nowhere(
    server: ChatServer,
    workspace: Workspace,
    make_corpus: CorpusMaker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    corpus = make_corpus(3)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("CDP_WORKSPACE", str(workspace.root))
    words = ["queries", "generate", "--corpus", corpus.id, "--generator", "openai", "--set", f"model={MODEL}",
             "--set", f"base_url={server.url}", "--wait", "--json"]  # fmt: skip
    code = main(words)
    shown = "".join(capfd.readouterr())
    assert code == 0, shown
    assert KEY not in shown
    assert holding(workspace.root) == []
