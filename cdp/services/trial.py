""" "Test it on my data": benchmarks of the project, start, trouble."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from cdp import jobs
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.records import Document
from cdp.base.workspace import Workspace, disk_faults_told, slug
from cdp.benchmarks import BenchmarkInfo, library, list_benchmarks, manifests
from cdp.benchmarks.beir_files import read_queries
from cdp.benchmarks.benchmark import part
from cdp.corpus import CorpusManifest, iter_documents, resolve_corpus
from cdp.jobs import JobView
from cdp.services import access, commands, decide, judging, projects, studies
from cdp.services.jobs import Started, failure
from cdp.services.jobs import running as running_job
from cdp.studies.config import TrialConfig
from cdp.studies.own_test import BENCHMARK, JudgedBy, Trial, best_of, plan_test, queries_of

# The longest that a test may be allowed: to plan one with every retriever in it.
MAX_MINUTES = 1440.0

Limited = TypeVar("Limited", bound=TrialConfig)


def of_project(workspace: Workspace, manifest: CorpusManifest) -> list[BenchmarkInfo]:
    """Return the benchmarks of the corpus's project; where it has none, one of the corpus's name."""
    index = projects.Index(workspace)
    usable = [info for info in list_benchmarks(workspace) if info.splits and not info.problem and not info.subset_of]
    own = [info for info in usable if index.of("benchmark", info.name) & index.of("corpus", manifest.id)]
    return own or [info for info in usable if slug(info.name) == slug(manifest.name)]


# Of larger corpora no example is searched for unasked: their indexes take a while.
MAX_SHOWN = 2_000


def example_query(workspace: Workspace, corpus: str) -> str:
    """Return a judged query of the corpus's project, to search with before a person types one; empty without any."""
    manifest = resolve_corpus(workspace, corpus)
    if manifest.n_documents > MAX_SHOWN:
        return ""

    for info in of_project(workspace, manifest):
        with suppress(CdpError, OSError):
            return next((line.text for line in read_queries(part(Path(info.folder), "queries")).values()), "")
    return ""


def has_judged(workspace: Workspace, corpus: str) -> bool:
    """Return True if there are judged queries for a corpus that a test would take unasked."""
    manifest = resolve_corpus(workspace, corpus)
    return best_of(manifest, of_project(workspace, manifest)) is not None


def allowing(config: Limited, seconds: float, cost: float | None) -> Limited:
    """Return the settings with limits that allow a test of so many ``seconds`` at a ``cost`` in US dollars."""
    minutes, spend = math.ceil(seconds / 6) / 10, math.ceil(100 * (cost or 0.0)) / 100
    return config.replace(minutes=max(config.minutes, min(MAX_MINUTES, minutes)), spend=max(config.spend, spend))


@access.writes
def make(workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy) -> str:
    """Make the benchmark that decides, if it is not there, and take it into the corpus's project; its name."""
    if judged.there:
        return judged.benchmark

    if judged.kind == BENCHMARK:
        studies.draw(workspace, judged.splits)
    else:
        pairs = queries_of(workspace, manifest, judged)
        if len(pairs) < 3:
            raise InputError(f"{manifest.name} gives {len(pairs)} queries to decide by, too few for a test.")

        texts: dict[str, str] = {}
        grades: dict[str, dict[str, int]] = {}
        for number, (identifier, text) in enumerate(pairs):
            texts[f"q{number}"], grades[f"q{number}"] = text, {identifier: 1}
        names = list(grades)
        first = len(names) - judged.splits.n_dev

        parts = {"test": names[:first], "dev": names[first:]}
        qrels = {split: {name: grades[name] for name in part} for split, part in parts.items()}
        documents = _documents(workspace, manifest, {identifier for identifier, _ in pairs}, judged.splits.n_documents)
        about = manifests.Manifest(
            title=f"{manifest.name}, {judged.kind} queries",
            language=manifest.counted_language,
            source={
                "kind": "test",
                "queries": judged.kind,
                "corpus": manifest.id,
                "unit": manifest.unit,
                "of": judged.of,
            },
        )
        with disk_faults_told("The test's benchmark"):
            library.make(workspace, judged.benchmark, documents, texts, qrels, about)

    projects.take_along(workspace, "corpus", manifest.id, judged.benchmark)
    return judged.benchmark


def _documents(workspace: Workspace, manifest: CorpusManifest, wanted: Set[str], n: int) -> Iterator[Document]:
    """The wanted documents and the first others, ``n`` in all, in the corpus's order."""
    others = n - len(wanted)
    for document in iter_documents(workspace, manifest.id):
        if document.id not in wanted:
            others -= 1
            if others < 0:
                continue
        yield document


@access.reads
def plan(workspace: Workspace, config: TrialConfig, api_key: str = "", judged: JudgedBy | None = None) -> Trial:
    """What the test would take: everything that can be wrong is found here, and nothing is started.

    ``judged`` is what will decide it, where that is still to be judged.
    """
    own = of_project(workspace, resolve_corpus(workspace, config.corpus))
    planned = plan_test(workspace, config, own, studies.speeds(workspace), bool(jobs.list_gpus()), judged)
    if judged is not None:
        return planned
    closing = _closing(workspace, planned, api_key)
    return replace(planned, notes=(*planned.notes, closing.sentence)) if closing else planned


def _closing(workspace: Workspace, planned: Trial, api_key: str, run: str = "later") -> judging.Closing | None:
    """How the documents that the test newly finds are judged; None where what decides was not judged here."""
    name = judging.judged_name(workspace, planned.judged.splits.of or planned.judged.benchmark)
    if not name:
        return None
    left = planned.config.spend - (planned.cost or 0.0)
    return judging.closing(workspace, name, left, planned.config.endpoint, api_key, run)


@access.runs
def measure(workspace: Workspace, config: TrialConfig, api_key: str = "") -> None:
    """Time a few steps of the retrievers that a test may train and that have not run here, so that it can promise.

    A GPU is not measured: its trainings take seconds, and starting it as long. RefusedError first, for a missing key.
    """
    trial = plan(workspace, config.replace(minutes=MAX_MINUTES))
    if trial.plan.requests:
        access.endpoint_for(config.to_dict(), api_key)

    if not trial.plan.measured and not jobs.list_gpus():
        studies.measure(workspace, trial.plan.speed_keys, trial.config.corpus)


@access.runs
def start(workspace: Workspace, config: TrialConfig, *, api_key: str = "", allow_leakage: bool = False) -> Started:
    """Start the test as one study, after the jobs that write the queries it lacks. What decides is made first.

    ConfigError where it takes longer or costs more than ``config`` allows: the person says whether to wait or to test
    on fewer documents.
    """
    if not plan(workspace, config).problem:
        measure(workspace, config, api_key)

    trial = plan(workspace, config, api_key)
    if trial.problem:
        smaller = f", or test on fewer documents: --documents {trial.fitting}" if trial.fitting else ""
        raise ConfigError(trial.problem, hint=f"Allow more with --minutes or --spend{smaller}.")

    manifest = resolve_corpus(workspace, config.corpus)
    make(workspace, manifest, trial.judged)
    # Without a price no budget can be kept, and the plan has said so.
    priced = trial.cost is not None and (trial.cost > 0 or trial.plan.requests > 0)
    study = trial.plan.config.replace(spend=config.spend if priced else None)

    begun = studies.run(workspace, study, api_key=api_key, allow_leakage=allow_leakage)
    closing = _closing(workspace, trial, api_key, begun.job_id)
    if closing is None or closing.config is None:
        return begun

    later = judging.start(workspace, closing.config, api_key=closing.key, after=[begun.job_id])
    return replace(begun, later=(later,))


def trouble(workspace: Workspace, study: JobView) -> tuple[str, str]:
    """Return why a study that failed has no answer, or only a part of one, and what to do about it, in sentences."""
    try:
        report = studies.report(workspace, study.id)
    except CdpError:
        what, next_step, _ = failure(study)
        return what or "The test was cut off before its first training.", next_step or "Resume its job."
    first = f" The first failure: {report.failures[0][1]}" if report.failures else ""
    return (
        f"{report.finished:,} of {report.planned:,} trainings are done.{first}",
        "Resume its job to try the others again, or test with another model or fewer queries per document.",
    )


def running(workspace: Workspace, corpus: str) -> JobView | None:
    """The study of a corpus that is at work or waits, the newest, or what judges after it; None without one."""
    study = running_job(workspace, "study", corpus=corpus) or running_job(workspace, "answer", corpus=corpus)
    if study is not None:
        return study

    for name, later in decide.awaiting(workspace).items():
        if jobs.view(workspace, name).config.get("corpus") == corpus:
            return later

    return None


def at_work(workspace: Workspace, study: JobView) -> JobView:
    """The job of a test that is at work: one that writes its queries, or the study itself."""
    before = jobs.load_spec(workspace, study.id).after
    return next((view for view in jobs.list_active(workspace) if view.id in before), study)


def command(config: TrialConfig) -> str:
    """``study test`` as it does the same."""
    return commands.line("study", "test", **commands.changed(config), yes=True, wait=True)
