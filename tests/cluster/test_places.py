"""Where jobs run: addresses and resources as typed, what a workspace remembers, and what is said without Ray."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cdp import jobs
from cdp.base.errors import CdpError, ClusterError, ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import main
from cdp.jobs import place, ray_cluster
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import RayNode
from tests.jobs.support import start, until_state
from tests.support import REPOSITORY


@pytest.mark.parametrize(
    ("typed", "read"),
    [("", ""), ("here", ""), (" http://Head:8265/ ", "http://head:8265"), ("http://10.0.0.1", "http://10.0.0.1:80"),
     ("https://ray.example.org", "https://ray.example.org:443"), ("http://[::1]:8265", "http://[::1]:8265")],
)  # fmt: skip
def test_an_address_has_one_spelling(typed: str, read: str) -> None:
    assert place.checked_address(typed) == read


@pytest.mark.parametrize(
    "typed",
    ["head:8265", "ray://head:10001", "http://", "http://head:99999", "http://me:secret@head:8265", "http://head:8265/x",
     "http://head:8265?a=b", "http://he ad:8265", "file:///etc/passwd", "auto"],
)  # fmt: skip
def test_what_is_no_address_is_refused(typed: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a Ray cluster"):
        place.checked_address(typed)


def test_resources_are_read_and_written_alike() -> None:
    asked = Place.parse("http://head:8265", " cpus=4, gpus=1,memory=16.5,accelerator=A100,workers=3")
    assert (asked.cpus, asked.gpus, asked.memory, asked.accelerator, asked.workers) == (4.0, 1, 16.5, "A100", 3)
    assert asked.resources == "cpus=4,gpus=1,memory=16.5,accelerator=A100,workers=3"
    assert Place.from_dict(asked.to_dict()) == asked
    assert Place().to_dict() == {}


@pytest.mark.parametrize(
    "typed",
    ["gpus=1.5", "cpus=-1", "cpus=many", "memory=nan", "disk=3", "accelerator=a b", "gpus", "workers=0",
     "workers=1.5"],
)  # fmt: skip
def test_resources_that_cannot_be_asked_for(typed: str) -> None:
    with pytest.raises(ConfigError, match="nothing to ask of a cluster"):
        Place.parse("http://head:8265", typed)


@pytest.mark.parametrize("asked", ["gpus=1", "workers=2"])
def test_resources_are_not_asked_of_this_machine(asked: str) -> None:
    with pytest.raises(ConfigError, match="run on this machine"):
        Place.parse("", asked)


@pytest.mark.parametrize("damaged", [None, [], {"address": 3, "cpus": "x", "gpus": 1.5}, {"unknown": 1}])
def test_a_damaged_record_asks_for_nothing(damaged: Any) -> None:
    assert Place.from_dict(damaged) == Place()


def test_the_workspace_remembers_and_a_command_chooses(workspace: Workspace) -> None:
    assert place.current(workspace) == Place()
    own, other = Place("http://own:8265", gpus=1), Place("http://other:8265")
    place.set_for_workspace(workspace, own)
    assert place.current(workspace) == own
    with place.choosing(other):
        assert place.current(workspace) == other
        with place.choosing(Place()):
            assert place.current(workspace) == Place()
    assert place.current(workspace) == own
    place.set_for_workspace(workspace, Place())
    assert place.current(workspace) == Place()


def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))


def test_without_ray_a_cluster_says_what_installs_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_ray(monkeypatch)
    assert main(["cluster", "use", "http://127.0.0.1:9"]) == 2
    assert main(["demo"]) == 0
    assert main(["evaluate", "bm25", "--benchmark", "demo", "--on", "http://127.0.0.1:9"]) == 2
    lines = capsys.readouterr().err.splitlines()
    told = [line for line in lines if line.startswith("cdp:")]
    assert len(told) == 2
    assert all("pip install -r requirements-cluster.txt -c constraints.txt" in line for line in told)
    assert not list(workspace.jobs.glob("*")), "nothing was begun"


@pytest.mark.slow
def test_a_job_on_this_machine_imports_no_ray(workspace: Workspace) -> None:
    """Neither whoever submits and follows it, nor its supervisor's modules."""
    code = (
        "import sys; from cdp import cli, jobs, services; import cdp.jobs.supervisor, cdp.services.clusters;"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'ray', 'httpx', 'grpc', 'aiohttp'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.strip() == "[]"


NODES = [
    RayNode("head", True, 0.0, 0, 8.0),
    RayNode("one", False, 8.0, 0, 64.0),
    RayNode("two", False, 4.0, 2, 32.0, ("A100",)),
]


@pytest.mark.parametrize(
    ("asked", "gpus", "cpus", "told"),
    [(Place("c"), 0, 8.0, ""), (Place("c", memory=32, accelerator="A100"), 2, 4.0, ""),
     (Place("c"), 3, 1.0, "has 3 GPUs"), (Place("c", accelerator="H100"), 1, 1.0, "the accelerator H100"),
     (Place("c"), 1, 8.0, "has 8 CPUs beside the rest"), (Place("c", memory=100), 0, 1.0, "100 GB of memory")],
)  # fmt: skip
def test_what_no_node_has_is_said_before_it_is_asked_for(asked: Place, gpus: int, cpus: float, told: str) -> None:
    if not told:
        ray_cluster.check_fits(asked, gpus, cpus, NODES)
        return
    with pytest.raises(ConfigError, match=told) as error:
        ray_cluster.check_fits(asked, gpus, cpus, NODES)
    assert "It has: 3 nodes, 12 CPUs, 2 GPUs (A100), 104 GB memory." in error.value.hint


@pytest.mark.parametrize(
    ("workers", "more", "gpus", "cpus", "room"),
    [(12, {}, 0, 1.0, 12), (13, {}, 0, 1.0, 12), (3, {}, 0, 4.0, 3), (4, {}, 0, 4.0, 3), (3, {}, 1, 1.0, 2),
     (6, {"memory": 20}, 0, 1.0, 4), (9, {"accelerator": "A100"}, 0, 0.0, 9), (5, {"accelerator": "A100"}, 0, 1.0, 4)],
)  # fmt: skip
def test_the_workers_of_a_training_have_room_together(
    workers: int, more: dict[str, Any], gpus: int, cpus: float, room: int
) -> None:
    asked = Place("c", workers=workers, **more)
    if workers <= room:
        ray_cluster.check_fit_together(asked, gpus, cpus, NODES)
        return
    with pytest.raises(ConfigError, match=f"{workers} workers are at work together.* has room for {room}") as error:
        ray_cluster.check_fit_together(asked, gpus, cpus, NODES)
    assert f"--resources workers={room}" in error.value.hint


@pytest.mark.parametrize(
    ("log", "told", "cure"),
    [("/bin/python: No module named cdp", "has no cdp", "Install CDP Studio"),
     ("Traceback\nModuleNotFoundError: No module named 'duckdb'", "has no duckdb", "Install CDP Studio"),
     ("sh: 1: exec: python: not found", "sh: 1: exec: python: not found", ""), ("", "nothing was said", "")],
)  # fmt: skip
def test_why_a_command_did_not_begin(log: str, told: str, cure: str) -> None:
    error = ray_cluster.cannot_begin(log)
    assert told in error.message
    assert cure in error.hint


def test_a_wrong_address_is_said_at_once(workspace: Workspace) -> None:
    pytest.importorskip("ray")
    with place.choosing(Place("http://127.0.0.1:9")), pytest.raises(ClusterError, match="No Ray cluster answers at"):
        start(workspace)
    assert not list(workspace.jobs.glob("*"))


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "xn--", "ü" * 80])
def test_a_host_that_no_name_can_be(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "require", lambda: None)
    with pytest.raises(ClusterError, match="No Ray cluster answers at"):
        ray_cluster.check(f"http://{host}:8265")


@pytest.mark.slow
def test_a_resume_goes_where_the_attempt_before_ran_or_where_it_is_told(workspace: Workspace) -> None:
    job_id = start(workspace, "fail", how="data")
    until_state(workspace, job_id, "failed")
    place.set_for_workspace(workspace, Place("http://own:8265"))
    assert jobs.place_of(workspace, job_id) == Place(), "the workspace's choice is for new jobs"
    with place.choosing(Place("http://other:8265")):
        assert jobs.place_of(workspace, job_id).address == "http://other:8265"
        with pytest.raises(CdpError):  # no such cluster, or no Ray
            jobs.resume(workspace, job_id)
    assert jobs.view(workspace, job_id).attempt == 1
    assert jobs.resume(workspace, job_id) == 2
    assert until_state(workspace, job_id, "failed").place == Place()


def test_jobs_for_a_cluster_wait_for_no_device_of_this_machine() -> None:
    from cdp.jobs.devices import DeviceRequest
    from cdp.jobs.queue import Ticket, grant

    for request in (DeviceRequest.cpu(), DeviceRequest.gpus(4), DeviceRequest.light()):
        assert request.at(Place("http://head:8265")).lane == "cluster"
        assert request.at(Place()) == request
    elsewhere = replace(DeviceRequest.gpus(4), elsewhere=True)
    tickets = [Ticket(1, "a", DeviceRequest.cpu(), ("cpu",)), *(Ticket(n, str(n), elsewhere) for n in range(2, 9))]
    assert [grant(tickets, n, slots=1, gpus=[]) for n in range(2, 9)] == [("cluster",)] * 7
