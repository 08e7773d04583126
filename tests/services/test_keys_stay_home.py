"""A key of the environment goes to the address that it was given for, and documents go where the environment says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp import jobs as room
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import jobs
from tests.cli.support import answer, run
from tests.services.test_endpoints_of_visitors import Listener, listening

HOME = "sk-operators-own-0123456789"
SETTINGS = ("--generator", "openai", "--set", "model=m", "--set", "output=list", "--set", "retries=0")


@pytest.fixture
def home() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
def other() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture(autouse=True)
def _environment(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDP_BASE_URL", "OPENAI_BASE_URL", "CDP_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "docs.jsonl"
    source.write_text('{"_id": "1", "text": "Salt keeps food."}\n{"_id": "2", "text": "Sugar is sweet."}\n')
    run("corpus", "add", str(source), "--name", "docs")


def preview(*more: str, code: int = 0) -> str:
    words = ("queries", "preview", "--corpus", "docs", "--doc", "1", "--methods", "diverse", "--per-doc", "2")
    done = run(*words, *SETTINGS, *more, code=code)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["CDP_API_KEY", "OPENAI_API_KEY"])
def test_a_key_is_not_sent_to_an_address_on_the_command_line(
    name: str, home: Listener, other: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", home.url)
    monkeypatch.setenv(name, HOME)
    told = preview("--set", f"base_url={other.url}", code=2)
    assert home.url in told
    assert f"CDP_BASE_URL={other.url}" in told
    words = ("queries", "generate", "--corpus", "docs", "--method", "diverse", *SETTINGS)
    run(*words, "--set", f"base_url={other.url}", code=2)
    run("prompts", "tune", "--corpus", "docs", "--generator", "openai", "--set", f"base_url={other.url}", code=2)
    assert home.keys + other.keys == []
    assert not jobs.list_jobs(Workspace.default())


def test_openais_key_is_not_sent_to_a_server_of_ones_own(other: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", HOME)
    assert "https://api.openai.com/v1" in preview("--set", f"base_url={other.url}", code=2)
    monkeypatch.setenv("CDP_BASE_URL", other.url)
    assert "https://api.openai.com/v1" in preview(code=2)
    assert not other.keys
    monkeypatch.setenv("CDP_API_KEY", "none")  # as the error says for a server that needs no key
    preview()
    assert other.keys == ["Bearer none"]


@pytest.mark.parametrize("name", ["CDP_BASE_URL", "OPENAI_BASE_URL"])
def test_documents_and_key_go_to_the_environments_address(
    name: str, workspace: Workspace, home: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, home.url)
    monkeypatch.setenv("CDP_API_KEY", HOME)
    preview()
    assert home.keys == [f"Bearer {HOME}"]
    job = str(answer("queries", "generate", "--corpus", "docs", "--per-doc", "2", "--wait", *SETTINGS)["id"])
    assert set(home.keys) == {f"Bearer {HOME}"}
    assert len(home.keys) > 1
    assert jobs.show(workspace, job).config["base_url"] == home.url


def test_the_resume_of_a_job_from_elsewhere_does_not_take_the_key_there(
    workspace: Workspace, home: Listener, other: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", home.url)
    monkeypatch.setenv("CDP_API_KEY", HOME)
    home.pause = 2.0
    job = str(answer("queries", "generate", "--corpus", "docs", "--per-doc", "2", *SETTINGS)["id"])
    room.stop(workspace, job, at_once=True)
    room.wait(workspace, job, timeout_s=60)
    home.keys.clear()
    spec = workspace.job(job) / "spec.json"  # as it would lie in a workspace that somebody sent
    written = read_json(spec)
    write_json(spec, {**written, "config": {**written["config"], "base_url": other.url}, "secrets": []})
    told = run("jobs", "resume", job, code=2)
    assert home.url in told.stderr
    assert other.url in told.stderr
    assert not other.keys
