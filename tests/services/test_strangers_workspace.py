"""A workspace that came from somebody else: its jobs run no foreign code, read no other files, ask no other address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs as room
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import access, jobs
from cdp.services.access import NotAllowedError
from tests.cli.support import run
from tests.jobs.support import until
from tests.services.test_endpoints_of_visitors import Listener, listening
from tests.support import REPOSITORY

SECRET = "the content of a private file"
KEY = "sk-operators-own-0123456789"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A benchmark's folder, or a file in it, that is the person's own and no part of the workspace."""
    folder = tmp_path / "private"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": SECRET}) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": SECRET}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    return folder


def job(workspace: Workspace, kind: str, config: dict[str, Any], **spec: Any) -> str:
    """A job that was stopped, as a stranger may have written it; its id."""
    module = spec.pop("module", {"study": "cdp.workers.study", "import": "cdp.workers.importing",
                                 "filter": "cdp.workers.filtering"}.get(kind, f"cdp.workers.{kind}"))  # fmt: skip
    folder = workspace.jobs / f"{kind}-1"
    about = {"schema": 1, "id": folder.name, "kind": kind, "name": "a gift", "created": "2026-01-01T00:00:00+00:00",
             "sequence": 1, "module": module, "config": config, "inputs": {"sources": []}}  # fmt: skip
    write_json(folder / "spec.json", {**about, **spec})
    times = dict.fromkeys(("queued", "ended"), "2026-01-01T00:00:00+00:00")
    write_json(folder / "status.json", {"schema": 1, "phase": "ended", "attempt": 1, "outcome": "stopped", **times})
    return folder.name


def refused(workspace: Workspace, job_id: str, setting: str, named: str) -> None:
    """A resume on the command line ends with one sentence that names the setting, and nothing has started."""
    told = run("jobs", "resume", job_id, code=2).stderr
    assert setting in told
    assert named in told
    assert told.count("\n") == 1
    left_alone(workspace, job_id)


def left_alone(workspace: Workspace, job_id: str) -> None:
    folder = workspace.job(job_id)
    assert read_json(folder / "status.json")["attempt"] == 1
    assert not (folder / "supervisor.log").exists()
    assert [path.name for path in workspace.jobs.glob("[!.]*")] == [job_id]


@pytest.mark.parametrize(
    "module",
    ["torch.distributed.run", "own.evil", "cdp.workers.__init__", "cdp.workers.tr\u0430ining", "cdp.workers.search",
     "cdp.workers.evaluation", "cdp.jobs.supervisor", "cdp.workers.training.evil", ""],
)  # fmt: skip
def test_a_job_runs_the_worker_of_its_kind_and_nothing_else(workspace: Workspace, module: str) -> None:
    """``python -m torch.distributed.run FOLDER`` would run the ``__main__.py`` that lies there."""
    job_id = job(workspace, "training", {"query_set": "q", "retriever": "minilm"}, module=module)
    (workspace.job(job_id) / "__main__.py").write_text("print('here')")
    refused(workspace, job_id, "kind 'training'", repr(module))


def test_an_unknown_kind_is_refused(workspace: Workspace) -> None:
    job_id = job(workspace, "gift", {}, module="")
    told = run("jobs", "resume", job_id, code=2).stderr
    assert "kind 'gift'" in told
    left_alone(workspace, job_id)


TRAINING = {"query_set": "q", "retriever": "minilm"}
STUDY = {"query_sets": "q", "benchmarks": "b"}
OUTSIDE: dict[str, tuple[str, dict[str, str], str]] = {
    "a benchmark's folder": ("evaluation", {"retriever": "bm25", "benchmark": "PRIVATE"}, "benchmark"),
    "a benchmark while training": ("training", {**TRAINING, "benchmark": "PRIVATE"}, "benchmark"),
    "a system file as weights": ("training", {**TRAINING, "weights": "/etc/passwd"}, "weights"),
    "a process's environment": ("training", {**TRAINING, "weights": "/proc/self/environ"}, "weights"),
    "a file of the home folder": ("training", {**TRAINING, "weights": "~/.netrc"}, "weights"),
    "a path through it": ("training", {**TRAINING, "weights": "WORKSPACE/../private/queries.jsonl"}, "weights"),
    "a model's folder": ("index", {"retriever": "PRIVATE", "corpus": "c"}, "retriever"),
    "an import's file": ("import", {"path": "PRIVATE/queries.jsonl", "retriever": "x", "benchmark": "b"}, "path"),
    "a downloaded copy": ("download", {"benchmark": "scifact", "folder": "PRIVATE"}, "folder"),
    "one of a study's benchmarks": ("study", {**STUDY, "benchmarks": "b, PRIVATE:test"}, "benchmarks"),
    "a study's dev benchmark": ("study", {**STUDY, "dev": "PRIVATE:test"}, "dev"),
    "a study's retriever": ("study", {**STUDY, "retrievers": "minilm, PRIVATE"}, "retrievers"),
}


@pytest.mark.parametrize("attack", OUTSIDE)
def test_no_setting_leads_out_of_the_workspace(workspace: Workspace, private: Path, attack: str) -> None:
    kind, settings, setting = OUTSIDE[attack]
    texts = {"PRIVATE": str(private), "WORKSPACE": str(workspace.root)}
    config = dict(settings)
    for name, value in config.items():
        for word, text in texts.items():
            value = value.replace(word, text)
        config[name] = value
    job_id = job(workspace, kind, config)
    told = run("jobs", "resume", job_id, code=2).stderr
    assert f"setting {setting!r} names" in told
    assert told.count("\n") == 1
    left_alone(workspace, job_id)


def test_a_relative_path_is_read_from_where_the_job_says_it_was_submitted(workspace: Workspace, private: Path) -> None:
    config = {"retriever": "bm25", "benchmark": private.name}
    refused(workspace, job(workspace, "evaluation", config, cwd=str(private.parent)), "benchmark", private.name)


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
def test_who_names_the_folder_again_may_use_it(
    workspace: Workspace, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"retriever": "bm25", "benchmark": str(private)}
    job_id = job(workspace, "evaluation", config)
    run("jobs", "resume", job_id, "--allow", str(private.parent / "other"), code=2)
    left_alone(workspace, job_id)
    run("jobs", "resume", job_id, "--allow", str(private), "--wait")
    assert jobs.outcome(workspace, job_id)["ndcg@10"] == 100
    stopped = job(workspace, "index", {"retriever": str(private), "corpus": "c"})
    monkeypatch.setenv("CDP_ALLOWED_FOLDERS", str(private.parent))
    assert jobs.resume(workspace, stopped).attempt == 2
    room.wait(workspace, stopped)
    monkeypatch.delenv("CDP_ALLOWED_FOLDERS")
    access.in_dashboard(shared=True)  # visitors decide nothing about the server's files
    with pytest.raises(NotAllowedError, match="retriever"):
        jobs.resume(workspace, stopped, allow=[str(private)])


def test_documents_and_key_go_to_no_address_of_the_strangers(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CDP_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "docs.jsonl"
    source.write_text(json.dumps({"_id": "1", "text": SECRET}) + "\n")
    run("corpus", "add", str(source), "--name", "docs")
    config = {"corpus": "docs", "generator": "openai", "model": "m", "base_url": listener.url}
    for kind in ("synthesis", "prompts"):
        own = {**config, "method": "diverse"} if kind == "synthesis" else config
        module = "cdp.workers.synthesis" if kind == "synthesis" else "cdp.workers.prompt_tuning"
        for key in (KEY, ""):  # without a key the documents would still go there
            monkeypatch.setenv("CDP_API_KEY", key)
            job_id = job(workspace, kind, own, module=module)
            told = run("jobs", "resume", job_id, code=2).stderr
            assert "base_url" in told
            assert listener.url in told
            left_alone(workspace, job_id)
        (workspace.jobs / job_id).rename(tmp_path / job_id)
    assert listener.keys == []


@pytest.mark.slow
def test_a_current_folder_that_came_with_the_workspace_is_not_imported_from(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Who looks around in an unpacked folder and starts a job there would run the modules that lie in it."""
    marker, outside = tmp_path / "ran", tmp_path / "beside"  # the second folder of the same archive
    for package in (workspace.root / "cdp", workspace.root / "numpy", outside / "json", outside / "cdp"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"open({str(marker)!r}, 'w').write({str(package)!r})")
    config = {"retriever": "bm25", "corpus": "none"}
    job_id = job(workspace, "index", config, cwd=str(outside))
    script = Path(sys.executable).with_name("cdp")
    command = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "cdp"]
    done = subprocess.run(
        [*command, "jobs", "resume", job_id], cwd=workspace.root, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    until(lambda: not room.view(workspace, job_id, with_size=False).active, "the job to end")
    assert not marker.exists(), marker.read_text()


def test_the_id_in_a_specification_leads_nowhere_else(workspace: Workspace, tmp_path: Path) -> None:
    """Jobs were deleted, and their results written, where the specification said."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    job_id = job(workspace, "index", {"retriever": "bm25", "corpus": "c"}, id="../../kept")
    for command in (["delete", job_id, "--yes"], ["resume", job_id], ["stop", job_id], ["show", job_id]):
        assert "is not a job's specification" in run("jobs", *command, code=2).stderr
    assert (kept / "file").read_text() == "mine"
    assert [path.name for path in kept.iterdir()] == ["file"]
