"""Studies: start, report, speeds measured here."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from cdp import catalog
from cdp.base.errors import ConfigError, InputError
from cdp.base.job_kind import STUDIES
from cdp.base.workspace import CODE, Workspace, read_json_or_none, write_json
from cdp.benchmarks.units import units_of
from cdp.jobs import JobView
from cdp.jobs.launchers import computing
from cdp.retrievers import leakage, resolve
from cdp.services import access, completeness, jobs, projects
from cdp.services.jobs import Started
from cdp.studies import advice, planning, records
from cdp.studies.config import StudyConfig, grid
from cdp.studies.estimate import StudyPlan, measured_speeds, speed_key
from cdp.studies.planning import Splits, leaks_of, sources_of, stored_sets, synthesis_of, with_dev
from cdp.studies.report import StudyReport, read_about
from cdp.studies.report import build as build_report
from cdp.training.plan import Speed, defaults_for


@access.reads
def plan(workspace: Workspace, config: StudyConfig) -> StudyPlan:
    """What a study would run, cost and take. Everything that can be wrong is found here; nothing is started."""
    incomplete = [item.note for item in completeness.list_incomplete(workspace, config.query_sets)]
    return planning.plan(workspace, config, speeds(workspace), incomplete=incomplete)


sweep = access.reads(planning.sweep)


def grid_for(workspace: Workspace, retriever: str, lora: bool = False) -> tuple[float, ...]:
    """The learning rates to try with a retriever: the paper's, or some around the retriever's own, or LoRA's."""
    found = defaults_for(resolve(access.model(workspace, retriever), workspace).defaults, lora)
    return grid(float(found["learning_rate"].value))


@access.writes
def draw(workspace: Workspace, splits: Splits) -> None:
    """Make the benchmark of these splits, where it is not there yet, in the projects of the one it is drawn from."""
    if splits.of:
        planning.draw(workspace, splits)
        projects.take_along(workspace, "benchmark", splits.of, splits.benchmark)


@access.runs
def run(
    workspace: Workspace,
    config: StudyConfig,
    *,
    api_key: str = "",
    allow_incomplete: bool = False,
    allow_leakage: bool = False,
) -> Started:
    """Submit a study as one job, after the jobs that write the queries it lacks.

    ConfigError for a query set that is not whole, unless ``allow_incomplete``, or a named one with queries that a
    benchmark judges, unless ``allow_leakage``; of what methods wrote, such queries are left out, unless it is.
    """
    planned = plan(workspace, config)
    config, splits = with_dev(workspace, config)
    completeness.require(workspace, config.query_sets, allow_incomplete)

    for each in splits:
        draw(workspace, each)

    sources, _ = sources_of(workspace, config)
    leakage.require(leaks_of(workspace, config), allow_leakage)
    leaks = leaks_of(workspace, config, stored_sets(sources)) if allow_leakage else []

    generations = []
    ready = []
    for source in sources:
        if source.query_set:
            ready.append(source)
            continue
        written = jobs.start(workspace, "synthesis", synthesis_of(config, source), api_key=api_key)
        generations.append(written)
        ready.append(dataclasses.replace(source, job_id=written))

    inputs = {"sources": [dataclasses.asdict(source) for source in ready], **leakage.links(leaks)}
    inputs["promised"] = planned.promise
    job_id = jobs.start(workspace, "study", config, inputs=inputs, after=generations)

    return Started(job_id, generations)


def list_studies(workspace: Workspace) -> list[JobView]:
    """The studies of this workspace, newest first."""
    return jobs.list_jobs(workspace, STUDIES)


def report(workspace: Workspace, study: str) -> StudyReport:
    """What a study has found so far, by its id, the beginning of its id, or its name."""
    view = jobs.show(workspace, study, with_size=False)
    if view.kind not in STUDIES:
        raise ConfigError(f"The job {view.id} is of kind {view.kind}.", hint="Name a study: see study list.")

    about = read_about(view.folder)
    if about is None:
        why = view.failure["message"] if view.failure else f"it is {view.state}"
        raise InputError(f"The study {view.id} has nothing to report yet: {why}.")

    leaks = [f"Leaked: {leakage.Leak(**leak).sentence}" for leak in view.inputs.get(leakage.LEAKAGE, ())]
    found = list(records.list_records(view.folder))

    # Which queries share a document may have changed with the grades; what the study wrote down stands where the
    # benchmark cannot be read any more.
    for facts in about["benchmarks"]:
        queries = records.query_ids(found, facts["place"])
        units = units_of(workspace, facts["name"], facts["split"], queries)
        if units is not None:
            facts["units_of"] = dict(zip(queries, units, strict=bool(units)))

    found = [records.judged_now(workspace, record, about["benchmarks"]) for record in found]
    stated = advice.stated(workspace, view, about)
    return build_report(view.id, view.name, str(view.state), about, found, leaks, stated)


def kept(workspace: Workspace, study: str) -> dict[str, Any] | None:
    """Return which option's model a study's job has: ``option`` in words; None where it kept none."""
    return records.kept(workspace.job(study))


def speeds(workspace: Workspace) -> dict[str, Speed]:
    """How fast each retriever was here, from its newest training and evaluation, or the newest study."""
    pairs: dict[str, float] = {}
    texts: dict[str, float] = {}

    for row in catalog.trainings(workspace):
        rate, settings = row["result"].get("pairs_per_second"), row["result"].get("settings") or {}
        if rate:
            pairs.setdefault(speed_key(row["retriever"], settings.get("trained_layers")), float(rate))

    for row in catalog.evaluations(workspace):
        if row["seconds"] and not row["counts"].get("embeddings_reused"):
            texts.setdefault(row["retriever_id"], (row["n_queries"] + row["n_documents"]) / row["seconds"])

    for view in list_studies(workspace):
        if view.inputs.get(records.RECORDED):
            continue  # on another machine
        for name, speed in measured_speeds(records.list_records(view.folder)).items():
            pairs.setdefault(name, speed.pairs_per_second)
            texts.setdefault(name, speed.texts_per_second)

    for name, (of_pairs, of_texts) in (read_json_or_none(workspace.root / SPEEDS) or {}).items():
        pairs.setdefault(name, of_pairs)
        texts.setdefault(name, of_texts)

    return {name: Speed(pairs[name], texts[name]) for name in pairs if name in texts}


# How fast retrievers were in a few steps before a test, [pairs, texts] per second by ``speed_key``.
SPEEDS = "speeds.json"


@access.runs
def measure(workspace: Workspace, keys: Iterable[str], corpus: str) -> None:
    """Time a few steps of what has no speed here, on the documents of a corpus; without an answer nothing is kept."""
    there = speeds(workspace)
    wanted = [key for key in keys if key not in there]
    missing = [key for key in wanted if not any(other.startswith(f"{key}/") for other in wanted)]
    if not missing:
        return
    command = [sys.executable, "-m", "cdp.studies.speed", str(workspace.root), corpus, *missing]
    # As a worker: without its environment a static retriever took nine times as long beside other work.
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=MEASURING_S, cwd=CODE, check=False, env=computing(os.environ)
    )  # fmt: skip
    if done.returncode == 0:
        before = read_json_or_none(workspace.root / SPEEDS) or {}
        write_json(workspace.root / SPEEDS, {**before, **json.loads(done.stdout.splitlines()[-1])})


# A model that takes longer than this for a few steps takes hours for a test.
MEASURING_S = 300.0
