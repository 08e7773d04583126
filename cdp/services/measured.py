"""Studies that trained on several corpora: what they say of a task is what trainings on its own corpus did."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import manifests
from cdp.evaluation import bm25
from cdp.jobs import JobView
from cdp.services import studies
from cdp.services.answer import Answer, answer_of, gains, is_of, trained
from cdp.services.studies import Gain, StudyReport
from cdp.studies import records
from cdp.studies.report import BenchmarkFacts, StudyRow


def corpora_of(workspace: Workspace, view: JobView, about: dict[str, Any]) -> Iterable[str]:
    """The corpora whose queries a study trained on; what was deleted since is left out."""
    yield from (corpus for _, corpus in corpus_of_sources(workspace, about))
    yield from (part.strip() for part in str(view.config.get("corpus") or "").split(",") if part.strip())


def corpus_of_sources(workspace: Workspace, about: dict[str, Any]) -> Iterable[tuple[str, str]]:
    """(label of a source, id of its corpus) of each source whose query set is still there."""
    for source in about["sources"]:
        with suppress(CdpError):
            yield str(source["label"]), query_sets.load(workspace, source["query_set"]).corpus_id


def of_sources(report: StudyReport, labels: Collection[str]) -> StudyReport:
    """The report without the trainings on other corpora: what was learned there says nothing of this one."""
    others = {source.label for source in report.sources} - set(labels)
    return dataclasses.replace(
        report,
        sources=tuple(source for source in report.sources if source.label not in others),
        rows=tuple(row for row in report.rows if row.source not in others),
        gains=tuple(gain for gain in report.gains if gain.source not in others),
    )


def remark(report: StudyReport, n: int) -> str:
    labels = ", ".join(source.label for source in report.sources[:4])
    return f"Of trainings on {n} other corpora ({labels}) the best is named: the best of several is partly luck."


BY_TEMPLATE = (
    "The template generator wrote queries trained on here and stands in for an LLM: what a model's queries would gain "
    "may differ."
)


def remarks(workspace: Workspace, sources: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The remark where it applies, as far as the sets of a study's sources are still there."""
    for source in sources:
        with suppress(CdpError):
            if query_sets.load(workspace, str(source["query_set"])).generator == "template":
                return (BY_TEMPLATE,)
    return ()


EXACT, BENCHMARK_ONLY, CORPUS_ONLY = "exact", "benchmark", "corpus"
"""How near a study is to a task: on its benchmark and its corpus, or on one of them."""

PREFERRED_SPLITS = ("dev", "validation", "valid", "test")


@dataclass(frozen=True)
class Measured:
    """A study's answer for a task. ``nearness`` is one of EXACT, BENCHMARK_ONLY, CORPUS_ONLY; ``judged_by`` who wrote
    the benchmark's queries as far as its manifest says (``template``, ``human``, empty)."""

    study: str
    name: str
    nearness: str
    benchmark: BenchmarkFacts
    corpora: tuple[str, ...]
    retriever: str
    report: StudyReport
    answer: Answer
    judged_by: str = ""
    finished: bool = True

    @property
    def rows(self) -> list[StudyRow]:
        """The rows of the study that have a score here: of this retriever, equal weights, and BM25."""
        return [
            row
            for row in self.report.rows
            if row.retriever in (self.retriever, bm25.NAME)
            and row.weighting == "none"
            and self.benchmark.name in row.scores
        ]

    def gain(self, row: StudyRow, comparison: str) -> Gain | None:
        """The difference of a row of one comparison, if the study has it."""
        return next((g for g in gains(self.report, self.benchmark.name, comparison) if is_of(g, row)), None)


def list_measured(workspace: Workspace, *, corpus: str = "", benchmark: str = "", split: str = "") -> list[Measured]:
    """What was measured for a corpus (its id) and a benchmark (its name), the nearest and newest first.

    A study that trained on another corpus or was evaluated on another benchmark is there too, if one of both is the
    task's; ``Measured.nearness`` says which.
    """
    measured = []
    for view in studies.list_studies(workspace):
        about = read_json_or_none(view.folder / "results" / "about.json")
        if not isinstance(about, dict):
            continue
        with suppress(CdpError, KeyError, TypeError):  # a study that cannot be read is no evidence
            measured += _of_study(workspace, view, about, corpus, benchmark, split)
    order = (EXACT, BENCHMARK_ONLY, CORPUS_ONLY)
    # A study that stopped before its comparisons says less than an older one that has them.
    return sorted(measured, key=lambda m: (order.index(m.nearness), m.answer.gain is None))


def _of_study(
    workspace: Workspace, view: JobView, about: dict[str, Any], corpus: str, benchmark: str, split: str
) -> list[Measured]:
    corpora = tuple(dict.fromkeys(corpora_of(workspace, view, about)))
    names = [str(b["name"]) for b in about["benchmarks"]]
    parents = {_parent(workspace, name): name for name in names}
    if benchmark not in names:  # a sample of a benchmark stands for it
        benchmark = parents.get(benchmark, benchmark)
    nearness = _nearness(corpus in corpora, benchmark in names, corpus, benchmark)
    if not nearness:
        return []
    report = _report(workspace, view)
    if corpus in corpora and len(corpora) > 1:
        report = of_sources(report, {label for label, of in corpus_of_sources(workspace, about) if of == corpus})
    # The report's benchmarks stand in the order of the plan, with the split in the name where a name is there twice.
    facts = [
        pair for pair in zip(names, report.benchmarks, strict=True) if benchmark not in names or pair[0] == benchmark
    ]
    name, chosen = min(facts, key=lambda pair: _split_rank(pair[1].split, split))
    retrievers = [r for r in report.config.items("retrievers") if trained(report, chosen.name, r)]
    if not retrievers:
        return []
    best = max(retrievers, key=lambda r: max(row.scores[chosen.name] for row in trained(report, chosen.name, r)))
    judged_by = _judged_by(workspace, name)
    answer = answer_of(report, chosen.name, best, judged_by=judged_by)
    if corpus not in corpora and len(corpora) > 1:
        answer = dataclasses.replace(answer, remarks=(*answer.remarks, remark(report, len(corpora))))
    of_writers = remarks(workspace, about["sources"])
    answer = dataclasses.replace(answer, remarks=(*answer.remarks, *of_writers))
    finished = report.finished >= report.planned
    return [Measured(view.id, view.name, nearness, chosen, corpora, best, report, answer, judged_by, finished)]


def _nearness(same_corpus: bool, same_benchmark: bool, corpus: str, benchmark: str) -> str:
    """How near a study is to what was named; empty for one that shares neither."""
    if (same_benchmark and (same_corpus or not corpus)) or (same_corpus and not benchmark):
        return EXACT
    return BENCHMARK_ONLY if same_benchmark else CORPUS_ONLY if same_corpus else ""


def _report(workspace: Workspace, view: JobView) -> StudyReport:
    """The report, worked out anew only when a condition was added."""
    path = view.folder / records.FOLDER
    report: StudyReport = ANSWERS.get(path, ("report", str(view.state)), lambda: studies.report(workspace, view.id))
    return report


def _split_rank(split: str, wanted: str) -> tuple[bool, int]:
    rank = PREFERRED_SPLITS.index(split) if split in PREFERRED_SPLITS else len(PREFERRED_SPLITS)
    return split != wanted, rank


def _parent(workspace: Workspace, benchmark: str) -> str:
    """What a benchmark is a sample of; its own name where it is none, or is not here any more."""
    with suppress(CdpError, OSError, ValueError):
        subset = manifests.read(workspace.benchmarks / benchmark).subset
        return subset.of if subset is not None else benchmark
    return benchmark


def _judged_by(workspace: Workspace, benchmark: str) -> str:
    with suppress(CdpError, OSError):
        return str(manifests.read(workspace.benchmarks / benchmark).source.get("queries", ""))
    return ""


def conflicts(first: Measured, others: Iterable[Measured]) -> list[Measured]:
    """Studies as near as the first that say the opposite on several different queries against one."""
    return [
        other
        for other in others
        if other.study != first.study
        and other.nearness == first.nearness
        and other.answer.direction * first.answer.direction < 0
    ]
