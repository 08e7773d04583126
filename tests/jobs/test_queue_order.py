"""Who may run next: first come, first served, per lane; and the same with real processes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_jsonl
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.queue import CPU, LIGHT, Ticket, grant
from tests.jobs.support import start, status, until, until_state

A, B, C, D = "GPU-a", "GPU-b", "GPU-c", "GPU-d"
cpu, gpus, light = DeviceRequest.cpu(), DeviceRequest.gpus, DeviceRequest.light()


def tickets(*entries: tuple[DeviceRequest, tuple[str, ...]] | DeviceRequest) -> list[Ticket]:
    """Tickets numbered from 1; a pair of request and devices stands for a running job."""
    return [
        Ticket(n, f"job-{n}", *(entry if isinstance(entry, tuple) else (entry,))) for n, entry in enumerate(entries, 1)
    ]


RUNNING_CPU = (cpu, (CPU,))

GRANTS = [
    ("a free slot", tickets(cpu), 1, (CPU,)),
    ("the slot is taken", tickets(RUNNING_CPU, cpu), 2, None),
    ("someone is ahead", tickets(cpu, cpu), 2, None),
    ("a GPU job does not take the CPU slot", tickets((gpus(1), (A,)), cpu), 2, (CPU,)),
    ("any GPUs, in order", tickets(gpus(2)), 1, (A, B)),
    ("the one ahead takes the first two", tickets(gpus(2), gpus(1)), 2, (C,)),
    ("too few are free", tickets((gpus(3), (A, B, C)), gpus(2)), 2, None),
    ("a small job does not starve a large one", tickets((gpus(3), (A, B, C)), gpus(2), gpus(1)), 3, None),
    ("past one that is not ready", [Ticket(1, "x", cpu, (), False), Ticket(2, "y", cpu)], 2, (CPU,)),
    ("a light job waits for no CPU slot", tickets(RUNNING_CPU, cpu, light), 3, (LIGHT,)),
    ("a CPU slot is free beside a light job", tickets((light, (LIGHT,)), cpu), 2, (CPU,)),
    ("light jobs are not without limit", tickets(*[(light, (LIGHT,))] * 4, light), 5, None),
    ("not ready itself", [Ticket(1, "x", cpu, (), False)], 1, None),
]


@pytest.mark.parametrize(("queue", "mine", "expected"), [g[1:] for g in GRANTS], ids=[g[0] for g in GRANTS])
def test_grant(queue: list[Ticket], mine: int, expected: tuple[str, ...] | None) -> None:
    assert grant(queue, mine, slots=1, gpus=[A, B, C, D]) == expected


def test_two_slots_take_two() -> None:
    assert grant(tickets(RUNNING_CPU, cpu, cpu), 2, slots=2, gpus=[]) == (CPU,)
    assert grant(tickets(RUNNING_CPU, cpu, cpu), 3, slots=2, gpus=[]) is None


@pytest.mark.slow
def test_jobs_run_in_the_order_of_submission(workspace: Workspace) -> None:
    ids = [start(workspace, steps=2, name=f"n{i}") for i in range(3)]
    views = [until_state(workspace, job_id, "finished") for job_id in ids]
    order = sorted(ids, key=lambda job_id: status(workspace, job_id)["started_clock"])
    assert order == ids
    for earlier, later in pairwise(ids):
        ended = status(workspace, earlier)["started_clock"] + status(workspace, earlier)["seconds"]
        assert ended <= status(workspace, later)["started_clock"] + 0.01, "one slot: one at a time"
    assert [view.id for view in jobs.list_jobs(workspace)] == ids[::-1]
    assert {view.state for view in views} == {"finished"}


@pytest.mark.slow
def test_positions_are_shown_and_a_stop_in_the_queue_frees_the_place(workspace: Workspace) -> None:
    first = start(workspace, steps=100_000)
    until_state(workspace, first, "running")
    second, third = start(workspace, steps=1), start(workspace, steps=1)
    assert [jobs.view(workspace, j).position for j in (first, second, third)] == [None, 1, 2]
    assert jobs.stop(workspace, second)
    stopped = until_state(workspace, second, "stopped")
    assert stopped.started == ""
    assert not (workspace.job(second) / "worker.log").exists()
    until(lambda: jobs.view(workspace, third).position == 1, "the third job to move up")
    jobs.stop(workspace, first)
    until_state(workspace, first, "stopped")
    until_state(workspace, third, "finished")
    assert list(read_jsonl(workspace.job(third) / "began.jsonl"))


@pytest.mark.slow
def test_two_slots_run_two_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDP_CPU_SLOTS", "2")
    ids = [start(workspace, steps=100_000) for _ in range(3)]
    until_state(workspace, ids[0], "running")
    until_state(workspace, ids[1], "running")
    assert jobs.view(workspace, ids[2]).state == "queued"
    for job_id in ids:
        jobs.stop(workspace, job_id)
    for job_id in ids:
        until_state(workspace, job_id, "stopped")


@pytest.mark.slow
def test_a_light_job_runs_beside_a_long_one(workspace: Workspace) -> None:
    long = start(workspace, steps=100_000)
    until_state(workspace, long, "running")
    light_one = start(workspace, steps=1, device=DeviceRequest.light())
    until_state(workspace, light_one, "finished")
    assert jobs.view(workspace, long).state == "running"
    jobs.stop(workspace, long)
    until_state(workspace, long, "stopped")
