"""A key of the environment goes to the address that it was given for, and documents go where the environment says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs as room
from cdp.base.redaction import CUT
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import jobs, queries
from tests.cli.support import answer, run
from tests.services.conftest import HeldJobs
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
    texts = ("Salt keeps food.", "Sugar is sweet.", "Tea grows.")
    source.write_text("".join(json.dumps({"_id": str(i), "text": t}) + "\n" for i, t in enumerate(texts, start=1)))
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


@pytest.mark.slow
def test_openais_key_is_not_sent_to_a_server_of_ones_own(other: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", HOME)
    assert "https://api.openai.com/v1" in preview("--set", f"base_url={other.url}", code=2)
    monkeypatch.setenv("CDP_BASE_URL", other.url)
    assert "https://api.openai.com/v1" in preview(code=2)
    assert not other.keys
    monkeypatch.setenv("CDP_API_KEY", "none")  # as the error says for a server that needs no key
    preview()
    assert other.keys == ["Bearer none"]


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
@pytest.mark.parametrize("name", ["CDP_BASE_URL", "OPENAI_BASE_URL"])
def test_documents_and_key_go_to_the_environments_address(
    name: str,
    workspace: Workspace,
    home: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(name, home.url)
    monkeypatch.setenv("CDP_API_KEY", HOME)
    preview()
    assert home.keys == [f"Bearer {HOME}"]
    job = str(answer("queries", "generate", "--corpus", "docs", "--per-doc", "2", "--wait", *SETTINGS)["id"])
    assert set(home.keys) == {f"Bearer {HOME}"}
    assert len(home.keys) > 1
    assert jobs.show(workspace, job).config["base_url"] == home.url


@pytest.mark.slow
def test_the_resume_of_a_job_from_elsewhere_does_not_take_the_key_there(
    workspace: Workspace, home: Listener, other: Listener, held_jobs: HeldJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", home.url)
    monkeypatch.setenv("CDP_API_KEY", HOME)
    job = str(answer("queries", "generate", "--corpus", "docs", "--per-doc", "2", *SETTINGS)["id"])
    held_jobs.end()
    room.stop(workspace, job)
    spec = workspace.job(job) / "spec.json"  # as it would lie in a workspace that somebody sent
    written = read_json(spec)
    write_json(spec, {**written, "config": {**written["config"], "base_url": other.url}, "secrets": []})
    assert other.url in run("jobs", "resume", job, code=2).stderr
    told = run("jobs", "resume", job, "--allow", other.url, code=2)
    assert home.url in told.stderr
    assert other.url in told.stderr
    assert not other.keys
    assert len(held_jobs.secrets) == 1, "and it is not started"


def repeating(key: str, asked: str) -> tuple[int, dict[str, Any]]:
    """An endpoint that repeats the key it was sent: in its answer, in a refusal, and in an answer that is none."""
    if "Sugar" in asked:
        return 400, {"error": {"message": f"Bad request by {key}", "code": key, "param": key}}
    if "Tea" in asked:
        return 200, {"choices": None, "debug": key}
    escaped = "".join(f"\\u{ord(character):04x}" for character in key)
    split = f"{key[:12]}<think>mine</think>{key[12:20]}\\n{key[20:]}"
    content = f'{{"queries": ["What is {key}?", "Who sent {escaped}?", "Why {split}?", "Is it {key[:22]}?"]}}'
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "finish_reason": key, "message": message}
    return 200, {"id": key, "model": key, "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
def test_an_endpoint_that_repeats_the_key_has_it_stored_nowhere(
    workspace: Workspace, home: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_BASE_URL", home.url)
    monkeypatch.setenv("CDP_API_KEY", HOME)
    home.answers = repeating
    assert HOME not in preview()
    settings = ("--generator", "openai", "--set", "model=m", "--set", "retries=0")
    shown = answer("queries", "generate", "--corpus", "docs", "--per-doc", "4", "--wait", *settings)
    job = str(shown["id"])
    assert HOME not in json.dumps(shown) + json.dumps(jobs.show(workspace, job).to_dict()) + jobs.log(workspace, job)
    (made,) = queries.list_query_sets(workspace)
    ((_, texts),) = queries.page(workspace, made.id)
    assert [text.count(CUT) for text in texts] == [1] * 4
    assert queries.failures(workspace, made.id).n == 2
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert workspace.llm_cache / "answers.sqlite" in files
    # Also with each character escaped, as it came in the answer.
    for form in (HOME, "".join(f"\\u{ord(c):04x}" for c in HOME)):
        assert [path for path in files if form.encode() in path.read_bytes()] == []
