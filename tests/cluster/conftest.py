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

# How often the cluster is started: Ray gives a node 30 seconds to come up, however busy the machine is.
STARTS = 3


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
        assert line, f"the cluster did not start, or did not obey: exit code {self.process.wait(120)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Take it down and wait until it is gone."""
        self.process.communicate(timeout=120)

    def kill(self, name: str) -> None:
        """Kill a node by its id, or the head."""
        self._obeyed(f"kill {name}")

    def add(self, cpus: int) -> None:
        """Start a new node."""
        self._obeyed(f"add {cpus}")

    def head_returns(self) -> None:
        """Start a new head at the old address, with new nodes, as ``ray start`` does after a head's death."""
        self.nodes = self._obeyed("return")["nodes"]

    def node_of(self, pid: int) -> str:
        """The id of the node that has this process of Ray's."""
        listed = httpx.get(f"{self.address}/api/v0/workers?detail=true&limit=1000", timeout=30).json()
        return next(w["node_id"] for w in listed["data"]["result"]["result"] if w["pid"] == pid and w["is_alive"])

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
    if importlib.util.find_spec("ray") is None or os.environ.get("CDP_CLUSTER", "") in ("", "0"):
        pytest.skip("takes minutes: make cluster")


@pytest.fixture(scope="session")
def cluster() -> Iterator[SmallCluster]:
    """A head without CPUs and two nodes with one each."""
    needs_minutes()
    cluster = started(STARTS, 1, 1)
    yield cluster
    cluster.end()
