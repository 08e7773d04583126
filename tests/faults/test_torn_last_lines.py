"""A crash in the midst of writing a line: the lines before it count, and later lines are not glued to the torn one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs
from cdp.base.config import SynthesisConfig
from cdp.base.workspace import Workspace, append_jsonl, read_jsonl
from cdp.jobs import control
from cdp.services import corpora, queries
from tests.faults.support import kill, resumes_without_loss, worker_of
from tests.jobs.support import logged, start, until, until_state, until_step
from tests.support import supervise

RECORDS = [{"step": n, "text": "ünï\ncode"} for n in range(3)]


def test_torn_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    append_jsonl(path, RECORDS)
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = RECORDS if cut == len(whole) else RECORDS[:2]
        assert list(read_jsonl(path)) == kept
        append_jsonl(path, [{"step": "after"}])
        complete = RECORDS if cut >= len(whole) - 1 else RECORDS[:2]
        assert list(read_jsonl(path)) == [*complete, {"step": "after"}]


@pytest.mark.slow
def test_every_jsonl_of_a_job_torn_and_the_job_resumed(workspace: Workspace) -> None:
    job_id = start(workspace, steps=40, hold_at=5)
    until_step(workspace, job_id, 5)
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopped")
    torn = list(workspace.job(job_id).glob("*.jsonl"))
    assert {path.name for path in torn} >= {"metrics.jsonl", "began.jsonl"}
    steps = len(logged(workspace, job_id))
    for path in torn:
        with open(path, "ab") as file:
            file.write(json.dumps({"step": 99, "attempt": 1, "from": 99}).encode()[:-9])
    assert len(logged(workspace, job_id)) == steps, "the torn line is not shown"
    resumes_without_loss(workspace, job_id, 40)


DOCUMENTS = 1700


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_synthesis_killed_in_the_midst_of_a_line(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every document gets its queries once, in the corpus's order, as in a run that nothing interrupted."""
    source = tmp_path / "documents.jsonl"
    text = "The river {n} flows because melting snow feeds it."
    append_jsonl(source, [{"_id": f"d{n}", "title": f"River {n}", "text": text.format(n=n)} for n in range(DOCUMENTS)])
    undisturbed = Workspace(tmp_path / "undisturbed")

    def generate(where: Workspace) -> str:
        corpus = corpora.add(where, source, name="rivers").corpus.id
        config = SynthesisConfig(corpus=corpus, method="diverse", per_doc=2, generator="template")
        return queries.generate(where, config)

    def written(where: Workspace) -> Path | None:
        return next((where.query_set(q.id) / "queries.jsonl" for q in queries.list_query_sets(where)), None)

    torn_id = generate(workspace)
    path = until(lambda: written(workspace), "the query set to exist")
    until(lambda: path.exists() and path.stat().st_size > 10_000, "some queries to be written")
    kill([worker_of(workspace, torn_id)])
    until_state(workspace, torn_id, "failed")
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 25)
    jobs.resume(workspace, torn_id)
    until_state(workspace, torn_id, "finished")
    with monkeypatch.context() as here:
        here.setattr(control, "_start_supervisor", supervise)
        generate(undisturbed)

    def texts(where: Workspace) -> list[tuple[str, list[str]]]:
        path = written(where)
        assert path is not None
        return [(line["document_id"], line["queries"]) for line in lines_of(path)]

    assert texts(workspace) == texts(undisturbed)
    assert [document for document, _ in texts(workspace)] == [f"d{n}" for n in range(DOCUMENTS)]
