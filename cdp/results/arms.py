"""One row per arm, benchmark and seed, of own results or of a published table: what every figure of the evidence is of.

An arm is a way of training, or a retriever as it was. Figures read these rows alone, so each is drawn from published
and from own results by the same function (``cdp.charts.holds``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import attrgetter
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, catalog, principle, query_sets
from cdp.base.condition import EQUAL_PAIRS, HUMAN, HYBRID, PARAPHRASED, UNTRAINED, Condition
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
from cdp.principle.tables import condition_of, method_in, read
from cdp.results import board, regraded
from cdp.results.differences import query_scores
from cdp.retrievers import bm25
from cdp.studies.target_queries import profile_benchmark
from cdp.synthesis import pricing


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
    """One arm on one benchmark with one seed; ``ndcg`` and ``dev`` in percent. ``arm`` is its name.

    The source of its ``condition`` is the method alone, ``corpus`` what was trained on, ``dollars`` what its queries
    cost. ``scores`` are those of each query, None for published rows and for means.
    """

    arm: str
    condition: Condition
    benchmark: str
    ndcg: float
    seed: int = 0
    documents: int = 0
    dev: float | None = None
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
        """Return True for a training on the queries themselves, by InfoNCE with equal weights, at any rate."""
        return self.condition._replace(rate=None, layers=None).usual

    @property
    def method(self) -> str:
        return self.condition.source

    @property
    def equal_pairs(self) -> bool:
        """Return True for as many pairs from fewer documents."""
        return bool(self.condition.held)

    def values(self, keys: Iterable[str]) -> tuple[Any, ...]:
        """Return what these fields, of the row or of its condition, hold, to group rows by."""
        return tuple(getattr(self if hasattr(self, key) else self.condition, key) for key in keys)


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


def own(workspace: Workspace, evaluations: Sequence[dict[str, Any]], sets: Iterable[str] = ()) -> FigureData:
    """Return the evidence of these evaluations (of ``board.list_evaluations``), trainings of studies among them, and of
    the measures of their query sets and of further ``sets``."""
    of_benchmark = cache(partial(_judged_facts, workspace))
    of_set = cache(partial(_written, workspace))
    groups: dict[str, str] = {}
    for title, names in registry.groups().items():
        groups |= dict.fromkeys(names, title)

    newest = board.latest(evaluations)
    choosing = board.choosing(newest)
    reported, dev = [], set()
    for evaluation in newest:
        place = (evaluation["benchmark"], evaluation["split"])
        if place in choosing:
            dev.add(board.benchmark_label(*place))
        else:
            reported.append(evaluation)

    rows = []
    scores = query_scores(workspace, reported)
    for evaluation in reported:
        if evaluation["trained"] is not None and evaluation["trained"].condition.fused:
            continue  # no figure of the paper is of fusions

        name, split = evaluation["benchmark"], evaluation["split"]
        rows.append(
            ArmRow(
                arm=evaluation["retriever_name"],
                benchmark=board.benchmark_label(name, split),
                ndcg=100 * (evaluation[board.MEASURE] or 0.0),
                group=groups.get(name, ""),
                in_domain=bool(evaluation["counts"].get("trained_positives")),
                scores=_scores(workspace, name, split, scores[evaluation["id"]]),
                **of_benchmark(name, split),
                **_of_training(evaluation, of_set),
            )
        )

    rows = _with_rates(rows)
    measured = {row.query_set for row in rows} | {*sets}
    return FigureData(rows, _own_measures(workspace, measured), differences=gains(rows), dev=sorted(dev))


def _with_rates(rows: Sequence[ArmRow]) -> list[ArmRow]:
    """The rows, without a learning rate where their retriever has only one."""
    rates: dict[str, set[float]] = defaultdict(set)
    for row in rows:
        if row.condition.rate is not None:
            rates[row.condition.retriever].add(row.condition.rate)

    told = []
    for row in rows:
        if len(rates[row.condition.retriever]) == 1:
            row = replace(row, condition=row.condition._replace(rate=None))
        told.append(row)

    return told


def _scores(workspace: Workspace, benchmark: str, split: str, of: Mapping[str, float]) -> ByQuery | None:
    if not of:
        return None

    queries, values = zip(*sorted(of.items()), strict=True)
    clusters = units_of(workspace, benchmark, split, queries) or ()
    return ByQuery(queries, 100 * np.array(values), clusters)


def _untrained(evaluation: Mapping[str, Any]) -> str:
    if evaluation["retriever_id"] == bm25.NAME or evaluation["retriever_name"] == bm25.TITLE:
        return bm25.TITLE
    if evaluation["retriever_kind"] != STUDY_START and evaluation["settings"].get("hybrid"):
        return HYBRID
    return UNTRAINED


def _of_training(evaluation: Mapping[str, Any], of_set: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """The condition of an evaluated retriever, with the facts of its training where it has one."""
    trained: board.Trained | None = evaluation["trained"]
    if trained is None:
        return {"condition": Condition(evaluation["start"] or evaluation["retriever_name"], _untrained(evaluation))}

    settings = trained.settings
    curve = (evaluation["settings"].get("training") or {}).get("evaluations") or []
    written = dict(of_set(str(settings.get("query_set") or "")))
    condition = trained.condition._replace(
        source=written.pop("method", "") or trained.source,
        per_doc=round(float(trained.per_doc)),
        held=EQUAL_PAIRS if settings.get("budget") else trained.condition.held,
        rate=settings.get("learning_rate"),
    )

    return {
        "condition": condition,
        "seed": trained.seed,
        "documents": trained.documents,
        "dev": max((100 * float(point["ndcg@10"]) for point in curve), default=None),
        "corpus": trained.corpus,
        "query_set": str(settings.get("query_set") or ""),
        **written,
    }


def _judged_facts(workspace: Workspace, benchmark: str, split: str) -> dict[str, Any]:
    """The language of a benchmark's queries, and the means of their CW and of what stands beside it; empty where they
    cannot be read."""
    with suppress(CdpError):
        target = profile_benchmark(workspace, benchmark, split=split)
        beside = {"words": lengths(target.texts, target.language), "rarity": rarity(target.texts, target.language)}
        means = {name: float(values.mean()) for name, values in beside.items()}
        return {"language": target.language, "cw": target.profile.mean, **means}
    return {}


def _written(workspace: Workspace, query_set: str) -> dict[str, Any]:
    """Who wrote a query set, and what it cost; empty where it is not known."""
    with suppress(CdpError):
        found = query_sets.load(workspace, query_set)
        method = HUMAN if found.kind == HUMAN else found.method
        facts: dict[str, Any] = {"method": method, "generator": found.model or found.generator}
        if found.job_id:
            bill = pricing.bill_of_job(workspace, found.job_id)
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

    n_relevant, relevant = 0, set()
    for grades in loaded.qrels.values():
        of_query = [document for document, grade in grades.items() if grade >= loaded.relevant_from]
        n_relevant += len(of_query)
        relevant.update(of_query)

    profile = target.profile
    low, high = profile.interval

    return {
        "dataset": name, "n_queries": loaded.n_queries, "n_docs": loaded.n_documents, "language": target.language,
        "query_len_chars": fmean(map(len, loaded.queries)), "doc_len_chars": fmean(map(len, loaded.documents)),
        "docs_per_query": n_relevant / max(1, loaded.n_queries),
        "queries_per_doc": n_relevant / max(1, len(relevant)),
        "cw": profile.mean, "cw_low": low, "cw_high": high, "cw_min": profile.minimum, "cw_max": profile.maximum,
    }  # fmt: skip


# Who is right at rank 1.


def compared(workspace: Workspace, evaluations: Sequence[dict[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return {benchmark and split: {name of an arm: its evaluation}} of those whose first ten documents were kept; of
    several seeds the newest."""
    found: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in board.latest(evaluations):
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
        right = np.array(list(map(self.right, self.qrels)), dtype=np.int64).reshape(-1, 2)
        n, both = len(right), int((right.sum(axis=1) == 2).sum())
        alone = Counter((case.right, case.same) for case in self.cases())
        rows = [_count("queries", n, 0), _count("right with both", both, n)]
        rows.append(_count("right with neither", n - both - alone.total(), n))

        for side in (2, 1):
            mine, other = self.names[side - 1], self.names[2 - side]
            same, elsewhere = alone[side, True], alone[side, False]
            of_side = same + elsewhere
            only = f"right only with {mine}"
            rows.append(_count(only, of_side, n))
            rows.append(_count(f"{only}: {other} had another passage of the same file", same, of_side))
            rows.append(_count(f"{only}: {other} had another file", elsewhere, of_side))

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
    first, second = here[names[0]], here[names[1]]
    runs = (regraded.retrieved(workspace, first) or {}, regraded.retrieved(workspace, second) or {})
    name, split = first["benchmark"], first["split"]
    loaded = benchmarks.load_benchmark(benchmarks.resolve_benchmark(name, workspace), split)
    clusters = units_of(workspace, name, split, tuple(loaded.qrels)) or ()
    return ArmPair(names, runs, loaded.qrels, loaded.relevant_from, clusters), loaded


# The published tables in the same form.

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
    rows = []
    for row in read("results"):
        if row["table"] in tables and row["metric"] == "NDCG@10":
            rows.append(_published_row(row, facts.get(row["dataset"], {})))

    measures = []
    for row in read("qd_metrics"):
        if row["table"] == name:
            measures.append(MeasureRow(method_in(row), row["queries_per_doc"], row["metric"], row["value"]))

    stats = read(_STATS[name]) if name in _STATS else ()
    errors = read("error_analysis") if name == "tab:error_analysis" else ()
    known = principle.differences() if name in ("tab:content_words", "tab:cw_threshold") else ()

    return FigureData(rows, measures, stats, errors, known)


def _published_row(row: Mapping[str, Any], facts: Mapping[str, Any]) -> ArmRow:
    condition, rate = condition_of(row), row["learning_rate"]
    details = [*board.unusual(condition.weighting, condition.query_source), condition.held]
    if rate:
        details.append(f"learning rate {rate}")

    name = condition_name(condition.retriever, "", 0, *details)
    if condition.per_doc:
        name = condition_name(condition.retriever, condition.source, condition.per_doc, row["train_data"], *details)

    return ArmRow(
        arm=name,
        condition=condition,
        benchmark=row["dataset"] or f"{row['group']} mean",
        ndcg=row["value"],
        documents=row["n_docs"] or 0,
        dev=row["value"] if rate else None,
        corpus=row["train_data"],
        generator=row["generator"],
        group=row["group"],
        in_domain=row["eval_domain"] == "in-domain",
        cw=facts.get("cw"),
    )


# What a gain is laid over, beside CW: what of it is length, and what rare words?
AXES = {
    "cw": "mean content words of the dataset's queries (CW)",
    "words": "mean words of the dataset's queries",
    "rarity": "mean rarity of the dataset's content words (bits)",
}

# Differences between arms.

# What an arm and its control have in common beside their conditions.
_shared = attrgetter("benchmark", "group", "seed", "corpus", "generator")


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
        sd = low = high = None
        if len(values) == seeds:  # one of each seed
            sd = float(np.std(values, ddof=1)) if seeds > 1 else None
            low, high = _interval(members) if value == "ndcg" else (None, None)

        facts = {value: float(np.mean(values)), "sd": sd, "low": low, "high": high, "seeds": seeds}
        found.append(dict(zip(keys, key, strict=True)) | facts)

    return found


def _interval(of_seeds: Sequence[ArmRow]) -> tuple[float | None, float | None]:
    """The 95% interval of the mean of one arm on one benchmark, as of a study's report: over queries and seeds."""
    scores = [row.scores for row in of_seeds if row.scores is not None]
    if len(scores) < len(of_seeds) or len(scores[0].queries) < 2:
        return None, None

    places = {(row.benchmark, of.queries) for row, of in zip(of_seeds, scores, strict=True)}
    if len(places) > 1:
        return None, None

    tested = two_level_test([of.values for of in scores], clusters=scores[0].clusters)
    return tested.low, tested.high


def difference(rows: Sequence[ArmRow], control: Callable[[Condition], Condition | None]) -> list[ArmRow]:
    """Return the rows that have a control of the same seed, each with its NDCG@10 minus that of the control."""
    there: dict[tuple[Condition | None, Any], ArmRow] = {(row.condition, _shared(row)): row for row in rows}
    found = []
    for row in rows:
        against = there.get((control(row.condition), _shared(row)))
        if against is not None:
            scores = row.scores and row.scores.minus(against.scores)
            found.append(replace(row, ndcg=row.ndcg - against.ndcg, scores=scores))

    return found


def one_design(rows: list[ArmRow]) -> list[ArmRow]:
    """Return the rows of equal documents, else those of equal pairs: the two designs answer two questions."""
    return [row for row in rows if not row.equal_pairs] or rows


def gains(rows: Sequence[ArmRow], axis: str = "cw") -> list[Difference]:
    """Return the out-of-domain gains from diverse queries and from more of them, mean over seeds, with the benchmark's
    content words (or another of ``AXES``)."""
    found: list[Difference] = []
    plain = [row for row in rows if row.usual and not row.in_domain and getattr(row, axis) is not None]
    plain = one_design(plain)
    written = [row for row in plain if row.condition.method != PARAPHRASED]
    compared = {
        PARAPHRASE: difference(plain, attrgetter("paraphrased")),
        SCALING: difference(written, attrgetter("single")),
    }
    for comparison, of_arms in compared.items():
        for row in mean(of_arms, "retriever", "per_doc", "benchmark", axis):
            place = (row["retriever"], comparison, row["per_doc"], row["benchmark"], row[axis])
            found.append(Difference(*place, row["ndcg"]))
    return found
