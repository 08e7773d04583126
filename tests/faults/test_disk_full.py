"""The disk fills up while a checkpoint is written: the job fails and says so, the last checkpoint stays whole."""

from __future__ import annotations

import errno
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp import catalog, jobs
from cdp.base.errors import WorkspaceError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.services import adding, benchmarks, corpora, queries
from tests.catalog.support import add_evaluation
from tests.cli.support import run
from tests.faults.full_disk import fill_up
from tests.jobs.support import saved_step, start, status, until_state
from tests.pages.support import ended_job
from tests.support import work

pytestmark = pytest.mark.slow


def test_disk_full_while_writing_a_checkpoint(small: Workspace) -> None:
    job_id = start(small, "spill", how="fill", steps=5, bytes=1_000_000)
    failed = until_state(small, job_id, "failed", "finished", "lost")
    assert failed.state == "failed"
    assert failed.failure is not None
    assert failed.failure["kind"] == "disk"
    assert "space" in failed.failure["message"] + failed.failure["hint"]
    assert status(small, job_id)["outcome"] == "failed", "its end is on the full disk all the same"

    checkpoints = small.job(job_id) / "checkpoints"
    saved = saved_step(small, job_id)
    assert saved >= 2
    for step in range(1, saved + 1):
        assert (checkpoints / f"{step}.bin").stat().st_size == 1_000_000, "what was saved is whole"
    assert not list(checkpoints.glob(".*")), "and no half-written file is left to fill the disk"

    (checkpoints / "1.bin").unlink()
    (checkpoints / "2.bin").unlink()
    jobs.resume(small, job_id)
    resumed = until_state(small, job_id, "finished", "failed")
    assert resumed.state == "finished", resumed.failure
    assert read_json(small.job(job_id) / "results" / "fill.json") == {"step": 5}


def test_nothing_starts_on_a_full_disk_and_nothing_is_left_behind(small: Workspace) -> None:
    job_id = ended_job(small, "train-1", "training", {}).name
    ballast = small.root / "ballast"
    fill_up(ballast)
    with pytest.raises(WorkspaceError, match=str(small.root)):
        start(small, steps=1)
    assert [job.id for job in jobs.list_jobs(small)] == [job_id]
    assert jobs.view(small, job_id).state == "finished"
    with pytest.raises(WorkspaceError, match=r"catalog\.duckdb|catalog\.lock"):
        catalog.evaluations(small)
    ballast.unlink()
    assert catalog.evaluations(small) == []
    until_state(small, start(small, steps=1), "finished")


ROWS = "".join(f'{{"_id": "d{i}", "text": "Document number {i} is about rivers and ferries."}}\n' for i in range(40))


def _add_corpus(workspace: Workspace, source: Path) -> None:
    (source / "documents.jsonl").write_text(ROWS, encoding="utf-8")
    corpora.add(workspace, source / "documents.jsonl", name="rivers")


def _upload(workspace: Workspace, source: Path) -> None:
    with adding.received(workspace, [("documents.jsonl", io.BytesIO(ROWS.encode()))]) as (path, _):
        corpora.add(workspace, path, name="uploaded")


def _import_queries(workspace: Workspace, source: Path) -> None:
    text = "".join(f'{{"document_id": "d{i}", "queries": ["a ferry", "bridge {i}"]}}\n' for i in range(40))
    (source / "queries.jsonl").write_text(text, encoding="utf-8")
    (corpus,) = [one for one in corpora.list_corpora(workspace) if one.name == "base"]
    queries.import_file(workspace, source / "queries.jsonl", corpus.id, name="own")


def _add_benchmark(workspace: Workspace, source: Path) -> None:
    folder = source / "benchmark"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    (folder / "corpus.jsonl").write_text(ROWS, encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a ferry"}\n', encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    benchmarks.add(workspace, folder, name="rivers")


@pytest.mark.parametrize("act", [_add_corpus, _upload, _import_queries, _add_benchmark])
def test_an_import_on_a_full_disk_is_whole_or_nothing(
    small: Workspace, tmp_path: Path, act: Callable[[Workspace, Path], None]
) -> None:
    """Whatever write is the first that finds no space: each time there is one block more than the time before."""
    base = tmp_path / "base.jsonl"
    base.write_text("".join(f'{{"_id": "d{i}", "text": "base {i}"}}\n' for i in range(40)), encoding="utf-8")
    corpora.add(small, base, name="base")
    before = _visible(small)
    said: list[str] = []
    for blocks in range(60):
        ballast = small.root / "ballast"
        fill_up(ballast, but=blocks)
        try:
            act(small, tmp_path)
        except WorkspaceError as error:
            said.append(str(error))
        ballast.unlink()
        if _visible(small) != before:
            break
    else:
        pytest.fail("it never had enough space")
    assert len(said) >= 2, "several writes found no space"
    assert [text for text in said if "space" not in text and "full" not in text] == []
    act(small, tmp_path)
    assert not [path for path in small.root.rglob(".incoming-*") if path.is_dir()], "nothing half-made is left"


def _visible(workspace: Workspace) -> list[str]:
    return sorted(
        str(path.relative_to(workspace.root))
        for folder in (workspace.corpora, workspace.queries, workspace.benchmarks, workspace.uploads)
        for path in folder.glob("[!.]*")
    )


def test_the_checkpoint_of_a_training_that_finds_no_space(small: Workspace) -> None:
    import torch
    from safetensors import SafetensorError

    from cdp.base.failures import failure_of
    from cdp.training import checkpoint

    free = shutil.disk_usage(small.root.parent).free
    state = {"weights": torch.zeros(10)}
    folder = small.root / "checkpoints"
    checkpoint.save(folder, 1, state, {})
    for much in (free // 2, free // 4 - 1100, free // 4 - 1000):
        with pytest.raises((OSError, RuntimeError, SafetensorError)) as raised:
            checkpoint.save(folder, 2, {"weights": torch.zeros(much)}, {})
        told = failure_of(raised.value)
        assert told["kind"] == "disk"
        assert told["message"].startswith("The disk is full (")
        assert checkpoint.latest(folder) == folder / "step-000000001"
        assert [path.name for path in folder.iterdir()] == ["step-000000001"], "nothing half-written is left"


@pytest.mark.parametrize("how", ["disk", "library"])
def test_a_worker_says_what_is_full_in_one_sentence(
    workspace: Workspace, how: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its log held the traceback of a library, and the message was an error number."""
    from tests.jobs.workers import fail

    def full(job: object) -> None:
        if how == "disk":
            raise OSError(errno.ENOSPC, "No space left on device", str(workspace.root / "model"))
        raise RuntimeError("[enforce fail at inline_container.cc:626] . No space left on device")

    monkeypatch.setattr(fail, "main", full)
    folder = workspace.job("train-1")
    write_json(folder / "spec.json", {"id": "train-1", "config": {}})
    assert work("tests.jobs.workers.fail", folder) == 1
    failure = read_json(folder / "failure.json")
    named = workspace.root / "model" if how == "disk" else f"a file in {folder}"
    assert failure["message"] == f"The disk is full ({named})."
    told = capfd.readouterr().err
    assert told.splitlines() == [f"{failure['message']} {failure['hint']}"]
    assert "then resume" in told


def test_results_say_in_one_sentence_that_the_catalogue_finds_no_space(small: Workspace) -> None:
    add_evaluation(small, "evaluate-1", "a")
    add_evaluation(small, "evaluate-2", "b")
    ballast = small.root / "ballast"
    for blocks in (0, 3, 8, 40):  # of its file, of its log, of what it writes last
        fill_up(ballast, but=blocks)
        for command in (("results", "list"), ("results", "compare", "--baseline", "a")):
            told = run(*command, code=2).stderr
            assert "Error:" not in told
            assert f"{small.catalog} cannot be used: the disk is full. Free some space" in told
            assert told.count("\n") == 1
        ballast.unlink()
        for path in small.root.glob("catalog*"):
            path.unlink()
    run("results", "list")
