"""A journey through all stages by commands, on one machine or on a cluster, and what two of them have left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs
from cdp.base.workspace import Workspace, read_json
from tests.cli.support import answer as typed_here
from tests.cluster.conftest import SmallCluster
from tests.jobs.support import until_state
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
        """Start a job by a command."""
        sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        on = self.cluster and ["--on", self.cluster.address]
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


def same_files(here: Journey, there: Journey, stage: str, path: str) -> None:
    found = [(journey.workspace.root / path.format(**journey.made)).read_bytes() for journey in (here, there)]
    assert found[0] == found[1], f"{stage}: {path}"


def same_results(here: Journey, there: Journey, stage: str, name: str, fields: tuple[str, ...]) -> None:
    found = [journey.result(stage, name) for journey in (here, there)]
    for field_ in fields:
        assert found[0][field_] == found[1][field_], f"{stage}: {field_}"
