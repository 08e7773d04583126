"""The reproduction on the demo: prepared, run, written, and the same a second time. It checks no conclusion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, write_json
from cdp.services import studies
from cdp.studies import planning
from cdp.studies.config import read_plan
from reproduction import criteria, document, full, kept, prepare, stages
from tests.jobs.support import start, until_state, until_step
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

DOCS = REPOSITORY / "docs"
SMALLEST = {"recorded-minilm", "human-languages", "weighting-languages"}


def run_in_process(workspace: Workspace, stage: stages.Stage) -> None:
    """A stage's study as its job would run it, without a process of its own."""
    from cdp.workers.study import main

    changes = {**stage.changes, "name": stage.plan, "seeds": "0, 1"}
    config = read_plan(stage.plan, changes)
    sources, missing = planning.sources_of(workspace, config)
    assert not missing
    folder = workspace.job("study-20260102-030405-0000-small")
    spec = {
        "id": folder.name,
        "kind": "study",
        "name": stage.plan,
        "created": "2026-01-02T03:04:05+00:00",
        "sequence": 1,
        "module": "cdp.workers.study",
        "config": config.to_dict(),
        "inputs": {"sources": [asdict(source) for source in sources]},
    }
    write_json(folder / "spec.json", spec)
    main(Job(folder))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.soak
def test_the_document_is_made_from_the_studies_and_is_the_same_again(workspace: Workspace, tmp_path: Path) -> None:
    prepare.small(workspace)
    (stage,) = stages.SMALL
    assert kept.keep(workspace, stage, tmp_path) is None
    run_in_process(workspace, stage)
    folder = tmp_path / "first" / document.FOLDER
    assert kept.keep(workspace, stage, folder)
    written = document.write(kept.read(folder, stages.SMALL), stages.SMALL, tmp_path / "first", small=True)
    text = written.read_text()
    assert "None of its numbers means anything" in text
    details = (folder / document.DETAILS).read_text()
    assert re.search(r"## A\. .*\n\n\*\*Cannot tell\.\*\* human-queries was not run", details)
    assert re.search(r"\| \[single-query\]\(single-query.md\) \| \w+ +\| 8 of 8 ", re.sub(" +", " ", details))
    report = kept.read(folder, stages.SMALL)["single-query"].report
    measured = studies.report(workspace, "single-query")
    for ours, theirs in zip(report.gains, measured.gains, strict=True):
        assert ours.condition == theirs.condition
        assert ours.points == pytest.approx(theirs.points, abs=0.005)
    for name in re.findall(r"\]\((reproduction/[^)]+)\)", text):
        assert (written.parent / name).is_file(), name
    again = tmp_path / "again"
    kept.keep(workspace, stage, again / document.FOLDER)
    document.write(kept.read(again / document.FOLDER, stages.SMALL), stages.SMALL, again, small=True)
    assert contents(again) == contents(tmp_path / "first")


def test_a_study_that_was_not_run_is_said_to_be_missing(tmp_path: Path) -> None:
    text = document.write({}, stages.STAGES, tmp_path).read_text()
    found = [line.split("|")[2].strip() for line in text.splitlines() if re.match(r"\| (?!Claim|-)", line)]
    assert len(found) == len(criteria.read())
    assert set(found) == {"**cannot tell**"}
    details = (tmp_path / document.FOLDER / document.DETAILS).read_text()
    assert all(re.search(rf"\| {stage.plan} +\| not run", details) for stage in stages.STAGES)
    assert all(re.search(rf"\| {plan} +\| planned, not run", details) for plan in stages.PLANNED)


@pytest.mark.soak
def test_the_document_is_what_the_kept_files_give(tmp_path: Path) -> None:
    document.write(kept.read(DOCS / document.FOLDER, stages.STAGES), stages.STAGES, tmp_path)
    made = contents(tmp_path)
    assert made == {name: (DOCS / name).read_bytes() for name in made}
    reports = {f"{document.FOLDER}/{file.name}" for file in (DOCS / document.FOLDER).glob("*.md")}
    assert reports == {name for name in made if name.startswith(document.FOLDER)}


def claims(folder: Path) -> dict[str, str]:
    """{heading: what stands below it} of a document claim by claim."""
    parts = (folder / document.FOLDER / document.DETAILS).read_text(encoding="utf-8").split("\n## ")
    return {heading: text for heading, _, text in (part.partition("\n") for part in parts)}


def test_reports_and_verdicts_are_what_the_kept_files_give(tmp_path: Path) -> None:
    """Of the studies that are small; of all of them with ``make soak``."""
    chosen = [stage for stage in stages.STAGES if stage.plan in SMALLEST]
    document.write(kept.read(DOCS / document.FOLDER, chosen), chosen, tmp_path)
    for stage in chosen:
        page = f"{document.FOLDER}/{stage.plan}.md"
        assert (tmp_path / page).read_bytes() == (DOCS / page).read_bytes(), page
    made, shipped = claims(tmp_path), claims(DOCS)
    assert list(made) == list(shipped)
    decided = [
        f"{claim.id}. {claim.sentence}"
        for claim in criteria.read()
        if claim.criteria and {study for c in (*claim.criteria, *claim.controls) for study in c.studies} <= SMALLEST
    ]
    assert len(decided) == 2
    for heading in ("# Claim by claim", *decided):
        assert made[heading] == shipped[heading], heading


def test_the_plans_state_what_would_count_before_the_run() -> None:
    for plan in (*(stage.plan for stage in stages.STAGES), *stages.PLANNED):
        config = read_plan(plan)
        assert len(config.criteria) > 80, plan
        assert len(config.seeds) >= 2, plan
    minutes = {stage.plan: stage.minutes for stage in stages.STAGES}
    assert sum(minutes.values()) - minutes["recorded-late-interaction"] <= 180, "all that trains no token vectors"
    assert sum(minutes.values()) <= 330
    judged = set(read_plan("human-queries").benchmarks)
    assert len(judged) >= 8


def test_the_dry_run_names_models_downloads_hours_and_dollars() -> None:
    text = full.text()
    for name in ("facebook/contriever", "Shitao/RetroMAE", "Qwen/Qwen3-Embedding-0.6B", "novelhopqa", "dollars", " h "):
        assert name in text
    assert len(read_plan("paper-full").benchmarks) == 31


@pytest.mark.soak
def test_the_command_goes_on_where_it_was_and_gives_the_same_numbers(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reproduction", "small", "--workspace", str(tmp_path / "w")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    first = subprocess.run(
        [*command, "--hours", "0.000001"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert first.returncode == 3, first.stderr
    texts = []
    for _ in range(2):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        texts.append((tmp_path / "w" / "REPRODUCTION.md").read_text())
    assert texts[0] == texts[1]
    assert "single-query" in (tmp_path / "w" / "reproduction" / "claims.md").read_text()


@pytest.mark.parametrize("how", ["from outside", "by Ctrl-C"])
def test_a_study_that_is_stopped_ends_the_run_and_says_how_to_go_on(
    how: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []

    def started(there: Workspace, stage: stages.Stage) -> jobs.JobView:
        begun.append(start(there, steps=60, hold_at=5))
        until_step(there, begun[-1], 2)
        if how == "from outside":
            jobs.stop(there, begun[-1])
        return jobs.view(there, begun[-1])

    def interrupted(there: Workspace, job_id: str, until: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "started", started)
    if how == "by Ctrl-C":
        monkeypatch.setattr(stages, "follow", interrupted)
    assert not stages.run(workspace, stages.STAGES[:2], (), hours=1)
    assert len(begun) == 1, "the next stage waits for the same command"
    assert until_state(workspace, begun[0], "stopped", "finished").state == "stopped"
    assert "the same command goes on from here" in capsys.readouterr().out
