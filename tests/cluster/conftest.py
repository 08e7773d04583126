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

STARTS = 3
"""How often the cluster is started: Ray gives a node 30 seconds to come up, however busy the machine is."""


class SmallCluster:
    """See ``tests.cluster.small``: the process that holds it, and what it obeys."""

    def __init__(self, *cpus: int, env: Mapping[str, str] | None = None) -> None:
        self.process = self._started(cpus, env or {})
        about = self._read()
        self.address: str = about["address"]
        self.nodes: list[str] = about["nodes"]

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
        assert line, f"the cluster did not start: exit code {self.process.wait(120)}"
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
        assert self.process.stdin is not None
        self.process.stdin.write(f"kill {name}\n")
        self.process.stdin.flush()
        self._read()


def started(tries: int, *cpus: int, env: Mapping[str, str] | None = None) -> SmallCluster:
    """A cluster whose nodes have these environment variables as well."""
    try:
        return SmallCluster(*cpus, env=env)
    except AssertionError:
        if tries == 1:
            raise
    return started(tries - 1, *cpus, env=env)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[SmallCluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: make cluster")
    cluster = started(STARTS)
    yield cluster
    cluster.end()


@pytest.fixture(scope="module")
def wide_cluster() -> Iterator[SmallCluster]:
    """A head and three nodes with two CPUs each, for a job with two Ray workers: one node may be killed."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: make cluster")
    cluster = started(STARTS, 2, 2, 2)
    yield cluster
    cluster.end()
