"""Results: every evaluation, and retrievers compared with a baseline over the same queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cdp import benchmarks, catalog
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.file_cache import ANSWERS
from cdp.base.statistics import PairedTest, has_spread, holm, paired_test, two_level_test
from cdp.base.workspace import Workspace
from cdp.benchmarks import beir_files
from cdp.benchmarks.benchmark import part
from cdp.catalog import query
from cdp.retrievers import leakage
from cdp.retrievers.encode import HALF_PRECISION
from cdp.services import access, runs

__all__ = ["query"]

MEASURE = "ndcg@10"

# {evaluation: {query: value in [0, 1]}}
Scores = Mapping[str, Mapping[str, float]]

# By the paired t-test, or the two-level test where both sides have seeds.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class ComparedRow:
    """One retriever on one benchmark. NDCG@10 and differences in percent (points).

    ``low`` and ``high`` are the 95% interval of the mean difference; ``p_t`` and ``p_random`` two-sided p-values of the
    paired t-test and randomisation test, ``p_holm`` the p corrected for all differences, ``effect`` Cohen's d for
    pairs; ``wins``, ``losses`` and ``ties`` count queries. None for the baseline, and without the same queries.
    ``seed_sd`` is the standard deviation over ``seeds`` averaged runs (n - 1), whose ids ``evaluation_id`` joins by
    ``+``. ``noise`` is ``seeds`` where p (``p_seeds``) and interval are those of the two-level test, ``unknown`` where
    a training has one seed. ``version`` tells earlier judgments of the same name; a row with ``marks`` (``leaked``) is
    never the best or starred.
    """

    benchmark: str
    split: str
    protocol: str
    retriever: str
    retriever_id: str
    ndcg: float
    n_queries: int
    evaluation_id: str
    baseline_evaluation_id: str | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_t: float | None = None
    p_random: float | None = None
    p_holm: float | None = None
    effect: float | None = None
    wins: int | None = None
    losses: int | None = None
    ties: int | None = None
    seeds: int = 1
    seed_sd: float | None = None
    version: str = ""
    p_seeds: float | None = None
    noise: str = ""
    marks: str = ""

    @property
    def place(self) -> str:
        """The benchmark with what else tells its results apart: ``scifact``, ``mine dev (paper)``."""
        return benchmark_label(self.benchmark, self.split, self.protocol, self.version)

    @property
    def significant(self) -> bool:
        """Whether the difference is more than chance would give, corrected for all that are compared."""
        return not self.marks and self.p_holm is not None and self.p_holm < SIGNIFICANT


@dataclass(frozen=True)
class Comparison:
    """The rows, the baseline's name, how many benchmarks each retriever covers, and the settings that differ.

    ``n_tests`` differences were corrected for, shown here or not. ``coverage`` {retriever: benchmarks}, ``settings``
    {setting that differs: {retriever: value}}, ``families`` {retriever: runs that differ in the seed alone}, ``scores``
    {evaluation: {query: value in [0, 1]}}; ``evaluations`` are the catalogue's.
    """

    baseline: str
    baseline_id: str
    rows: list[ComparedRow]
    coverage: dict[str, int]
    n_benchmarks: int
    settings: dict[str, dict[str, Any]]
    n_tests: int = 0
    families: dict[str, int] = field(default_factory=dict)
    scores: Scores = field(default_factory=dict, repr=False)
    evaluations: Sequence[dict[str, Any]] = field(default=(), repr=False)

    def narrowed(self, rows: list[ComparedRow]) -> Comparison:
        """The comparison on some of its rows, counted anew; p-values stay corrected for all of them."""
        labels_of: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            labels_of[row.retriever].add(row.place)
        return replace(
            self,
            rows=rows,
            coverage={name: len(there) for name, there in labels_of.items()},
            n_benchmarks=len({label for there in labels_of.values() for label in there}),
        )


@dataclass(frozen=True)
class QueryDifference:
    """One query under two retrievers; NDCG@10 in percent."""

    query_id: str
    text: str
    baseline: float
    other: float

    @property
    def difference(self) -> float:
        return self.other - self.baseline


def list_evaluations(workspace: Workspace) -> list[dict[str, Any]]:
    """The catalogue's evaluations, the newest first, those of studies among them: for several questions about one
    state of the workspace."""
    return runs.described(workspace, *catalog.runs(workspace))


def list_results(workspace: Workspace, evaluations: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """One row per evaluation that has a job of its own, newest first; measures in percent. ``evaluations`` are those of
    ``list_evaluations`` where they were read already."""
    same = ("id", "retriever_id", "benchmark", "split", "protocol", "n_queries", "n_documents", "seconds", "created",
            "job_id")  # fmt: skip
    return [
        {
            **{name: row[name] for name in same},
            "retriever": row["retriever_name"],
            "marks": ", ".join(row["marks"]),
            MEASURE: 100 * row[MEASURE],
            "measures": {name: 100 * value for name, value in row["measures"].items()},
        }
        for row in (list_evaluations(workspace) if evaluations is None else evaluations)
        if not row["retriever_kind"].startswith(catalog.STUDY)
    ]


def compare(
    workspace: Workspace,
    baseline: str,
    retrievers: Sequence[str] | None = None,
    *,
    over_seeds: bool = False,
    evaluations: Sequence[dict[str, Any]] | None = None,
) -> Comparison:
    """Every evaluation beside the baseline's on the same benchmark, split, protocol and judgments.

    ``baseline`` and ``retrievers`` are retrievers' ids or names; of several evaluations of one the newest counts.
    Trainings of studies are compared where they are named.
    Significance is that of the t-test, corrected with Holm. ``over_seeds`` averages runs whose settings differ in the
    seed alone, query by query. ``evaluations`` is what ``read`` gave, read now if left out.
    """
    evaluations = list_evaluations(workspace) if evaluations is None else evaluations
    newest = latest(evaluations)
    baseline_id = _retriever_id(newest, baseline)
    chosen = None if retrievers is None else {baseline_id, *(_retriever_id(newest, name) for name in retrievers)}
    settings = {row["retriever_id"]: runs.settings_of(workspace, row) for row in newest}
    marked = {row["retriever_id"] for row in newest if row.get("marks")}
    families = runs.families_of({key: of for key, of in settings.items() if key not in marked})
    if over_seeds and chosen is not None:
        chosen |= {member for retriever_id in chosen for member in families.get(retriever_id, ())}
    selected = [
        row
        for row in newest
        if (row["retriever_kind"] != catalog.STUDY if chosen is None else row["retriever_id"] in chosen)
        or row["retriever_id"] == baseline_id
    ]
    scores: Scores = catalog.per_query(workspace, [row["id"] for row in selected], MEASURE) if selected else {}
    of_row: Mapping[str, Sequence[str]] = {row["id"]: (row["id"],) for row in selected}
    single = scores
    if over_seeds:
        selected, scores = runs.averaged(selected, scores, families, MEASURE)
        of_row = {row["id"]: row["id"].split("+") for row in selected}
        baseline_id = families.get(baseline_id, (baseline_id,))[0]
    reference = {_place(row): row for row in selected if row["retriever_id"] == baseline_id}
    names, labels = _names(selected), versions(selected)
    rows = [_row(row, names, labels[_place(row)], reference.get(_place(row)), scores) for row in selected]
    trained = {key for key in names if settings[key] is not None}
    rows = [_with_noise(row, baseline_id, trained, of_row, single) for row in rows]
    rows = _corrected(rows)
    rows.sort(key=lambda r: (r.benchmark, r.split, r.protocol, r.version, r.retriever_id != baseline_id, r.retriever))
    comparison = Comparison(
        baseline=names[baseline_id],
        baseline_id=baseline_id,
        rows=[],
        coverage={},
        n_benchmarks=0,
        settings=runs.differing(workspace, names, settings, without={"name", "seed"} if over_seeds else {"name"}),
        n_tests=sum(row.p_holm is not None for row in rows),
        families={names[key]: len(members) for key, members in families.items() if key in names},
        scores=scores,
        evaluations=evaluations,
    )
    return comparison.narrowed(rows)


def per_query(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> list[QueryDifference]:
    """Both scores of each query that a row and the baseline share, the largest loss first."""
    if row.baseline_evaluation_id is None:
        return []
    first, second = comparison.scores[row.baseline_evaluation_id], comparison.scores[row.evaluation_id]
    texts = next(
        (_texts(workspace, e) for e in comparison.evaluations if e["id"] == row.evaluation_id.partition("+")[0]), {}
    )
    differences = [
        QueryDifference(query, texts.get(query, ""), 100 * first[query], 100 * second[query])
        for query in first
        if query in second
    ]
    return sorted(differences, key=lambda q: (q.difference, q.query_id))


@access.writes
def rebuild(workspace: Workspace) -> dict[str, Any]:
    """Make the catalogue anew from the files; what was read."""
    return catalog.rebuild(workspace).to_dict()


def benchmark_label(benchmark: str, split: str, protocol: str, version: str = "") -> str:
    """A benchmark as tables call it, with its split unless that is ``test``, and its protocol unless ``published``."""
    qualifiers = (version, "" if protocol == "published" else protocol)
    more = ", ".join(word for word in qualifiers if word)
    return f"{benchmark}{'' if split in ('', 'test') else f' {split}'}{f' ({more})' if more else ''}"


def _place(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]


def versions(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str, str, str], str]:
    """What tells the judgments of one name apart that are not the same: empty for those of the newest evaluation."""
    versions_of: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["created"], row["id"]), reverse=True):
        benchmark, split, protocol, judgments = _place(row)
        known = versions_of[benchmark, split, protocol]
        if judgments not in known:
            known.append(judgments)
    return {
        (*benchmark_key, judgments): f"earlier version{f' {i}' if i > 1 else ''}" if i else ""
        for benchmark_key, known in versions_of.items()
        for i, judgments in enumerate(known)
    }


def latest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several evaluations of one retriever at one place the newest (``rows`` come newest first), those that have
    files of their own before those of a study."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["retriever_kind"] == catalog.STUDY_START):
        seen.setdefault((row["retriever_id"], *_place(row)), row)
    return list(seen.values())


def _retriever_id(rows: list[dict[str, Any]], name: str) -> str:
    for key in ("retriever_id", "retriever_name", "id"):
        matching_ids = sorted({str(row["retriever_id"]) for row in rows if row[key] == name})
        if len(matching_ids) > 1:
            raise ConfigError(
                f"{len(matching_ids)} retrievers are called {name!r}.", hint=f"Choose by id: {', '.join(matching_ids)}."
            )
        if matching_ids:
            return matching_ids[0]
    retriever_ids = sorted({row["retriever_id"] for row in rows})
    raise NotFoundError(
        "evaluated retriever", name, known=retriever_ids, hint="" if retriever_ids else "Evaluate a retriever first."
    )


def _names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """A name for each retriever; equal names are told apart by the end of the id."""
    by_id = {row["retriever_id"]: row["retriever_name"] for row in rows}
    counts: dict[str, int] = defaultdict(int)
    for name in by_id.values():
        counts[name] += 1
    return {key: name if counts[name] == 1 else f"{name} ({key[:24]})" for key, name in by_id.items()}


def _row(
    row: dict[str, Any],
    names: Mapping[str, str],
    version: str,
    reference: dict[str, Any] | None,
    scores: Scores,
) -> ComparedRow:
    base = ComparedRow(
        benchmark=row["benchmark"],
        split=row["split"],
        protocol=row["protocol"],
        retriever=names[row["retriever_id"]],
        retriever_id=row["retriever_id"],
        ndcg=100 * row[MEASURE],
        n_queries=row["n_queries"],
        evaluation_id=row["id"],
        seeds=row.get("seeds", 1),
        seed_sd=row.get("seed_sd"),
        version=version,
        marks=", ".join(row.get("marks", ())),
    )
    if reference is None or reference is row:
        return base
    first, second = scores[reference["id"]], scores[row["id"]]
    if first.keys() != second.keys():
        return base
    deltas = np.array([100 * (second[query] - first[query]) for query in first])
    test_result = _tested(deltas.tobytes())
    same = ("low", "high", "p_t", "p_random", "effect", "wins", "losses", "ties")
    statistics = {name: getattr(test_result, name) for name in same}
    return replace(base, baseline_evaluation_id=reference["id"], difference=test_result.mean, **statistics)


def _with_noise(
    row: ComparedRow, baseline_id: str, trained: set[str], runs: Mapping[str, Sequence[str]], scores: Scores
) -> ComparedRow:
    """The row with what its difference knows of training noise; scores of single runs in [0, 1]."""
    sides = ((row.retriever_id, row.evaluation_id), (baseline_id, row.baseline_evaluation_id))
    if row.difference is None or not trained & {retriever for retriever, _ in sides}:
        return row
    every = [run for _, evaluation in sides for run in runs[evaluation or ""]]
    queries = [query for query in scores[every[0]] if all(query in scores[run] for run in every)]
    values = [
        [np.array([100 * scores[run][query] for query in queries]) for run in runs[evaluation or ""]]
        for _, evaluation in sides
    ]
    spread_known = all(
        retriever not in trained or has_spread([float(run.mean()) for run in side])
        for (retriever, _), side in zip(sides, values, strict=True)
    )
    if not spread_known or len(queries) < 2:
        return replace(row, noise="unknown")
    test_result = two_level_test(*values)
    return replace(row, noise="seeds", p_seeds=test_result.p, low=test_result.low, high=test_result.high)


def _corrected(rows: list[ComparedRow]) -> list[ComparedRow]:
    """The rows with p-values corrected for being several."""
    p_values = [row.p_t if row.p_seeds is None else row.p_seeds for row in rows]
    corrected = iter(holm([p for p in p_values if p is not None]))
    return [row if p is None else replace(row, p_holm=next(corrected)) for row, p in zip(rows, p_values, strict=True)]


@lru_cache(maxsize=16384)
def _tested(deltas: bytes) -> PairedTest:
    """The tests of one difference. Kept: a page asks at every change."""
    return paired_test(np.frombuffer(deltas))


def of_counts(counts: Mapping[str, Any]) -> list[str]:
    """Return the remarks on what an evaluation counted: leaked queries, a stopped training, queries without results."""
    absent, judged = int(counts.get("judged_without_results", 0)), int(counts.get("judged_queries", 0))
    remarks = leakage.remarks(counts, judged)
    if absent:
        remarks.append(f"Nothing was retrieved for {absent:,} of {judged:,} judged queries; they count 0.")
    return remarks


def remarks(workspace: Workspace, row: dict[str, Any]) -> list[str]:
    """Return the remarks on a score: of its counts, half precision, and what is odd in its benchmark.

    The benchmark's own remarks are left out if it was changed since, or is no longer there.
    """
    notes = of_counts(row["counts"])
    notes += [HALF_PRECISION] if row["settings"].get("precision") == "fp16" else []
    try:
        info = benchmarks.describe(_folder(workspace, row), workspace)
    except CdpError:
        return notes
    return [*notes, *(info.warnings if info.content_hash == row["benchmark_hash"] else ())]


def _folder(workspace: Workspace, row: dict[str, Any]) -> Path:
    """Return the folder of the evaluation's benchmark. NotFoundError if it is no longer there."""
    for name in (row["benchmark"], row["folder"]):
        try:
            return benchmarks.resolve_benchmark(name, workspace)
        except CdpError:
            continue
    raise NotFoundError("benchmark", row["benchmark"], hint="Add it to the workspace again: benchmarks add FOLDER.")


def _texts(workspace: Workspace, row: dict[str, Any]) -> dict[str, str]:
    """Return {query: text} of the evaluation's benchmark; empty if it cannot be read."""
    try:
        file = part(_folder(workspace, row), "queries")
        return ANSWERS.get(file, "texts", lambda: {q: line.text for q, line in beir_files.read_queries(file).items()})
    except CdpError:
        return {}
