"""What came of the studies: read from the workspace, or from the files kept beside the document.

The files hold the reports and the pooled models whole, but no score of a single query: the document can be made again
where the workspace was deleted. Numbers are written in full, so both ways give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cdp.base.errors import CdpError, InputError
from cdp.base.statistics import SeedTest
from cdp.base.workspace import Workspace, read_json, write_bytes
from cdp.services import studies
from cdp.studies import StudyReport
from cdp.studies.config import stored
from cdp.studies.pooling import Pooled
from reproduction.evidence import Evidence, gather
from reproduction.stages import Stage, find

MODELS = "models.json"


@dataclass(frozen=True)
class Run:
    """A study: its state, its report, or why there is none."""

    plan: str
    state: str
    report: StudyReport | None = None
    problem: str = ""


@dataclass(frozen=True)
class Runs:
    """The studies in their order, and what the claims are judged by."""

    studies: tuple[Run, ...]
    evidence: Evidence


def of_workspace(workspace: Workspace, chosen: Sequence[Stage]) -> Runs:
    """The studies as they are in the workspace now."""
    runs = tuple(_run(workspace, stage) for stage in chosen)
    return Runs(runs, gather(workspace, {run.plan: run.report for run in runs if run.report is not None}))


def _run(workspace: Workspace, stage: Stage) -> Run:
    view = find(workspace, stage)
    if view is None:
        return Run(stage.plan, "not run")
    try:
        return Run(stage.plan, str(view.state), studies.report(workspace, view.id))
    except CdpError as error:
        return Run(stage.plan, str(view.state), problem=str(error))


def keep(runs: Runs, folder: Path) -> None:
    """Write a file for each study, and one for the pooled models."""
    for run in runs.studies:
        file = folder / f"{run.plan}.json"
        # Read back first: a whole number where a float may stand is written alike, whichever way it came.
        report = None if run.report is None else _read(StudyReport, run.report.to_dict(), file).to_dict()
        _write(file, {"state": run.state, "problem": run.problem, "report": report})
    pools = {name: [asdict(model) for model in models] for name, models in runs.evidence.pools.items()}
    half = runs.evidence.half
    _write(folder / MODELS, {"pools": pools, "half": None if half is None else asdict(half)})


def of_files(folder: Path, chosen: Sequence[Stage]) -> Runs:
    """The studies as ``keep`` wrote them; one without a file was not run. InputError for a damaged file."""
    found = []
    for stage in chosen:
        file = folder / f"{stage.plan}.json"
        kept: Any = read_json(file) if file.is_file() else {"state": "not run", "report": None, "problem": ""}
        report = kept["report"]
        if report is not None:
            config = stored(report["config"]).to_dict()
            report = _read(StudyReport, {**report, "config": config}, file)
        found.append(Run(stage.plan, kept["state"], report, kept["problem"]))
    file = folder / MODELS
    models = read_json(file) if file.is_file() else {"pools": {}, "half": None}
    evidence = Evidence(
        {run.plan: run.report for run in found if run.report is not None},
        _read(dict[str, tuple[Pooled, ...]], models["pools"], file),
        _read(SeedTest | None, models["half"], file),
    )
    return Runs(tuple(found), evidence)


def _read(kind: Any, value: Any, file: Path) -> Any:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise InputError(
            f"{file} is not what a reproduction keeps: {error.errors()[0]['msg']}.",
            hint="Take the file from the repository again, or make it with: python -m reproduction run",
        ) from error


def _write(file: Path, value: Any) -> None:
    """One line for each part, so that a difference between two runs can be read."""
    write_bytes(file, (json.dumps(value, ensure_ascii=False, indent=0) + "\n").encode())
