"""A crash in the midst of writing a line: the lines before it count, and later lines are not glued to the torn one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import jobs
from cdp.workspace import Workspace, append_jsonl, read_jsonl
from tests.faults.support import resumes_without_loss
from tests.jobs.support import start, until_state, until_step

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
    job_id = start(workspace, steps=40, step_s=0.02)
    until_step(workspace, job_id, 5)
    jobs.stop(workspace, job_id)
    until_state(workspace, job_id, "stopped")
    torn = list(workspace.job(job_id).glob("*.jsonl"))
    assert {path.name for path in torn} >= {"metrics.jsonl", "began.jsonl"}
    steps = len(jobs.read_metrics(workspace, job_id))
    for path in torn:
        with open(path, "ab") as file:
            file.write(json.dumps({"step": 99, "attempt": 1, "from": 99}).encode()[:-9])
    assert len(jobs.read_metrics(workspace, job_id)) == steps, "the torn line is not shown"
    resumes_without_loss(workspace, job_id, 40)
