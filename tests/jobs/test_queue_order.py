"""Who may run next: first come, first served, per lane; and the same with real processes."""

from __future__ import annotations

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.queue import CPU, LIGHT, Ticket, grant
from tests.jobs.support import start, status, until, until_state, until_step

A, B, C, D = "GPU-a", "GPU-b", "GPU-c", "GPU-d"
cpu, gpus, light = DeviceRequest(), DeviceRequest.gpus, DeviceRequest(idle=True)


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
def test_two_jobs_run_at_once_and_the_others_in_the_order_of_submission(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDP_CPU_SLOTS", "2")
    first, second = (start(workspace, steps=2, hold_at=1) for _ in range(2))
    third, fourth = (start(workspace, steps=1) for _ in range(2))
    for job_id in (first, second):
        until_step(workspace, job_id, 1)
    assert [jobs.view(workspace, j).position for j in (first, second, third, fourth)] == [None, None, 1, 2]
    assert [job.id for job in jobs.list_jobs(workspace)] == [fourth, third, second, first]
    light_one = start(workspace, steps=1, device=DeviceRequest(idle=True))
    until_state(workspace, light_one, "finished")
    assert jobs.view(workspace, third).state == jobs.view(workspace, fourth).state == "queued"

    assert jobs.stop(workspace, third), "it frees its place in the queue"
    stopped = until_state(workspace, third, "stopped")
    assert stopped.started == ""
    assert not (workspace.job(third) / "worker.log").exists()
    until(lambda: jobs.view(workspace, fourth).position == 1, "the fourth job to move up")
    (workspace.job(second) / "go").touch()
    until_state(workspace, fourth, "finished")
    assert jobs.view(workspace, first).state == "running"
    ended = status(workspace, second)["started_clock"] + status(workspace, second)["seconds"]
    assert ended <= status(workspace, fourth)["started_clock"] + 0.01
    (workspace.job(first) / "go").touch()
    until_state(workspace, first, "finished")
