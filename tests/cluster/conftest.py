"""A real Ray cluster of a head and two nodes, started once, each of which a test may kill."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.support import REPOSITORY

MEMBERS = ("TrainWorker", "RayTrainWorker")
"""What the workers of Ray Train are called."""

STARTS = 3
"""How often the cluster is started: Ray gives a node 30 seconds to come up, however busy the machine is."""


class SmallCluster:
    """See ``tests.cluster.small``: the process that holds it, and what it obeys."""

    def __init__(self, *cpus: int, env: Mapping[str, str] | None = None) -> None:
        self.process = self._started(cpus, env or {})
        about = self._read()
        self.address: str = about["address"]
        self.nodes: list[str] = about["nodes"]
        self.killed: set[str] = set()

    def _started(self, cpus: tuple[int, ...], env: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.small", *map(str, cpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **env},
        )

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the cluster did not start, or did not obey: exit code {self.process.wait(120)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def submissions(self, job_id: str) -> list[dict[str, Any]]:
        """What Ray knows of a job, the newest first."""
        listed = httpx.get(f"{self.address}/api/jobs/", timeout=30).json()
        mine = [entry for entry in listed if str(entry["submission_id"]).startswith(job_id)]
        return sorted(mine, key=lambda entry: str(entry["submission_id"]), reverse=True)

    def end(self) -> None:
        """Take it down and wait until it is gone."""
        self.process.communicate(timeout=120)

    def kill(self, name: str) -> None:
        """Kill a node by its id, or the head."""
        self._obeyed(f"kill {name}")
        self.killed.add(name)

    def add(self, cpus: int) -> None:
        """Start a new node."""
        self._obeyed(f"add {cpus}")

    def head_returns(self) -> None:
        """Start a new head at the old address, with new nodes, as ``ray start`` does after a head's death."""
        self.nodes = self._obeyed("return")["nodes"]

    def members(self) -> list[str]:
        """The nodes of the Ray workers that live, one for each; Ray hears of a death some seconds later."""
        listed = httpx.get(f"{self.address}/api/v0/actors?detail=true&limit=1000", timeout=30).json()
        actors = listed["data"]["result"]["result"]
        nodes = [a["node_id"] for a in actors if a["state"] == "ALIVE" and a["class_name"] in MEMBERS]
        return [node for node in nodes if node not in self.killed]

    def members_elsewhere(self, job_id: str) -> list[str]:
        """Those of them that are not also the node of the job's own worker."""
        own = {entry["driver_node_id"] for entry in self.submissions(job_id)}
        return [node for node in self.members() if node not in own]

    def _obeyed(self, line: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self._read()


def started(tries: int, *cpus: int, env: Mapping[str, str] | None = None) -> SmallCluster:
    """A cluster whose nodes have these environment variables as well."""
    try:
        return SmallCluster(*cpus, env=env)
    except AssertionError:
        if tries == 1:
            raise
    return started(tries - 1, *cpus, env=env)


def needs_minutes() -> None:
    """Skip what is long where nobody asked for it (``CDP_CLUSTER=1``): ``make test`` takes minutes as it is."""
    needs_ray()
    if os.environ.get("CDP_CLUSTER", "") in ("", "0"):
        pytest.skip("takes minutes: make cluster")


def needs_ray() -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: make cluster")


def of_nodes(*cpus: int, long: bool = True) -> Iterator[SmallCluster]:
    """A cluster with a node for each number of CPUs, for a fixture."""
    (needs_minutes if long else needs_ray)()
    cluster = started(STARTS, *cpus)
    yield cluster
    cluster.end()


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[SmallCluster]:
    yield from of_nodes(1, 1)
