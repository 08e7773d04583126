"""A journey through all stages by commands, on one machine or on a cluster, and what two of them have left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from tests.cli.support import answer as typed_here
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import until, until_state
from tests.support import REPOSITORY

PATIENCE_S = 400.0
NODE_CPUS = 2


@dataclass(frozen=True)
class Upload:
    """What a user brings along."""

    documents: Path
    benchmark: Path
    retriever: Path
    scorer: Path


@dataclass
class Journey:
    """A workspace in which commands are typed, on one machine or on a ``cluster``; ``made`` are the ids of what came of
    them, by stage."""

    workspace: Workspace
    upload: Upload
    cluster: SmallCluster | None = None
    made: dict[str, str] = field(default_factory=dict)
    spawns: bool = True
    """Whether each command is a process of its own, and not run in this one."""

    @property
    def model(self) -> Path:
        return self.workspace.job(self.made["training"]) / "model"

    def type(self, *words: str) -> dict[str, Any]:
        """What a command answers, once it has gone well."""
        if not self.spawns:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("CDP_WORKSPACE", str(self.workspace.root))
                said: dict[str, Any] = typed_here(*words)
            return said
        done = subprocess.run(
            [sys.executable, "-m", "cdp", *words, "--json"],
            env={**os.environ, "CDP_WORKSPACE": str(self.workspace.root)},
            cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stderr, done.stdout[-2000:])
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def begin(self, stage: str, *words: str, **settings: Any) -> str:
        """Start a job by a command; on the cluster with two Ray workers, each with a node of its own."""
        sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        on = self.cluster and ["--on", self.cluster.address, "--resources", f"workers=2,cpus={NODE_CPUS}"]
        self.made[stage] = str(self.type(*words, *sets, *(on or ()))["id"])
        return self.made[stage]

    def end(self, job_id: str, told: str = "") -> None:
        """Wait for a job to finish; on the cluster its log has ``told``."""
        job = until_state(self.workspace, job_id, "finished", "failed", "lost", patience_s=PATIENCE_S)
        log = jobs.read_log(self.workspace, job_id)
        assert job.state == "finished", (job.failure, log)
        assert not self.cluster or told in log, log

    def result(self, stage: str, name: str) -> dict[str, Any]:
        return read_json(self.workspace.job(self.made[stage]) / "results" / f"{name}.json")

    def log(self, job_id: str) -> str:
        """The log of a job that has not ended."""
        job, log = jobs.view(self.workspace, job_id, with_size=False), jobs.read_log(self.workspace, job_id)
        assert job.state in ("queued", "running"), (job.failure, log)
        return log

    def loses_a_node(self, job_id: str, ready: Callable[[], Any] = lambda: True) -> Any:
        """Once it is ``ready``, a node dies that has a Ray worker of the job, but not its own worker; a new one comes.
        What ``ready`` answered last."""
        cluster = self.cluster
        assert cluster is not None

        def elsewhere() -> tuple[str, Any] | None:
            self.log(job_id)
            answer = ready()
            nodes = cluster.members_elsewhere(job_id) if answer else []
            return (nodes[0], answer) if nodes else None

        node, answer = until(elsewhere, "work by a Ray worker on another node than the job's own", PATIENCE_S)
        cluster.kill(node)
        cluster.add(NODE_CPUS)
        return answer


def same_files(here: Journey, there: Journey, stage: str, path: str) -> None:
    found = [(journey.workspace.root / path.format(**journey.made)).read_bytes() for journey in (here, there)]
    assert found[0] == found[1], f"{stage}: {path}"


def same_results(here: Journey, there: Journey, stage: str, name: str, fields: tuple[str, ...]) -> None:
    found = [journey.result(stage, name) for journey in (here, there)]
    for field_ in fields:
        assert found[0][field_] == found[1][field_], f"{stage}: {field_}"


def numbers(journey: Journey) -> list[Any]:
    """All numbers of the comparison, whatever retrievers are called."""
    answer = journey.type("results", "compare", "--baseline", str(journey.upload.retriever))
    found: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                collect(inner)
        elif isinstance(value, float):
            found.append(value)

    collect(answer)
    assert found
    return found
