"""The studies of the reproduction, in the order in which they run, and running them: each is started or resumed.

The estimates are for two cores. Measured: a training of static-minilm with its evaluation on the twelve English
benchmarks takes 4 CPU seconds; the first of a process takes 13 more, for it tokenises their 45,000 texts for all that
follow; starting and reading take 6. ``docs/REPRODUCTION.md`` quotes both these and what was measured.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from cdp import jobs
from cdp.base.workspace import Workspace, write_json
from cdp.jobs import JobView
from cdp.services import studies
from cdp.studies.config import read_plan
from reproduction import criteria


@dataclass(frozen=True)
class Stage:
    """A study: its plan by name, about how many minutes it takes on two cores and from what that follows,
    with a reserve of a third and more, and what it needs to be there."""

    plan: str
    minutes: int
    arithmetic: str = ""
    needs: tuple[str, ...] = ()
    changes: dict[str, str] = field(default_factory=dict)


RECORDED = "recorded queries"

# Trainings of static-minilm take 90 steps, about 5 s with their evaluation on sixteen judged sets.
STAGES = (
    Stage("recorded-contrast", 12, "120 trainings × 5 s and 19 s to start", (RECORDED,)),
    Stage("loss-contrast", 18, "160 trainings × 6 s besides those of recorded-contrast; mining 1 min", (RECORDED,)),
    Stage("human-queries", 6, "50 trainings × 5 s and 19 s to start"),
    Stage("weighting-grid", 9, "90 trainings × 5 s besides those that are there", (RECORDED,)),
    Stage("human-languages", 6, "70 trainings × 4 s"),
    Stage("weighting-languages", 3, "30 trainings × 4 s"),
    Stage("reasoning-grid", 4, "36 trainings × 6 s, RI encodes twice"),
    Stage("template-contrast", 12, "120 trainings × 5 s; 1,800 documents by template 1 min"),
    Stage("recorded-minilm", 70, "16 trainings × 1,440 pairs / 15 a second and 2,700 texts / 60 a second", (RECORDED,)),
    Stage("recorded-late-interaction", 180, "64 trainings × 2 to 2.5 min: 1,440 pairs of 128 tokens", (RECORDED,)),
)

# Plans whose criteria were committed before a run that is still to come: `cdp study run PLAN` on this workspace.
PLANNED: tuple[str, ...] = ()

# The form for tests: the demo's own queries, enough to draw every table of the document.
SMALL = (
    Stage("single-query", 1, changes={"benchmarks": "demo:test, demo-cw-0to6, demo-cw-from7", "seeds": "0, 1",
                                      "epochs": "1", "steps": "10", "gpus": "0"}),
)  # fmt: skip

POLL_S = 2.0

# In a study's job folder: its plan and its claims' criteria as they were when it began.
FROZEN = "criteria.json"


GO_ON = "the same command goes on from here"


def run(workspace: Workspace, chosen: Sequence[Stage], missing: Collection[str], *, hours: float) -> bool:
    """Run the stages one after the other: what is finished is left, what was stopped goes on. False where the time was
    up, a study was stopped, or a stage could not finish.

    A study that fails does not keep the next from its turn; one that somebody stopped does. Ctrl-C stops the study.
    """
    until = time.monotonic() + 3600 * hours
    whole = True
    for stage in chosen:
        lacking = [need for need in stage.needs if need in missing]
        if lacking:
            print(f"{stage.plan}: left out, for there are no {', '.join(lacking)}", flush=True)
            continue

        view = started(workspace, stage)
        print(f"{stage.plan}: {view.id}, about {stage.minutes} minutes on two cores", flush=True)

        try:
            ended = follow(workspace, view.id, until)
        except KeyboardInterrupt:
            jobs.stop(workspace, view.id)
            jobs.wait(workspace, view.id)
            print(f"{stage.plan}: interrupted; {GO_ON}", flush=True)
            return False

        if ended is None:
            print(f"{stage.plan}: the time is up; {GO_ON}", flush=True)
            return False

        if ended == "stopped":
            print(f"{stage.plan}: stopped; {GO_ON}", flush=True)
            return False

        print(f"{stage.plan}: {ended}", flush=True)
        whole = whole and ended == "finished"

    return whole


def follow(workspace: Workspace, job_id: str, until: float) -> str | None:
    """The state in which a study ended; None where it was stopped here, ``until`` having come."""
    while jobs.view(workspace, job_id, with_size=False).active:
        if time.monotonic() > until:
            jobs.stop(workspace, job_id)
            jobs.wait(workspace, job_id)
            return None
        time.sleep(POLL_S)
    return str(jobs.view(workspace, job_id, with_size=False).state)


def started(workspace: Workspace, stage: Stage) -> JobView:
    """The stage's study: the one that is there, resumed where it is not finished, else a new one."""
    there = find(workspace, stage)
    if there is None:
        config = read_plan(stage.plan, {**stage.changes, "name": stage.plan})
        held = criteria.frozen(stage.plan, criteria.read())
        job_id = studies.run(workspace, config).job_id
        write_json(workspace.job(job_id) / FROZEN, held)
        return jobs.view(workspace, job_id, with_size=False)

    if not there.active and str(there.state) != "finished":
        for before in jobs.load_spec(workspace, there.id).after:  # the jobs that write its queries
            view = jobs.view(workspace, before, with_size=False)
            if not view.active and str(view.state) != "finished":
                jobs.resume(workspace, before)
        jobs.resume(workspace, there.id)

    return jobs.view(workspace, there.id, with_size=False)


def find(workspace: Workspace, stage: Stage) -> JobView | None:
    """The newest study of a stage."""
    return next((view for view in studies.list_studies(workspace) if view.name == stage.plan), None)
