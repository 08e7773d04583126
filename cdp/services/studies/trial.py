"""Test it on my data: one plan with its price and time, one job, from a corpus to the sentence of Decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cdp import jobs
from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.complexity import LANGUAGES
from cdp.corpus import CorpusManifest, resolve_corpus
from cdp.jobs import JobView
from cdp.retrievers import PRESETS, resolve
from cdp.services import commands, corpora, queries, studies
from cdp.services.jobs import job_words
from cdp.services.queries.writers import siblings
from cdp.services.sharing import access
from cdp.services.studies import judged as judging
from cdp.services.studies.judged import JudgedBy
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import DEFAULT_SPEEDS, SLOW, TYPICAL_CHARACTERS, Speed, StudyPlan
from cdp.studies.trial import Size, TrialConfig, sized, study_of
from cdp.synthesis.generators import GENERATORS
from cdp.training.plan import complete

ENOUGH = 0.9
"""Of the documents this part has to have all the queries that a condition asks for."""


@dataclass(frozen=True)
class Trial:
    """A test before its start. ``seconds`` is all of it but an endpoint's answers, of which ``requests`` are needed;
    ``cost`` in US dollars, None where the model's price is not known. ``notes`` say what has to be known first."""

    config: TrialConfig
    size: Size
    judged: JudgedBy
    plan: StudyPlan
    seconds: float
    measured: bool
    requests: int
    cost: float | None
    notes: tuple[str, ...]
    documents_there: int

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "seconds": self.seconds,
            "measured": self.measured,
            "requests": self.requests,
            "cost": self.cost,
            "documents": self.size.documents,
            "judged_by": self.judged.name,
            "judged_kind": self.judged.kind,
            "notes": list(self.notes),
            "plan": self.plan.to_dict(),
        }


def last_generator(workspace: Workspace, corpus: str) -> dict[str, str]:
    """The generator that was used last for a corpus, else in its projects, else in the workspace, with its model and
    address; settings of ``TrialConfig``. Recorded queries come first: they are there. Empty where nothing was ever
    written."""
    offered = TrialConfig.settings()["generator"].choices
    if any(q.generator == "recorded" for q in queries.list_query_sets(workspace, corpus=corpus)):
        return {"generator": "recorded"}
    written = [view.config for view in jobs.list_jobs(workspace, ["synthesis"])]
    related = siblings(workspace, corpus)
    for config in sorted(written, key=lambda c: (c.get("corpus") != corpus, c.get("corpus") not in related)):
        if config.get("generator") in offered:
            return {name: str(config.get(name) or "") for name in ("generator", "model", "base_url")}
    return {}


@access.reads
def plan(workspace: Workspace, config: TrialConfig) -> Trial:
    """What the test would take: everything that can be wrong is found here, and nothing is started."""
    manifest = resolve_corpus(workspace, config.corpus)
    config = config.replace(corpus=manifest.id)
    judged = judging.judged_by(workspace, manifest, config.benchmark, config.split)
    speed, epochs, measured = _pace(workspace, config.retriever)
    documents = manifest.n_documents - judged.held_out
    if documents < 2:
        raise ConfigError(f"{manifest.name} has {counted(manifest.n_documents, 'document')}, too few for a test.")
    there = GENERATORS[config.generator].endpoint or config.generator == "recorded"
    texts = judged.n_queries + judged.n_documents
    if not measured:  # the default speeds are those of a paragraph
        length = max(1.0, corpora.mean_characters(workspace, manifest) / TYPICAL_CHARACTERS)
        speed = Speed(speed.pairs_per_second / length, speed.texts_per_second / length)
    size = sized(config, documents=documents, texts=texts, speed=speed, epochs=epochs, there=there)
    known = judging.facts(workspace, manifest, judged, "published")
    study = _study(config, manifest, judged, size)
    study_plan = studies.plan(workspace, study, known=[known] if known else None)
    cost, requests = _cost(study_plan)
    notes = [*_foreign(manifest, config.retriever), *judged.notes]
    if cost is not None and cost > config.spend:
        fewer = max(2, int(size.documents * config.spend / cost * 0.95))
        size = replace(size, documents=fewer)
        study_plan = studies.plan(workspace, _study(config, manifest, judged, size), known=[known] if known else None)
        cost, requests = _cost(study_plan)
        notes.append(f"{fewer:,} documents are what {config.spend:g} US dollars allow.")
    if cost is None:
        notes.append(
            f"The price of {study.model_name} is not known here, so no budget can be kept: see the price table."
        )
    if requests:
        notes.append("The time of the endpoint's answers comes on top.")
    if not size.fits:
        notes.append(
            f"It does not fit into {config.minutes:g} minutes: every training is evaluated on {texts:,} texts."
        )
    if config.generator == "template":
        notes.append("The template generator stands in for an LLM: what a model's queries would gain may differ.")
    seconds = size.seconds if not study_plan.reused else min(size.seconds, study_plan.seconds or size.seconds)
    return Trial(
        config=config,
        size=size,
        judged=judged,
        plan=study_plan,
        seconds=seconds,
        measured=measured,
        requests=requests,
        cost=cost,
        notes=(*notes, *_of_queries(workspace, manifest, judged, study_plan)),
        documents_there=documents,
    )


def _of_queries(
    workspace: Workspace, manifest: CorpusManifest, judged: JudgedBy, study_plan: StudyPlan
) -> Iterator[str]:
    """What has to be known of the queries that are trained on: which documents they are for, and what is left out."""
    told = ("Queries that are missing", "has queries for the first", "are left out of the training")
    yield from (note for note in study_plan.notes if any(words in note for words in told))
    there = [source.query_set for source in study_plan.sources if source.query_set]
    if not judged.there:
        yield from map(studies.left_out, judging.leaks(workspace, manifest, judged, there))
    if judged.held_out and there:
        yield (
            "Queries of earlier jobs are trained on, among them perhaps some for the documents that decide: such "
            "results are marked in-domain."
        )


def _foreign(manifest: CorpusManifest, retriever: str) -> Iterator[str]:
    """What has to be said of a retriever that never saw the corpus's language: its gains say little of another one."""
    preset = PRESETS.get(retriever)
    if preset is None or not preset.languages or manifest.main_language in (*preset.languages, "unknown"):
        return
    known, here = (
        LANGUAGES[code].name if code in LANGUAGES else code for code in (preset.languages[0], manifest.main_language)
    )
    yield (
        f"{retriever} was trained on {known} text alone and these documents are {here}: its scores will be low "
        "whatever it is trained on. For an answer that holds, choose a retriever that knows the language."
    )


def _study(
    config: TrialConfig, manifest: CorpusManifest, judged: JudgedBy, size: Size, priced: bool = False
) -> StudyConfig:
    return study_of(config, judged.name, size, name=f"Test on {manifest.name}", spend=priced)


def _cost(study_plan: StudyPlan) -> tuple[float | None, int]:
    costs = [generation.cost for generation in study_plan.generations]
    requests = sum(generation.requests for generation in study_plan.generations)
    return None if None in costs else sum(cost or 0.0 for cost in costs), requests


def _pace(workspace: Workspace, retriever: str) -> tuple[Speed, int, bool]:
    """(speed, epochs, whether the speed was measured here)."""
    resolved = resolve(access.model(workspace, retriever), workspace)
    epochs = complete(TrainingConfig.from_dict({"query_set": "any"}), resolved).epochs or 1
    own = studies.speeds(workspace).get(retriever)
    return own or DEFAULT_SPEEDS.get(retriever, SLOW), epochs, own is not None


@access.runs
def start(
    workspace: Workspace, config: TrialConfig, *, api_key: str = "", allow_leakage: bool = False
) -> studies.StudyStart:
    """Start the test as one study, after the jobs that write the queries it lacks. What decides is made first."""
    trial = plan(workspace, config)
    manifest = resolve_corpus(workspace, config.corpus)
    judging.make(workspace, manifest, trial.judged)
    priced = bool(trial.requests) and trial.cost is not None
    study = _study(trial.config, manifest, trial.judged, trial.size, priced)
    return studies.run(workspace, study, api_key=api_key, allow_leakage=allow_leakage)


@dataclass(frozen=True)
class Trouble:
    """What kept a test from an answer and what to do about it, in sentences. ``fewer`` is a list of Q/Doc for which the
    queries suffice; empty where it is not a lack of queries."""

    what: str
    next_step: str
    fewer: str = ""


def trouble(workspace: Workspace, study: JobView) -> Trouble:
    """Why a study that failed has no answer, or only a part of one: first whether there were queries enough."""
    try:
        report = studies.report(workspace, study.id)
    except CdpError:
        what, next_step, _ = job_words.failure(study)
        return Trouble(what or "The test was cut off before its first training.", next_step or "Resume its job.")
    most = max(report.config.numbers("per_doc", minimum=1))
    lacking = [source for source in report.sources if source.n_with(most) < ENOUGH * source.n_documents]
    if not report.failures or not lacking:
        first = f" The first: {report.failures[0][1]}" if report.failures else ""
        done = f"{report.finished:,} of {report.planned:,} trainings are done."
        return Trouble(f"{done}{first}", "Resume its job to try the others again: what is done stays done.")
    source = min(lacking, key=lambda s: s.n_with(most))
    mean = source.pairs(most) / max(1, source.n_documents)
    fits = [n for n in range(1, most) if source.n_with(n) >= ENOUGH * source.n_documents]
    return Trouble(
        f"The generator wrote {most} {source.label} queries for only {source.n_with(most):,} of "
        f"{source.n_documents:,} documents ({mean:.1f} on average), too few to compare Q/Doc {most} on the same number "
        "of pairs.",
        "Test again with another model, or compare fewer queries per document.",
        ", ".join(map(str, fits)) if len(fits) > 1 else "",
    )


def running(workspace: Workspace, corpus: str) -> JobView | None:
    """The study of a corpus that is at work or waits, the newest; None without one."""
    at_work = [view for view in jobs.list_active(workspace) if view.kind == "study"]
    return next((view for view in at_work if view.config.get("corpus") == corpus), None)


def at_work(workspace: Workspace, study: JobView) -> JobView:
    """The job of a test that is at work: one that writes its queries, or the study itself."""
    before = jobs.load_spec(workspace, study.id).after
    return next((view for view in jobs.list_active(workspace) if view.id in before), study)


def command(config: TrialConfig) -> str:
    """``study test`` as it does the same."""
    values = {
        name: getattr(config, name)
        for name, setting in config.settings().items()
        if getattr(config, name) not in ("", setting.default)
    }
    return commands.line("study", "test", **values, yes=True, wait=True)
