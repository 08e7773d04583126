"""Test it on my data: one plan with its price and time, one job, from a corpus to the sentence of Decide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from cdp import jobs
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, iter_documents, resolve_corpus
from cdp.jobs import JobView
from cdp.retrievers import resolve
from cdp.services import commands, queries, studies
from cdp.services.sharing import access
from cdp.services.studies import judged as judging
from cdp.services.studies.judged import JudgedBy
from cdp.studies.config import StudyConfig
from cdp.studies.estimate import DEFAULT_SPEEDS, Speed, StudyPlan
from cdp.studies.trial import Size, TrialConfig, sized, study_of
from cdp.synthesis.generators import GENERATORS
from cdp.training.settings import complete

SLOW = Speed(60.0, 60.0, measured=False)
"""A small transformer on two cores, for retrievers that have not run here: said to be a guess."""


TYPICAL_CHARACTERS = 600
"""Of a document for which the default speeds hold."""

SAMPLE = 200
"""Documents whose length is looked at."""


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
    """The generator that was used last for a corpus, else in the workspace, with its model and address; settings of
    ``TrialConfig``. Recorded queries come first: they are there. Empty where nothing was ever written."""
    offered = TrialConfig.settings()["generator"].choices
    if any(q.generator == "recorded" for q in queries.list_query_sets(workspace, corpus=corpus)):
        return {"generator": "recorded"}
    written = [view.config for view in jobs.list_jobs(workspace, ["synthesis"])]
    for config in sorted(written, key=lambda config: config.get("corpus") != corpus):
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
        raise ConfigError(f"{manifest.name} has {manifest.n_documents:,} documents, too few for a test.")
    there = GENERATORS[config.generator].endpoint or config.generator == "recorded"
    texts = judged.n_queries + judged.n_documents
    if not measured:  # the default speeds are those of a paragraph
        length = max(1.0, _characters(workspace, manifest) / TYPICAL_CHARACTERS)
        speed = Speed(speed.pairs_per_second / length, speed.texts_per_second / length, measured=False)
    size = sized(config, documents=documents, texts=texts, speed=speed, epochs=epochs, there=there)
    known = judging.facts(workspace, manifest, judged, "published")
    study = _study(config, manifest, judged, size)
    study_plan = studies.plan(workspace, study, known=[known] if known else None)
    cost, requests = _cost(study_plan)
    notes = list(judged.notes)
    if cost is not None and cost > config.spend:
        fewer = max(2, int(size.documents * config.spend / cost * 0.95))
        size = replace(size, documents=fewer)
        study_plan = studies.plan(workspace, _study(config, manifest, judged, size), known=[known] if known else None)
        cost, requests = _cost(study_plan)
        notes.append(f"{fewer:,} documents are what {config.spend:g} US dollars allow.")
    if cost is None:
        notes.append(f"The price of {study.model} is not known here, so no budget can be kept: see the price table.")
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
        notes=(*notes, *(note for note in study_plan.notes if note.startswith("Queries that are missing"))),
        documents_there=documents,
    )


def _characters(workspace: Workspace, manifest: CorpusManifest) -> float:
    """The mean length of the corpus's first documents."""
    lengths = [len(d.content) for d in islice(iter_documents(workspace, manifest.id), SAMPLE)]
    return sum(lengths) / max(1, len(lengths))


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


def running(workspace: Workspace, corpus: str) -> JobView | None:
    """The study of a corpus that is at work or waits, the newest; None without one."""
    return next((v for v in studies.list_studies(workspace) if v.active and v.config.get("corpus") == corpus), None)


def at_work(workspace: Workspace, study: JobView) -> JobView:
    """The job of a test that is at work: one that writes its queries, or the study itself."""
    before = jobs.load_spec(workspace, study.id).after
    return next((view for view in jobs.list_jobs(workspace, ["synthesis"]) if view.active and view.id in before), study)


def command(config: TrialConfig) -> str:
    """``study test`` as it does the same."""
    values = {
        name: getattr(config, name)
        for name, setting in config.settings().items()
        if getattr(config, name) not in ("", setting.default)
    }
    return commands.line("study", "test", **values, yes=True, wait=True)
