"""One row per arm, benchmark and seed, of own results or of a published table: what every figure of the evidence is of.

An arm is a way of training, or a retriever as it was. Figures read these rows alone, so each is drawn from published
and from own results by the same function (``cdp.charts.holds``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, catalog, principle, query_sets
from cdp.base.errors import CdpError
from cdp.base.records import place_of
from cdp.base.statistics import paired_test, two_level_test
from cdp.base.text import condition_name
from cdp.base.workspace import ANSWERS, Workspace
from cdp.benchmarks import registry
from cdp.benchmarks.benchmark import part
from cdp.benchmarks.units import units_of
from cdp.catalog import STUDY_START
from cdp.complexity import lengths, rarity
from cdp.evaluation.results import FirstTen
from cdp.principle import PARAPHRASE, SCALING, Difference
from cdp.principle.tables import read
from cdp.results import board, regraded
from cdp.results.differences import query_scores
from cdp.retrievers import bm25
from cdp.studies.plan import EQUAL_PAIRS
from cdp.studies.target_queries import Profiled, profile_benchmark
from cdp.synthesis import pricing
from cdp.training.reasoning import QUERY_ONLY

UNTRAINED, HUMAN = "untrained", "human"


@dataclass(frozen=True, eq=False, slots=True)
class ByQuery:
    """NDCG@10 of each query in percent (n,), or differences of it, and the queries' clusters; empty where each stands
    alone."""

    queries: tuple[str, ...]
    values: NDArray[np.float64]
    clusters: tuple[int, ...]

    def minus(self, other: ByQuery | None) -> ByQuery | None:
        """Return the differences; None where it is of other queries."""
        if other is None or other.queries != self.queries:
            return None
        return replace(self, values=self.values - other.values)


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One arm on one benchmark with one seed; ``ndcg`` and ``dev`` in percent, ``per_doc`` 0 where nothing was trained.
    ``arm`` is its name.

    ``equal_pairs`` marks arms of as many pairs from fewer documents, ``corpus`` is what was trained on, ``dollars``
    what its queries cost; ``rate`` is None where a retriever has one learning rate. ``scores`` are those of each query,
    None for published rows and for means.
    """

    arm: str
    retriever: str
    method: str
    per_doc: int
    benchmark: str
    ndcg: float
    seed: int = 0
    documents: int = 0
    weighting: str = "none"
    query_source: str = QUERY_ONLY
    loss: str = "infonce"
    rate: float | None = None
    dev: float | None = None
    equal_pairs: bool = False
    corpus: str = ""
    query_set: str = ""
    generator: str = ""
    dollars: float | None = None
    tokens: int | None = None
    group: str = ""
    language: str = ""
    in_domain: bool = False
    cw: float | None = None
    words: float | None = None
    rarity: float | None = None
    scores: ByQuery | None = field(default=None, compare=False, repr=False)

    @property
    def usual(self) -> bool:
        """Return True for a training on the queries themselves, by InfoNCE with equal weights."""
        return (self.weighting, self.query_source, self.loss) == ("none", QUERY_ONLY, "infonce")

    def values(self, keys: Iterable[str]) -> tuple[Any, ...]:
        """Return what these fields hold, to group rows by."""
        return tuple(getattr(self, key) for key in keys)


class MeasureRow(NamedTuple):
    """One Q-D measure of a way of writing at one Q/Doc, by its title (``CE``, ``Self-BLEU``)."""

    method: str
    per_doc: int
    measure: str
    value: float
    low: float | None = None
    high: float | None = None
    query_set: str = ""


@dataclass(frozen=True)
class FigureData:
    """All that the figures read. ``stats`` are facts of benchmarks, ``errors`` counts of who is right at rank 1;
    ``differences`` lie at a value of ``axis``, one of ``AXES``, in the place of CW. ``dev`` names what chose
    checkpoints and is left out."""

    rows: Sequence[ArmRow] = ()
    measures: Sequence[MeasureRow] = ()
    stats: Sequence[Mapping[str, Any]] = ()
    errors: Sequence[Mapping[str, Any]] = ()
    differences: Sequence[Difference] = field(default=())
    axis: str = "cw"
    dev: Sequence[str] = ()


# Own results.


def own(workspace: Workspace, evaluations: Sequence[Mapping[str, Any]], sets: Iterable[str] = ()) -> FigureData:
    """Return the evidence of these evaluations (of ``board.list_evaluations``), trainings of studies among them, and of
    the measures of their query sets and of further ``sets``."""
    of_benchmark = cache(partial(_profiled, workspace))
    of_set = cache(partial(_written, workspace))
    groups = {name: title for title, names in registry.groups().items() for name in names}

    rows = []
    newest = board.latest([dict(evaluation) for evaluation in evaluations])
    choosing = board.choosing(newest)
    reported = [row for row in newest if (row["benchmark"], row["split"]) not in choosing]
    dev = {_place(row) for row in newest if row not in reported}
    scores = query_scores(workspace, reported)
    for evaluation in reported:
        name, split = evaluation["benchmark"], evaluation["split"]
        target = of_benchmark(name, split)
        row = ArmRow(
            arm=evaluation["retriever_name"],
            retriever=evaluation["start"] or evaluation["retriever_name"],
            method=_untrained(evaluation),
            per_doc=0,
            benchmark=_place(evaluation),
            ndcg=100 * (evaluation[board.MEASURE] or 0.0),
            group=groups.get(name, ""),
            in_domain=bool(evaluation["counts"].get("trained_positives")),
            scores=_scores(workspace, name, split, scores[evaluation["id"]]),
        )
        if target is not None:
            row = replace(row, cw=target.profile.mean, language=target.language, **_beside(target))
        rows.append(_with_training(row, evaluation, of_set) if evaluation["trained"] is not None else row)

    rows = _with_rates(rows)
    measured = {row.query_set for row in rows} | {*sets}
    return FigureData(rows, _own_measures(workspace, measured), differences=gains(rows), dev=sorted(dev))


def _with_rates(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """The rows, without a learning rate where their retriever has only one."""
    rates: dict[str, set[float]] = defaultdict(set)
    for row in rows:
        if row.rate is not None:
            rates[row.retriever].add(row.rate)

    return [row if len(rates[row.retriever]) > 1 else replace(row, rate=None) for row in rows]


def _place(evaluation: Mapping[str, Any]) -> str:
    name, split = str(evaluation["benchmark"]), str(evaluation["split"])
    return name if split == "test" else f"{name} {split}"


def _scores(workspace: Workspace, benchmark: str, split: str, of: Mapping[str, float]) -> ByQuery | None:
    if not of:
        return None
    queries = tuple(sorted(of))
    clusters = units_of(workspace, benchmark, split, queries) or ()
    return ByQuery(queries, np.array([100 * of[query] for query in queries]), clusters)


def _untrained(evaluation: Mapping[str, Any]) -> str:
    kind = evaluation["retriever_kind"]
    if evaluation["retriever_id"] == bm25.NAME or evaluation["retriever_name"] == bm25.TITLE:
        return bm25.TITLE
    return "hybrid" if kind != STUDY_START and evaluation["settings"].get("hybrid") else UNTRAINED


def _with_training(row: ArmRow, evaluation: Mapping[str, Any], of_set: Callable[[str], dict[str, Any]]) -> ArmRow:
    """The row with what is known of its training."""
    trained: board.Trained = evaluation["trained"]
    settings = trained.settings
    about = evaluation["settings"].get("condition") or {}
    curve = (evaluation["settings"].get("training") or {}).get("evaluations") or []
    written = dict(of_set(str(settings.get("query_set") or "")))
    loss = "hard-negatives" if settings.get("hard_negatives") else "infonce"
    if settings.get("distil"):
        loss = "distil"

    return replace(
        row,
        method=written.pop("method", "") or trained.source,
        per_doc=round(float(trained.per_doc)),
        seed=int(settings.get("seed") or 0),
        documents=trained.documents,
        weighting=str(settings.get("weighting") or "none"),
        query_source=str(about.get("query_source") or settings.get("query_source") or QUERY_ONLY),
        loss=str(about.get("loss") or loss),
        rate=settings.get("learning_rate"),
        dev=max((100 * float(point["ndcg@10"]) for point in curve), default=None),
        equal_pairs=settings.get("held") == EQUAL_PAIRS or bool(settings.get("budget")),
        corpus=trained.corpus,
        query_set=str(settings.get("query_set") or ""),
        **written,
    )


def _beside(target: Profiled) -> dict[str, Any]:
    """The means of what stands beside CW, over the queries of a benchmark."""
    measures = {"words": lengths, "rarity": rarity}
    return {name: float(measure(target.texts, target.language).mean()) for name, measure in measures.items()}


def _profiled(workspace: Workspace, benchmark: str, split: str) -> Profiled | None:
    with suppress(CdpError):
        return profile_benchmark(workspace, benchmark, split=split)
    return None


def _written(workspace: Workspace, query_set: str) -> dict[str, Any]:
    """Who wrote a query set, and what it cost; empty where it is not known."""
    with suppress(CdpError):
        found = query_sets.load(workspace, query_set)
        method = HUMAN if found.kind == HUMAN else found.method
        facts: dict[str, Any] = {"method": method, "generator": found.model or found.generator}
        bill = pricing.bill_of_job(workspace, found.job_id) if found.job_id else None
        if bill is not None:
            facts |= {"dollars": bill.cost, "tokens": bill.usage.input_tokens + bill.usage.output_tokens}
        return facts
    return {}


def _own_measures(workspace: Workspace, sets: Iterable[str]) -> list[MeasureRow]:
    """The newest measurement of each set, as it is, at each Q/Doc."""
    from cdp.metrics import MEASURES

    found: dict[tuple[str, int, str], MeasureRow] = {}
    current = {name: _content(workspace, name) for name in sets if name}
    for row in catalog.metrics(workspace):
        name = row["query_set"]
        key = (name, row["per_doc"], row["measure"])
        if current.get(name) != row["query_set_hash"] or row["measure"] not in MEASURES:
            continue
        low, high = row["interval"] or (None, None)
        if key in found and (low is None or found[key].low is not None):
            continue
        title, method = MEASURES[row["measure"]].title, row["method"]
        found[key] = MeasureRow(str(method), row["per_doc"], title, row["value"], low, high, name)
    return sorted(found.values())


def _content(workspace: Workspace, query_set: str) -> str | None:
    with suppress(CdpError):
        return query_sets.state(workspace, query_sets.load(workspace, query_set))
    return None


def statistics(workspace: Workspace, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the sizes, lengths and content words of each benchmark by name; one that cannot be read is left out."""
    rows = []
    for name in names:
        with suppress(CdpError):
            folder = benchmarks.resolve_benchmark(name, workspace)
            load = partial(_statistics, workspace, name)
            rows.append(ANSWERS.get(part(folder, "queries"), ("statistics", name), load))
    return rows


def _statistics(workspace: Workspace, name: str) -> dict[str, Any]:
    target = profile_benchmark(workspace, name)
    _, split = target.benchmark.rsplit(":", 1)
    loaded = benchmarks.load_benchmark(benchmarks.resolve_benchmark(name, workspace), split)
    least = loaded.relevant_from
    relevant = [(q, d) for q, grades in loaded.qrels.items() for d, grade in grades.items() if grade >= least]
    profile = target.profile
    low, high = profile.interval

    return {
        "dataset": name, "n_queries": loaded.n_queries, "n_docs": loaded.n_documents, "language": target.language,
        "query_len_chars": float(np.mean([len(text) for text in loaded.queries])),
        "doc_len_chars": float(np.mean([len(text) for text in loaded.documents])),
        "docs_per_query": len(relevant) / max(1, loaded.n_queries),
        "queries_per_doc": len(relevant) / max(1, len({document for _, document in relevant})),
        "cw": profile.mean, "cw_low": low, "cw_high": high, "cw_min": profile.minimum, "cw_max": profile.maximum,
    }  # fmt: skip


# Who is right at rank 1.


def compared(workspace: Workspace, evaluations: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return {benchmark and split: {name of an arm: its evaluation}} of those whose first ten documents were kept; of
    several seeds the newest."""
    found: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in board.latest([dict(row) for row in evaluations]):
        if regraded.retrieved(workspace, row) is not None:
            place = board.benchmark_label(row["benchmark"], row["split"], row["protocol"])
            found[place].setdefault(row["retriever_name"], row)
    return {place: arms for place, arms in found.items() if len(arms) > 1}


@dataclass(frozen=True, slots=True)
class Case:
    """A query that exactly one of two arms has right at rank 1: ``right`` is 1 or 2. ``wrong`` is what the other had
    first (empty: nothing), ``same`` whether that is another passage of the file of a relevant document."""

    query_id: str
    right: int
    relevant: str
    wrong: str
    same: bool


@dataclass(frozen=True)
class ArmPair:
    """Two arms on one benchmark by name, with the first ten documents of each; ``least`` is the lowest relevant grade,
    ``clusters`` are those of the judged queries."""

    names: tuple[str, str]
    runs: tuple[FirstTen, FirstTen]
    qrels: Mapping[str, Mapping[str, int]]
    least: int = 1
    clusters: tuple[int, ...] = ()

    def first(self, query: str) -> list[str]:
        """What each arm has first; empty for nothing."""
        return [next(iter(run.get(query, ())), "") for run in self.runs]

    def right(self, query: str) -> list[bool]:
        """Whether each arm is right at rank 1."""
        return [self.qrels[query].get(document, 0) >= self.least for document in self.first(query)]

    def cases(self) -> list[Case]:
        """The queries that only one arm has right, in the order of the judgments."""
        found = []
        for query, grades in self.qrels.items():
            right, first = self.right(query), self.first(query)
            if sum(right) != 1:
                continue

            winner = right.index(True)
            files = {place_of(document)[0] for document, grade in grades.items() if grade >= self.least}
            wrong = first[1 - winner]
            found.append(Case(query, winner + 1, first[winner], wrong, place_of(wrong)[0] in files))
        return found

    def table(self) -> list[dict[str, Any]]:
        """The two-way table of P@1 as counts and percent, what the other arm had in place of a relevant document, and
        the net gain with its 95% interval over queries."""
        right = np.array([self.right(query) for query in self.qrels], dtype=np.int64).reshape(-1, 2)
        n, both = len(right), int((right.sum(axis=1) == 2).sum())
        alone = self.cases()
        rows = [_count("queries", n, 0), _count("right with both", both, n)]
        rows.append(_count("right with neither", n - both - len(alone), n))

        for side in (2, 1):
            mine, other = self.names[side - 1], self.names[2 - side]
            of_side = [case for case in alone if case.right == side]
            same = sum(case.same for case in of_side)
            only = f"right only with {mine}"
            rows.append(_count(only, len(of_side), n))
            rows.append(_count(f"{only}: {other} had another passage of the same file", same, len(of_side)))
            rows.append(_count(f"{only}: {other} had another file", len(of_side) - same, len(of_side)))

        gained = right[:, 1] - right[:, 0]
        net = _count(f"net gain of {self.names[1]}", int(gained.sum()), n)
        if n > 1:
            tested = paired_test(100 * gained, self.clusters)
            net |= {"low": tested.low, "high": tested.high}
        return [*rows, net]


def _count(what: str, count: int, whole: int) -> dict[str, Any]:
    return {"what": what, "value": count, "percent": 100 * count / whole if whole else None}


def pair(
    workspace: Workspace, here: Mapping[str, Mapping[str, Any]], names: tuple[str, str]
) -> tuple[ArmPair, benchmarks.Benchmark]:
    """Return two of the arms that ``compared`` found at one place, and the benchmark with its texts."""
    rows = [here[name] for name in names]
    first, second = (regraded.retrieved(workspace, row) or {} for row in rows)
    folder = benchmarks.resolve_benchmark(rows[0]["benchmark"], workspace)
    loaded = benchmarks.load_benchmark(folder, rows[0]["split"])
    clusters = units_of(workspace, rows[0]["benchmark"], rows[0]["split"], tuple(loaded.qrels)) or ()
    return ArmPair(names, (first, second), loaded.qrels, loaded.relevant_from, clusters), loaded


# The published tables in the same form.

_METHODS = {"Ours-diverse": "diverse", "Ours-paraphrase": "paraphrase", "Supervised": HUMAN, "Pretrained": UNTRAINED,
            "ReasonEmbed": "reasoned", "ReasonEmbed-data": "reasoned"}  # fmt: skip

# Figures that count over other tables: what they are of.
_BEHIND = {
    "fig:qdoc_distribution": ("tab:scaling_full", "tab:multihop_scaling"),
    "tab:retriever_comparison": ("tab:multihop_diversity", "tab:qwen_retriever"),
    "fig:diversity_multihop": ("fig:diversity_multihop",),
}


# The file of each table of facts of benchmarks.
_STATS = {"tab:dataset_stats": "datasets", "tab:multilingual": "multilingual",
          "tab:multihop_difficulty": "multihop_difficulty"}  # fmt: skip


def published(name: str) -> FigureData:
    """Return the evidence of one published table or figure, by its label."""
    tables = _BEHIND.get(name, (name,))
    facts = {row["dataset"]: row for row in read("datasets")}
    rows = [
        _published_row(row, facts.get(row["dataset"], {}))
        for row in read("results")
        if row["table"] in tables and row["metric"] == "NDCG@10"
    ]

    measures = [
        MeasureRow(_method(row), row["queries_per_doc"], row["metric"], row["value"])
        for row in read("qd_metrics")
        if row["table"] == name
    ]

    stats = read(_STATS[name]) if name in _STATS else ()
    errors = read("error_analysis") if name == "tab:error_analysis" else ()
    known = principle.differences() if name in ("tab:content_words", "tab:cw_threshold") else ()

    return FigureData(rows, measures, stats, errors, known)


def _method(row: Mapping[str, Any]) -> str:
    return _METHODS.get(str(row["method"]), str(row["method"]))


def _published_row(row: Mapping[str, Any], facts: Mapping[str, Any]) -> ArmRow:
    retriever, method, rate = row["retriever"] or "as printed", _method(row), row["learning_rate"]
    per_doc = 0 if row["method"] == "Pretrained" else row["queries_per_doc"] or 1
    equal_pairs = EQUAL_PAIRS if "cost_efficiency" in row["table"] else ""
    source = row["query_source"] or QUERY_ONLY
    unusual = [value for value in (row["weighting"], source) if value not in board.USUAL]
    trained = (method, per_doc, row["train_data"]) if per_doc else ("", 0, "")
    peak = f"learning rate {rate}" if rate else ""

    return ArmRow(
        arm=condition_name(retriever, *trained, *unusual, equal_pairs, peak),
        retriever=retriever,
        method=method,
        per_doc=per_doc,
        benchmark=row["dataset"] or f"{row['group']} mean",
        ndcg=row["value"],
        documents=row["n_docs"] or 0,
        weighting=row["weighting"],
        query_source=source,
        rate=float(rate) if rate else None,
        dev=row["value"] if rate else None,
        equal_pairs=bool(equal_pairs),
        corpus=row["train_data"],
        generator=row["generator"],
        group=row["group"],
        in_domain=row["eval_domain"] == "in-domain",
        cw=facts.get("cw"),
    )  # fmt: skip


# What a gain is laid over, beside CW: what of it is length, and what rare words?
AXES = {
    "cw": "mean content words of the dataset's queries (CW)",
    "words": "mean words of the dataset's queries",
    "rarity": "mean rarity of the dataset's content words (bits)",
}

# Differences between arms.

# What an arm and its control may differ in without being other arms.
NO_PART_OF_THE_ARM = ("arm", "ndcg", "scores", "dev", "query_set", "documents", "dollars", "tokens", "in_domain")


def mean(rows: Iterable[ArmRow], *keys: str, value: str = "ndcg") -> list[dict[str, Any]]:
    """Return the mean over seeds for each combination of ``keys``, in their order, with the standard deviation (None
    with one seed), the 95% interval over queries and seeds (None over several benchmarks) and the number of seeds."""
    grouped: dict[tuple[Any, ...], list[ArmRow]] = defaultdict(list)
    for row in rows:
        grouped[row.values(keys)].append(row)

    found = []
    for key, members in grouped.items():
        values = [float(getattr(row, value)) for row in members]
        seeds = len({row.seed for row in members})
        once = len(values) == seeds
        sd = float(np.std(values, ddof=1)) if seeds > 1 and once else None
        low, high = _interval(members) if once and value == "ndcg" else (None, None)
        facts = {value: float(np.mean(values)), "sd": sd, "low": low, "high": high, "seeds": seeds}
        found.append(dict(zip(keys, key, strict=True)) | facts)

    return found


def _interval(of_seeds: Sequence[ArmRow]) -> tuple[float | None, float | None]:
    """The 95% interval of the mean of one arm on one benchmark, as of a study's report: over queries and seeds."""
    scores = [row.scores for row in of_seeds if row.scores is not None]
    places = {(row.benchmark, row.scores.queries if row.scores else ()) for row in of_seeds}
    if len(scores) < len(of_seeds) or len(places) > 1 or len(scores[0].queries) < 2:
        return None, None

    tested = two_level_test([of.values for of in scores], clusters=scores[0].clusters)
    return tested.low, tested.high


def difference(rows: Sequence[ArmRow], control: Callable[[ArmRow], ArmRow | None]) -> list[ArmRow]:
    """Return the rows that have a control of the same seed, each with its NDCG@10 minus that of the control."""
    of_the_arm = [f.name for f in fields(ArmRow) if f.name not in NO_PART_OF_THE_ARM]
    there = {row.values(of_the_arm): row for row in rows}
    found = []
    for row in rows:
        wanted = control(row)
        against = None if wanted is None else there.get(wanted.values(of_the_arm))
        if against is not None:
            scores = row.scores and row.scores.minus(against.scores)
            found.append(replace(row, ndcg=row.ndcg - against.ndcg, scores=scores))

    return found


def over_paraphrase(row: ArmRow) -> ArmRow | None:
    """The paraphrases that a diverse arm is compared with."""
    return replace(row, method="paraphrase") if row.method == "diverse" else None


def over_one(row: ArmRow) -> ArmRow | None:
    """The one query per document that an arm with several is compared with."""
    return replace(row, per_doc=1, equal_pairs=False) if row.per_doc > 1 and row.method != "paraphrase" else None


def over_equal(row: ArmRow) -> ArmRow | None:
    """The equal weights that a weighted arm is compared with."""
    return replace(row, weighting="none") if row.weighting != "none" else None


def gains(rows: Sequence[ArmRow], axis: str = "cw") -> list[Difference]:
    """Return the out-of-domain gains from diverse queries and from more of them, mean over seeds, with the benchmark's
    content words (or another of ``AXES``)."""
    found: list[Difference] = []
    plain = [row for row in rows if row.usual and not row.in_domain and getattr(row, axis) is not None]
    plain = [row for row in plain if not row.equal_pairs] or plain  # the two designs are two questions
    for comparison, control in ((PARAPHRASE, over_paraphrase), (SCALING, over_one)):
        of_arms = mean(difference(plain, control), "retriever", "per_doc", "benchmark", axis)
        for row in of_arms:
            place = (row["retriever"], comparison, row["per_doc"], row["benchmark"], row[axis])
            found.append(Difference(*place, row["ndcg"]))
    return found
