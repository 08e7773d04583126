"""The run that a figure of the evidence lacks: planned from what the project has, told in one sentence, started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cdp.base.config import EvaluationConfig, MetricsConfig, TrainingConfig
from cdp.base.settings import Config
from cdp.base.text import counted, duration
from cdp.base.workspace import Workspace
from cdp.benchmarks import list_benchmarks
from cdp.corpus import resolve_corpus
from cdp.jobs import JobView
from cdp.query_sets import QuerySet
from cdp.retrievers import bm25
from cdp.services import access, endpoints, jobs, studies, trial
from cdp.studies.config import StudyConfig, TrialConfig
from cdp.studies.estimate import StudyPlan

# Documents to train on at most, and benchmarks of other documents: a figure wants an answer of today.
MAX_DOCUMENTS, MAX_BENCHMARKS = 1000, 3
NO_QUERIES = "It takes written queries and judged ones: the test on Decide makes both."


@dataclass(frozen=True)
class Has:
    """What a run can be made of: ids of the project's corpora, its query sets and the names of its benchmarks."""

    corpora: Sequence[str]
    query_sets: Sequence[QuerySet]
    benchmarks: Sequence[str]

    @property
    def written(self) -> list[QuerySet]:
        """The newest set of each method on the corpus that was written for last, the diverse one first."""
        found: dict[str, QuerySet] = {}
        for query_set in self.query_sets:
            corpus = next(iter(found.values()), query_set).corpus_id
            if query_set.kind == "synthetic" and query_set.corpus_id == corpus:
                found.setdefault(query_set.method, query_set)
        return sorted(found.values(), key=lambda query_set: query_set.method != "diverse")


@dataclass(frozen=True)
class MissingRun:
    """A run with its settings filled in; ``sentence`` says what it takes. Without ``config`` nothing can be started:
    ``sentence`` says why, and ``page`` mends it."""

    sentence: str
    config: Config | None = None
    kind: str = ""
    page: str = "decide"


@access.reads
def plan(workspace: Workspace, run: str, has: Has) -> MissingRun:
    """Return the run of this name, one of ``RUNS``, as it would be started. Errors are those of its own plan."""
    return RUNS[run](workspace, has)


def _test(workspace: Workspace, has: Has) -> MissingRun:
    if not has.corpora:
        return MissingRun("It takes documents: add them first.", page="documents")
    corpus = has.corpora[0]
    config = TrialConfig.from_dict({"corpus": corpus, **endpoints.writer(workspace, corpus)})
    planned = trial.plan(workspace, config)
    if planned.problem:
        return MissingRun(planned.problem)
    return MissingRun(_takes(planned.plan, planned.price), config, "study")


def _takes(planned: StudyPlan, price: str) -> str:
    guess = "" if planned.measured else " (a guess until something was trained on this machine)"
    return f"{counted(planned.trainings, 'training')}, about {duration(planned.seconds)}{guess}, price: {price}."


def _study(workspace: Workspace, config: StudyConfig) -> MissingRun:
    planned = studies.plan(workspace, config)
    return MissingRun(_takes(planned, planned.price), config, "study")


def _outside(workspace: Workspace, has: Has) -> MissingRun:
    """One query per document against all that there are, diverse and paraphrased, on other documents."""
    if not has.written:
        return MissingRun(NO_QUERIES)
    own = trial.of_project(workspace, resolve_corpus(workspace, has.written[0].corpus_id))
    usable = [info for info in list_benchmarks(workspace) if info.splits and not info.problem and info not in own]
    if not usable:
        return MissingRun("It takes a benchmark of other documents: download or add one first.", page="benchmarks")
    judged = [info.name for info in usable[:MAX_BENCHMARKS]]
    return _of_sets(workspace, has.written, judged, per_doc=(1, _most(has.written)))


def _weights(workspace: Workspace, has: Has) -> MissingRun:
    return _of_sets(workspace, has.written[:1], has.benchmarks[:1], weightings=("none", "cw"))


def _of_sets(
    workspace: Workspace, sets: Sequence[QuerySet], benchmarks: Sequence[str], **settings: object
) -> MissingRun:
    """A study that trains on query sets as they are."""
    if not sets or not benchmarks:
        return MissingRun(NO_QUERIES)
    values = {"benchmarks": benchmarks, "query_sets": [query_set.id for query_set in sets],
              "per_doc": (_most(sets),), "max_documents": MAX_DOCUMENTS, **settings}  # fmt: skip
    return _study(workspace, StudyConfig.from_dict(values))


def _most(sets: Sequence[QuerySet]) -> int:
    return min((query_set.per_doc for query_set in sets), default=1)


def _rates(workspace: Workspace, has: Has) -> MissingRun:
    if not has.written or not has.benchmarks:
        return MissingRun(NO_QUERIES)
    values = {"query_set": has.written[0].id, "benchmark": has.benchmarks[0], "max_documents": MAX_DOCUMENTS}
    config = TrainingConfig.from_dict(values)
    return _study(workspace, studies.sweep(workspace, config, studies.grid_for(workspace, config.retriever)))


def _metrics(workspace: Workspace, has: Has, *, beside_people: bool = False) -> MissingRun:
    if not has.written:
        return MissingRun("It takes written queries: have some written first.", page="queries")
    measured = has.written[0]
    human = next((q.id for q in has.query_sets if (q.kind, q.corpus_id) == ("human", measured.corpus_id)), "")
    if beside_people and not human:
        return MissingRun("It takes human queries of the same documents: import them first.", page="queries")

    config = MetricsConfig.from_dict({"query_set": measured.id, "human": human, "max_documents": MAX_DOCUMENTS})
    n = min(measured.n_documents, MAX_DOCUMENTS)
    takes = f"The {measured.method} queries of {counted(n, 'document')}, by models on this machine: free."
    return MissingRun(takes, config, "metrics")


def _evaluation(workspace: Workspace, has: Has) -> MissingRun:
    if not has.benchmarks:
        return MissingRun("It takes a benchmark: download, add or judge one first.", page="benchmarks")
    config = EvaluationConfig.from_dict({"retriever": bm25.NAME, "benchmark": has.benchmarks[0]})
    return MissingRun(f"{bm25.TITLE} on {has.benchmarks[0]}, without training: free.", config, "evaluation")


RUNS: dict[str, Callable[[Workspace, Has], MissingRun]] = {
    "test": _test, "outside": _outside, "weights": _weights, "rates": _rates, "metrics": _metrics,
    "metrics beside people": partial(_metrics, beside_people=True),
    "evaluation": _evaluation,
}  # fmt: skip


def running(workspace: Workspace, missing: MissingRun) -> JobView | None:
    """Return the job at work that makes what is missing, or one that does as much; None without one."""
    if isinstance(missing.config, TrialConfig):
        return trial.running(workspace, missing.config.corpus)
    named = ("query_sets", "per_doc", "weightings", "query_set", "retriever")
    values = missing.config.to_dict() if missing.config is not None else {}
    return jobs.running(workspace, missing.kind, **{name: values[name] for name in named if name in values})


@access.runs
def start(workspace: Workspace, config: Config, kind: str) -> str:
    """Submit a planned run; return its job."""
    if isinstance(config, TrialConfig):
        return trial.start(workspace, config).job_id
    if isinstance(config, StudyConfig):
        return studies.run(workspace, config).job_id
    return jobs.start(workspace, kind, config)
