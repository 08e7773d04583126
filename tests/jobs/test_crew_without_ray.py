"""What is decided about a crew before Ray is asked: who has one, what each worker has, and how parts are drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cdp.base.crew import VARIABLE
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import crew, ray_cluster
from cdp.jobs.crew import _Upcoming
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import RayNode
from cdp.jobs.remote import asked_of
from cdp.jobs.spec import JobSpec
from cdp.services.jobs import devices

SPEC = JobSpec(id="a", kind="test", name="a", created="", sequence=1, module="m", config={}, divides=True)


def test_a_job_without_ray_workers_has_no_crew(tmp_path: Path) -> None:
    assert crew.of(tmp_path, {}) is None
    assert crew.of(tmp_path, {VARIABLE: "{}"}) is None
    own = crew.of(tmp_path, {VARIABLE: json.dumps({"workers": 3, "gpus": 1, "cpus": 2.0})})
    assert own is not None
    assert (own.size, own.gpus, own.asked.cpus) == (3, 1, 2.0)
    own.close()  # nothing was begun


def test_each_worker_has_what_a_whole_job_would_have() -> None:
    place = Place("http://head:8265", workers=4, memory=8.0, accelerator="A100")
    spec = replace(SPEC, device=DeviceRequest.gpus(1))
    assert asked_of(place, spec) == Place(workers=4, cpus=1.0, gpus=1, memory=8.0, accelerator="A100")
    assert asked_of(replace(place, cpus=3.0, workers=1), SPEC) == Place(
        workers=1, cpus=3.0, gpus=0, memory=8.0, accelerator="A100"
    )
    assert asked_of(replace(place, workers=None), spec) is None


def test_a_job_that_is_not_divided_gets_no_workers() -> None:
    place = Place("http://head:8265", workers=4, gpus=2)
    assert SPEC.at(place) == place
    assert replace(SPEC, divides=False).at(place) == Place("http://head:8265", gpus=2)
    assert JobSpec.from_dict(SPEC.to_dict()) == SPEC
    old = {name: value for name, value in SPEC.to_dict().items() if name != "divides"}
    assert not JobSpec.from_dict(old).divides, "a job of an earlier version"


def test_a_ray_worker_has_one_gpu_at_most(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [RayNode("one", True, 8.0, 4, 64.0)]
    monkeypatch.setattr(ray_cluster, "check", lambda address: "2.60.0")
    monkeypatch.setattr(ray_cluster, "list_nodes", lambda address: nodes)
    from cdp.jobs import choosing

    with choosing(Place("http://head:8265", workers=2)):
        assert devices.request(workspace, None, divides=True).count == 1
        assert devices.request(workspace, 4).count == 4, "a job that is not divided"
        with pytest.raises(ConfigError, match="A Ray worker uses one GPU, and 4 are asked for"):
            devices.request(workspace, 4, divides=True)


def test_parts_are_drawn_no_further_ahead_than_there_are_workers() -> None:
    drawn: list[int] = []

    def parts() -> Iterator[int]:
        for number in range(5):
            drawn.append(number)
            yield number * 10

    upcoming = _Upcoming(parts())
    assert (upcoming.at_hand(2), drawn) == (2, [0, 1])
    first = upcoming.take()
    assert first is not None
    assert ((first.number, first.value), drawn) == ((0, 0), [0, 1])
    upcoming.give_back(first)
    assert upcoming.take() is first, "what was lost is done first"
    rest = [part.value for _ in range(4) if (part := upcoming.take())]
    assert (rest, upcoming.take(), upcoming.at_hand(3)) == ([10, 20, 30, 40], None, 0)
