"""A study's steps over several processes: each step is a part that a worker of a crew does, and writes its record.

A step is BM25, an untrained retriever or one condition. A worker reads what the study shares once, and keeps the pairs
and tokens of the condition before: neighbours in the plan often have the same. Records are files with names by their
contents, so a step that is done again, after the death of a node, is the same record; its training goes on from its
checkpoint. What only one may write comes back: metrics, the count of what was trained, the items that failed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.crew import Crew, Stopped, kept
from cdp.base.failures import Failures
from cdp.base.worker import Job
from cdp.base.workspace import read_jsonl
from cdp.studies.inputs import Inputs
from cdp.studies.steps import STEP_S, Step, steps

if TYPE_CHECKING:
    from cdp.studies.run import Study

PARTS = "parts"
"""The folder within the job's for the items that failed within a step, until they are in the job's own list."""


@dataclass
class Tally:
    """What became of steps."""

    done: int = 0
    trained: int = 0
    reused: int = 0
    failed: int = 0
    metrics: list[dict[str, Any]] = field(default_factory=list)


def execute(job: Job, inputs: Inputs, crew: Crew) -> Tally:
    """Do all steps that are not done yet. Returns early on a stop."""
    todo = list(steps(inputs.config, inputs.conditions))
    parts = [(str(job.folder), job.attempt, number, step) for number, step in enumerate(todo)]
    tally = Tally()
    shutil.rmtree(job.folder / PARTS, ignore_errors=True)  # of an attempt that was cut off
    failed = _FailedItems(job)

    def report(done: int) -> None:
        job.progress("conditions", done, len(todo), "conditions", f"by {crew.size} workers", next_within_s=STEP_S)

    report(0)
    try:
        for number, part in crew.each(do, parts, should_stop=job.stop_requested, on_done=report):
            tally.done += part.done
            tally.trained += part.trained
            tally.reused += part.reused
            tally.failed += part.failed
            for values in part.metrics:
                job.metric(tally.done, **values)
            failed.take(_file(job.folder, number))
    except Stopped:
        print("Stopped: what is done is kept, and a training goes on from its checkpoint.", flush=True)
    shutil.rmtree(job.folder / PARTS, ignore_errors=True)
    return tally


def do(part: tuple[str, int, int, Step]) -> Tally:
    """One step of the study in this folder, in a worker of the crew."""
    folder, attempt, number, step = part
    member, study = kept("study", (folder, attempt), partial(_begun, Path(folder)))
    before = Tally(study.done, study.trained, study.reused, study.failed)
    member.number, member.metrics = number, []
    study.do(step)
    return Tally(
        study.done - before.done,
        study.trained - before.trained,
        study.reused - before.reused,
        study.failed - before.failed,
        member.metrics,
    )


def _begun(folder: Path) -> tuple[_Member, Study]:
    from cdp.studies.run import Study
    from cdp.training.optimiser import keep_freed_memory

    keep_freed_memory()
    member = _Member(folder)
    return member, Study(member, Inputs.of(member))


class _Member(Job):
    """The job as a worker of its crew sees it: it writes nothing that the job's own worker writes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_main = False
        self.number = 0
        self.metrics: list[dict[str, Any]] = []

    def metric(self, step: int, **values: float | int | str | None) -> None:
        self.metrics.append(values)

    def failures(self, stage: str, *, unit: str = "document", path: Path | None = None, keep: bool = False) -> Failures:
        return Failures(path or _file(self.folder, self.number), stage, unit=unit, keep=keep)


def _file(folder: Path, number: int) -> Path:
    return folder / PARTS / f"{number}.jsonl"


class _FailedItems:
    """Brings the items that failed within steps into the job's list, each once however many workers met it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._of: dict[str, Failures] = {}
        self._seen: set[tuple[str, str]] = set()

    def take(self, path: Path) -> None:
        for line in self._lines(path):
            stage, item = str(line.get("stage", "")), str(line.get("id", ""))
            if stage not in self._of:
                self._of[stage] = self.job.failures(stage, unit=str(line.get("unit", "document")))
            if (stage, item) not in self._seen:
                self._seen.add((stage, item))
                self._of[stage].write(line)
        path.unlink(missing_ok=True)

    def _lines(self, path: Path) -> Iterator[dict[str, Any]]:
        if path.exists():
            yield from read_jsonl(path)
