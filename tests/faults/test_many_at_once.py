"""Apps and a command line on one workspace: 45 submits, ingests and reads at once, and no lock error."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cdp import catalog, jobs
from cdp.base.workspace import Workspace
from tests.faults.support import app
from tests.jobs.support import status, until
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

# Acts of each app: a submit, an ingest or a read.
EACH = 15

# What a person types meanwhile; each answers in JSON.
COMMANDS = (
    ("jobs", "list"),
    ("results", "list"),
    ("catalog", "query", "SELECT count(*) FROM scores"),
    ("catalog", "rebuild"),
)


def typed(workspace: Workspace, command: tuple[str, ...]) -> None:
    """Run one command of the command line; it has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "cdp", *command, "--json"],
        capture_output=True, text=True, timeout=120, cwd=REPOSITORY,
        env={**os.environ, "CDP_WORKSPACE": str(workspace.root)},
    )  # fmt: skip
    assert done.returncode == 0, (command, done.stderr)
    json.loads(done.stdout)


@pytest.mark.soak
def test_many_at_once(workspace: Workspace) -> None:
    programs = [app(workspace, "busy", str(seed), str(EACH), CDP_CPU_SLOTS="3") for seed in (1, 2, 3)]
    while any(program.poll() is None for program in programs):
        for command in COMMANDS:
            typed(workspace, command)
    answers = []
    for program in programs:
        out, error = program.communicate(timeout=300)
        assert program.returncode == 0, error
        answers.append(json.loads(out))
    assert [answer["errors"] for answer in answers] == [[], [], []]
    assert sum(sum(answer["done"].values()) for answer in answers) == 3 * EACH

    submitted = [job_id for answer in answers for job_id in answer["submitted"]]
    assert len(set(submitted)) == len(submitted) > 6, "each has an id of its own"
    until(lambda: not any(job.active for job in jobs.list_jobs(workspace)), "every job to end", 300)
    states = {job.id: str(job.state) for job in jobs.list_jobs(workspace) if job.id in submitted}
    assert states == dict.fromkeys(submitted, "finished")

    spans = []
    for job_id in submitted:
        recorded = status(workspace, job_id)
        spans += [(recorded["started_clock"], 1), (recorded["started_clock"] + recorded["seconds"], -1)]
    at_once = highest = 0
    for _, step in sorted(spans):
        at_once += step
        highest = max(highest, at_once)
    assert highest <= 3, "never more at once than there are slots"

    written = {row for answer in answers for row in answer["written"]}
    assert {row["id"] for row in catalog.evaluations(workspace)} == written
    until(lambda: not list((workspace.root / "queue").glob("*.json")), "all places in the queue to be given back")
