"""Reading a worker's log: its end, what is new, and what contains a text."""

from __future__ import annotations

from cdp import jobs
from cdp.base.workspace import Workspace
from tests.pages.support import ended_job


def with_log(workspace: Workspace, content: bytes) -> str:
    folder = ended_job(workspace, "train-1", "training", {})
    (folder / "worker.log").write_bytes(content)
    return folder.name


def test_log(workspace: Workspace) -> None:
    lines = [f"line {n} ä".encode() for n in range(1000)]
    job_id = with_log(workspace, b"\n".join(lines) + b"\n")
    tail = jobs.follow_log(workspace, job_id, tail_bytes=100)[0]
    assert tail.startswith("line 9")
    assert tail.endswith("line 999 ä\n")
    assert jobs.follow_log(workspace, job_id)[0].count("\n") == 1000

    _, offset = jobs.follow_log(workspace, job_id)
    with open(workspace.job(job_id) / "worker.log", "ab") as file:
        file.write(b"fresh\n")
    new, after = jobs.follow_log(workspace, job_id, offset=offset)
    assert (new, after) == ("fresh\n", offset + 6)
    assert jobs.follow_log(workspace, job_id, offset=after) == ("", after)
