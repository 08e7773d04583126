"""A training on several nodes, as its parts: how large a group starts again, what a process of it does and reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdp import __version__
from cdp.base import worker
from cdp.base.errors import ClusterError
from cdp.base.worker import GROUP_VARIABLE, Job
from cdp.base.workspace import read_json_or_none, write_json
from cdp.jobs import group, handover, rank
from cdp.jobs.group import LOSSES, Group
from cdp.jobs.launchers import GROUP, command
from cdp.jobs.node import PAD_VARIABLE
from cdp.jobs.place import Place
from cdp.jobs.remote import own_of
from cdp.jobs.spec import JobSpec, read_spec


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a job whose spec is whole, as a process of a group on another node finds it."""
    for name in ("CDP_SUPERVISOR_PID", "CDP_ATTEMPT", "RANK", GROUP_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(group, "LOOK_S", 0.0)
    monkeypatch.setattr(group, "SETTLE_S", 0.0)
    path = tmp_path / "jobs" / "j"
    spec = JobSpec(id="j", kind="test", name="j", created="", sequence=1, module="m", config={})
    write_json(path / "spec.json", spec.to_dict())
    return path


def group_of(folder: Path, monkeypatch: pytest.MonkeyPatch, rooms: list[int], workers: int = 4) -> Group:
    """A group whose nodes have room for so many processes, look by look."""
    made = Group("m", folder, Place("http://head:8265", workers=workers))
    monkeypatch.setattr(made, "_room", lambda: rooms.pop(0))
    return made


def test_a_group_begins_whole_and_goes_on_with_what_divides_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = [3, 5, 3, 4, 0, 1]
    made = group_of(folder, monkeypatch, rooms)
    assert made._wait_for_room(losses=0) == 4, "3 are too few to begin with"
    assert rooms == [3, 4, 0, 1]
    assert [made._wait_for_room(losses=1) for _ in range(3)] == [2, 4, 1]
    assert rooms == []
    monkeypatch.setenv("CDP_ATTEMPT", "2")
    assert group_of(folder, monkeypatch, [3])._wait_for_room(losses=0) == 2, "a node is gone since the attempt before"
    made.job.ask_to_stop()
    assert made._wait_for_room(losses=1) == 0


def ends(made: Group, monkeypatch: pytest.MonkeyPatch, *fits: Callable[[], str | None]) -> list[tuple[int, int]]:
    """What the group runs, (size, losses) each time, where each run does one of ``fits``; the last one for ever."""
    ran: list[tuple[int, int]] = []

    def fit(size: int, losses: int) -> str | None:
        ran.append((size, losses))
        return fits[min(len(ran), len(fits)) - 1]()

    monkeypatch.setattr(made, "_fit", fit)
    return ran


def test_a_group_starts_again_until_its_worker_has_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = group_of(folder, monkeypatch, [4, 2, 2])

    def finish() -> None:
        write_json(folder / "outcome.json", {"outcome": "finished", "attempt": 1})

    ran = ends(made, monkeypatch, lambda: "a node died", lambda: "", finish)
    assert made.run() == 0
    assert ran == [(4, 0), (2, 1), (2, 1)], "to wait for room is no loss"


def test_a_group_does_not_start_again_after_a_failure_of_its_worker(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = group_of(folder, monkeypatch, [4])

    def diverge() -> str:
        write_json(folder / "failure.json", {"kind": "bad settings", "attempt": 1})
        return "rank 2 ended with exit code 1"

    ran = ends(made, monkeypatch, diverge)
    assert made.run() == 1
    assert ran == [(4, 0)]


def test_a_group_that_is_lost_again_and_again_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = group_of(folder, monkeypatch, [4] * 20)
    ran = ends(made, monkeypatch, lambda: "killed")
    with pytest.raises(ClusterError, match=rf"lost {LOSSES + 1} times, the last one so: killed"):
        made.run()
    assert len(ran) == LOSSES + 1


def test_keys_and_settings_reach_the_processes_and_nothing_of_this_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf-1")
    monkeypatch.setenv("CDP_SUPERVISOR_PID", "7")
    monkeypatch.setenv("PATH_OF_MINE", "x")
    values = Group("m", folder, Place("http://head:8265", workers=2))._values(1)
    assert (values["CDP_ATTEMPT"], values["CDP_GROUP_START"]) == ("1", "1")
    assert "hf-1" not in str(values)
    assert handover.look(folder, values[PAD_VARIABLE])["HF_TOKEN"] == "hf-1"
    assert values["ACCELERATE_USE_CPU"] == "true"
    assert not {"CDP_SUPERVISOR_PID", "PATH_OF_MINE", "PATH"} & values.keys()


def test_a_process_runs_the_module_in_its_frame_and_says_how_it_ended(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sketch_of_a_worker.py").write_text(
        "from cdp.base.errors import InputError\nfrom cdp.base.worker import run\n"
        "def main(job):\n    if (job.folder / 'bad').exists(): raise InputError('a bad line')\n"
        "    job.result('seen', {'main': job.is_main})\n"
        "if __name__ == '__main__': run(main)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(rank, "private_files", lambda: None)
    monkeypatch.setattr(worker, "survives_a_full_disk", lambda: None)
    monkeypatch.setenv("RANK", "1")

    def work(attempt: int, version: str = __version__) -> None:
        rank.work("sketch_of_a_worker", folder, attempt, version, {"CDP_ATTEMPT": str(attempt)})

    work(1)
    assert read_json_or_none(folder / "results" / "seen.json") is None, "the first process alone writes"
    (folder / "bad").touch()
    with pytest.raises(RuntimeError, match="rank 1 ended with exit code 1"):
        work(2)
    assert json.loads((folder / "failure.json").read_text())["message"] == "a bad line"
    with pytest.raises(ClusterError, match=r"the group was started by 0\.0\.1"):
        work(3, "0.0.1")
    assert json.loads((folder / "failure.json").read_text())["attempt"] == 3, "which is not tried again"
    work(3)  # the group is started again before anybody has looked: it does not fail once more


def test_who_lost_another_process_does_not_fail_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = {"__name__": "torch.distributed.distributed_c10d"}
    exec("def barrier(): raise RuntimeError('Connection closed by peer')", library)
    monkeypatch.setattr(worker, "survives_a_full_disk", lambda: None)
    monkeypatch.setenv("RANK", "1")

    def main(job: Job) -> None:
        library["barrier"]()  # type: ignore[operator]

    def reported() -> bool:
        with pytest.raises(SystemExit):
            worker.run(main, [str(folder)])
        return (folder / "failure.json").exists()

    monkeypatch.setenv(GROUP_VARIABLE, "stop.group.1")
    assert not reported()
    monkeypatch.delenv(GROUP_VARIABLE)
    assert reported(), "on one machine it is the only word there is"


def test_a_process_of_a_group_hears_of_a_stop_by_its_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GROUP_VARIABLE, "stop.group.1")
    job = Job(folder)
    assert not job.stop_requested()
    (folder / "stop.group.1").touch()
    assert job.stop_requested()


def test_what_starts_a_group_takes_nothing_from_it(folder: Path) -> None:
    spec = replace(read_spec(folder), launcher="accelerate", divides=True)
    asked = Place("http://head:8265", workers=4, cpus=2, gpus=1, memory=16, accelerator="A100")
    assert own_of(asked, spec) == Place("http://head:8265", cpus=0.0, gpus=0)
    whole = own_of(replace(asked, workers=None), spec)
    assert (whole.cpus, whole.memory, whole.accelerator) == (2, 16, "A100")
    line = command(replace(spec, launcher=GROUP, module="cdp.workers.training"), folder, ("cpu",))
    assert line[1:] == ["-m", "cdp.jobs.group", "cdp.workers.training", str(folder)]
