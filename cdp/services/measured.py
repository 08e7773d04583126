"""Studies that trained on several corpora: what they say of a task is what trainings on its own corpus did."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.statistics import holm
from cdp.base.text import counted, signed
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.benchmarks import manifests
from cdp.evaluation import bm25
from cdp.jobs import JobView
from cdp.principle import PARAPHRASE, SCALING
from cdp.services import studies
from cdp.studies import StudyReport, records
from cdp.studies.gains import LEXICAL, TRAINING, Gain
from cdp.studies.plan import EQUAL_PAIRS, PARAPHRASED, UNTRAINED, method_of
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


# How near a study is to a task: on its benchmark and its corpus, or on one of them.
EXACT, BENCHMARK_ONLY, CORPUS_ONLY = "exact", "benchmark", "corpus"

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
    """The report, computed again only when a condition was added."""
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


# Of two numbers of queries that score within a point, the smaller one is advised, as the published advice does.
CLOSE_POINTS = 1.0

# With fewer judged queries a measurement is called weak, whatever its interval.
FEW_JUDGED = 50


@dataclass(frozen=True)
class Answer:
    """What a study says for one benchmark. ``kind``: ``untrained``, ``one`` or the label of a source to train on.

    ``direction``: several different queries beat one (1), lose (-1), or neither is shown (0). ``gain`` is the
    difference that the sentence rests on; ``remarks`` are further findings and what makes the answer weak.
    """

    kind: str
    per_doc: int
    direction: int
    sentence: str
    gain: Gain | None
    remarks: tuple[str, ...] = ()


def is_of(gain: Gain, row: StudyRow) -> bool:
    if gain.comparison == LEXICAL:
        return row.retriever == bm25.NAME
    return (gain.retriever, gain.source, gain.per_doc, gain.held) == (
        row.retriever,
        row.source,
        row.per_doc,
        row.held,
    )


def trained(report: StudyReport, benchmark: str, retriever: str) -> list[StudyRow]:
    return [
        row
        for row in report.rows
        if row.retriever == retriever
        and row.source != UNTRAINED
        and row.weighting == "none"
        and benchmark in row.scores
    ]


def gains(report: StudyReport, benchmark: str, comparison: str) -> list[Gain]:
    return [g for g in report.of(comparison) if g.benchmark == benchmark and g.weighting in ("none", "")]


def answer_of(report: StudyReport, benchmark: str, retriever: str, *, judged_by: str = "") -> Answer:
    """What follows from a study for one benchmark and retriever: the cheapest choice that nothing is shown to beat.

    Training must beat the untrained retriever, several queries must beat one, and different ones paraphrases, each by
    more than chance over queries and seeds; of several numbers within a point of the best the smallest is taken.
    """
    answer = _answer(report, benchmark, retriever, judged_by)
    caution = _caution(report, benchmark, judged_by)
    if caution:
        answer = dataclasses.replace(answer, sentence=f"{caution}, {answer.sentence[0].lower()}{answer.sentence[1:]}")
    ahead = _lexical_ahead(report, benchmark, retriever)
    if not ahead:
        return answer
    sentence = answer.sentence
    if answer.kind != UNTRAINED:
        sentence = f"If you train it all the same: {sentence[0].lower()}{sentence[1:]}"
    remarks = tuple(text for text in answer.remarks if not text.startswith(f"{bm25.TITLE} scores"))
    return dataclasses.replace(answer, sentence=f"{ahead} {sentence}", remarks=remarks)


def _caution(report: StudyReport, benchmark: str, judged_by: str) -> str:
    """What a weak measurement says before its sentence; empty for one that is not."""
    facts = next(b for b in report.benchmarks if b.name == benchmark)
    if report.finished < report.planned:
        return f"After {report.finished} of {report.planned} trainings"
    if judged_by == "template":
        return "For template queries only"
    if facts.n_queries < FEW_JUDGED:
        return "As far as so few judged queries can tell"
    return "As far as one seed can tell" if len(report.config.numbers("seeds", minimum=0)) < 2 else ""


def _lexical_ahead(report: StudyReport, benchmark: str, retriever: str) -> str:
    """Where BM25 is above every training, beyond both intervals, that comes first: nobody should train to get less."""
    lexical = next((row for row in report.rows if row.retriever == bm25.NAME and benchmark in row.scores), None)
    best = max(trained(report, benchmark, retriever), key=lambda row: row.scores[benchmark])
    if lexical is None or benchmark not in lexical.intervals or benchmark not in best.intervals:
        return ""
    if lexical.intervals[benchmark][0] <= best.intervals[benchmark][1]:
        return ""
    return (
        f"Use {bm25.TITLE}, or test a stronger retriever: {bm25.TITLE} scores {lexical.scores[benchmark]:.1f} here, "
        f"the best training of {retriever} {best.scores[benchmark]:.1f}."
    )


def _answer(report: StudyReport, benchmark: str, retriever: str, judged_by: str) -> Answer:
    rows = [row for row in trained(report, benchmark, retriever) if not row.held]
    where = _where(report, benchmark)
    best = max(rows, key=lambda row: row.scores[benchmark])
    training = _of_row(gains(report, benchmark, TRAINING), best)
    against_one = [g for g in gains(report, benchmark, SCALING) if g.retriever == retriever]
    scaling = _corrected([g for g in against_one if not g.held])
    at_equal_pairs = [g for g in against_one if g.held == EQUAL_PAIRS]
    different = [g for g in scaling if method_of(g.source) != PARAPHRASED]
    direction = _direction(different)
    remarks = _remarks(report, benchmark, retriever, best, judged_by)
    if training is not None and not (training.significant and training.points > 0):
        lost = training.significant and training.points < 0
        shown = "lowered it" if lost else "is not shown to help"
        text = (
            f"Do not train on these queries yet: on {where} the best training of {retriever} {shown} "
            f"({_figures(training)})."
        )
        return Answer(UNTRAINED, 0, direction, text, training, (*remarks, *_remark_at_equal_pairs(at_equal_pairs)))
    several = _several(scaling, rows, benchmark)
    if several is None:
        remarks = (*remarks, *_remark_at_equal_pairs(at_equal_pairs))
        return Answer("one", 1, direction, _one(scaling, where), _most(scaling), remarks)
    text = (
        f"Write {several.per_doc} {_noun(several.source)} per document: on {where} that is {_figures(several)} above "
        "one query per document"
    )
    against = _of_gain(gains(report, benchmark, PARAPHRASE), several)
    if against is None:
        text += "."
    elif against.significant and against.points > 0:
        text += f", and {_figures(against)} above {several.per_doc} paraphrases."
    else:
        text += f"; against {several.per_doc} paraphrases it may be chance ({_figures(against)})."
    text += _at_equal_pairs(at_equal_pairs, several)
    return Answer(several.source, several.per_doc, direction, text, several, remarks)


def _corrected(scaling: Sequence[Gain]) -> list[Gain]:
    """Holm's correction over all that is compared with one query: the best of many differences is chosen here."""
    return [dataclasses.replace(g, p_holm=p) for g, p in zip(scaling, holm([g.p for g in scaling]), strict=True)]


def _several(scaling: Sequence[Gain], rows: Sequence[StudyRow], benchmark: str) -> Gain | None:
    """The gain over one query that is worth its queries: shown to be more than chance, of the best source, with the
    fewest queries within a point of its best."""
    shown = [g for g in scaling if g.significant and g.points > 0]
    if not shown:
        return None
    score = {(row.source, row.per_doc): row.scores[benchmark] for row in rows}
    best = max(shown, key=lambda g: score[g.source, g.per_doc])
    close = [
        g
        for g in shown
        if g.source == best.source and score[g.source, g.per_doc] > score[best.source, best.per_doc] - CLOSE_POINTS
    ]
    return min(close, key=lambda g: g.per_doc)


def _at_equal_pairs(held: Sequence[Gain], several: Gain) -> str:
    """Several queries per document are also more pairs: what is left of their gain over one at as many pairs."""
    equal = next((g for g in held if (g.source, g.per_doc) == (several.source, several.per_doc)), None)
    if equal is None:
        return ""
    figures = f"with as many pairs, on fewer documents, it is {_figures(equal)}"
    if not equal.significant:
        return f" The larger number of pairs may be all that helps: {figures}, which may be chance."
    if equal.points > 0:
        return f" It is not the larger number of pairs alone: {figures}."
    return f" The larger number of pairs makes it: {figures}. If you have more documents, take one query of each first."


def _remark_at_equal_pairs(held: Sequence[Gain]) -> tuple[str, ...]:
    """The same where no number of queries is advised, of the most different ones that were measured."""
    different = [g for g in held if method_of(g.source) != PARAPHRASED]
    if not different:
        return ()
    most = max(different, key=lambda g: g.per_doc)
    shown = "is more than chance" if most.significant else "may be chance"
    return (
        f"With the same number of pairs, so on fewer documents, {most.per_doc} {_noun(most.source)} against one: "
        f"{_figures(most)}, which {shown}.",
    )


def _direction(different: Sequence[Gain]) -> int:
    if any(g.significant and g.points > 0 for g in different):
        return 1
    return -1 if any(g.significant and g.points < 0 for g in different) else 0


def _one(scaling: Sequence[Gain], where: str) -> str:
    most = _most(scaling)
    if most is None:
        return f"Train: on {where} it helps. Only one number of queries per document was measured."
    if most.significant:
        return (
            f"Write one query per document: on {where} {most.per_doc} {_noun(most.source)} each score lower "
            f"({_figures(most)})."
        )
    return (
        f"Write one query per document: on {where} more are not shown to help; {most.per_doc} {_noun(most.source)} "
        f"made the largest difference, {_figures(most)}"
        f"{'; among so many comparisons that is not more than chance.' if most.low > 0 else '.'}"
    )


def _most(scaling: Sequence[Gain]) -> Gain | None:
    return max(scaling, key=lambda g: g.points, default=None)


def _of_row(gains: Iterable[Gain], row: StudyRow) -> Gain | None:
    return next((g for g in gains if is_of(g, row)), None)


def _of_gain(gains: Iterable[Gain], gain: Gain) -> Gain | None:
    cell = (gain.retriever, gain.source, gain.per_doc, gain.held)
    return next((g for g in gains if (g.retriever, g.source, g.per_doc, g.held) == cell), None)


def _noun(source: str) -> str:
    nouns = {"diverse": "different queries", "paraphrase": "paraphrases", "human": "human queries"}
    method = method_of(source)
    return f"{nouns[method]}{source[len(method) :]}" if method in nouns else f"{source} queries"


def _figures(gain: Gain) -> str:
    return f"{signed(gain.points, 1)} NDCG@10 points (95% {signed(gain.low, 1)} to {signed(gain.high, 1)})"


def _where(report: StudyReport, benchmark: str) -> str:
    facts = next(b for b in report.benchmarks if b.name == benchmark)
    name = benchmark if benchmark.endswith(facts.split) else f"{benchmark} {facts.split}"
    queries = counted(facts.n_queries, "judged query").replace("querys", "queries")
    return f"{name} ({queries}{', in-domain' if facts.in_domain else ''})"


def _remarks(report: StudyReport, benchmark: str, retriever: str, best: StudyRow, judged_by: str) -> tuple[str, ...]:
    """What stands beside the answer: BM25, and what makes all of it weak."""
    remarks = []
    lexical = next((row for row in report.rows if row.retriever == bm25.NAME and benchmark in row.scores), None)
    if lexical is not None:
        ahead = lexical.scores[benchmark] > best.scores[benchmark]
        remarks.append(
            f"{bm25.TITLE} scores {lexical.scores[benchmark]:.1f} there, "
            f"{'more than every training' if ahead else 'less than the best training'} ({best.scores[benchmark]:.1f})."
        )
    facts = next(b for b in report.benchmarks if b.name == benchmark)
    if judged_by == "template":
        remarks.append(
            "Weak: the judged queries were written by template from the documents' own words. This shows that training "
            "works, and says little of what people ask."
        )
    if facts.n_queries < FEW_JUDGED:
        remarks.append(f"Weak: only {facts.n_queries} judged queries.")
    if facts.split == "test":
        remarks.append("Measured on the test split: choose by it, and no score there is unseen any more.")
    seeds = len(report.config.numbers("seeds", minimum=0))
    if seeds < 2:
        remarks.append("Weak: one seed, so the spread between trainings is unknown.")
    if report.finished < report.planned:
        remarks.append(f"Incomplete: {report.finished} of {report.planned} trainings are done.")
    remarks += [text for text in report.limits if text.startswith("Leaked:")]
    return tuple(remarks)
