"""Results: every evaluation, and retrievers compared with a baseline over the same queries."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from cdp import catalog, evaluation, jobs
from cdp.complexity import bootstrap_interval
from cdp.errors import CdpError, NotFoundError
from cdp.evaluation.significance import holm
from cdp.services import access, kept
from cdp.workspace import Workspace

MEASURE = "ndcg@10"


@dataclass(frozen=True)
class Row:
    """One retriever on one benchmark. NDCG@10 and differences in percent (points).

    ``low`` and ``high`` bound the mean difference (95% bootstrap over queries), ``p`` is the paired t-test's,
    two-sided, and ``p_holm`` the same corrected for all differences of the comparison (Holm); ``wins``, ``losses``
    and ``ties`` count queries. All of these are None for the baseline itself and where the baseline was not evaluated
    on the same judgments.
    """

    benchmark: str
    split: str
    protocol: str
    retriever: str
    retriever_id: str
    ndcg: float
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    wins: int | None
    losses: int | None
    ties: int | None
    n_queries: int
    evaluation_id: str
    baseline_evaluation_id: str | None


@dataclass(frozen=True)
class Comparison:
    """The rows, the baseline's name, how many benchmarks each retriever covers, and the settings that differ.

    ``coverage`` maps a retriever to the number of benchmarks it was evaluated on; ``settings`` maps each setting in
    which the compared retrievers' trainings differ to its value by retriever.
    """

    baseline: str
    baseline_id: str
    rows: list[Row]
    coverage: dict[str, int]
    n_benchmarks: int
    settings: dict[str, dict[str, Any]]


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


def every(workspace: Workspace) -> list[dict[str, Any]]:
    """One row per evaluation, newest first; measures in percent."""
    same = ("id", "retriever_id", "benchmark", "split", "protocol", "n_queries", "n_documents", "seconds", "created",
            "job_id")  # fmt: skip
    return [
        {
            **{name: row[name] for name in same},
            "retriever": row["retriever_name"],
            MEASURE: 100 * row[MEASURE],
            "measures": {name: 100 * value for name, value in row["measures"].items()},
        }
        for row in catalog.evaluations(workspace)
    ]


def compare(workspace: Workspace, baseline: str, retrievers: Sequence[str] | None = None) -> Comparison:
    """Every evaluation beside the baseline's on the same benchmark, split, protocol and judgments.

    ``baseline`` and ``retrievers`` are retrievers' ids or names; of several evaluations of one the newest counts.
    """
    latest = _latest(catalog.evaluations(workspace))
    baseline_id = _retriever_id(latest, baseline)
    chosen = None if retrievers is None else {baseline_id, *(_retriever_id(latest, name) for name in retrievers)}
    kept = [row for row in latest if chosen is None or row["retriever_id"] in chosen]
    reference = {_place(row): row for row in kept if row["retriever_id"] == baseline_id}
    scores = catalog.per_query(workspace, [row["id"] for row in kept], MEASURE) if kept else {}
    rows = [_row(row, reference.get(_place(row)), scores) for row in kept]
    rows = _corrected(rows)
    rows.sort(key=lambda r: (r.benchmark, r.split, r.protocol, r.retriever_id != baseline_id, r.retriever))
    names = _names(kept)
    coverage: dict[str, set[Any]] = defaultdict(set)
    for row in kept:
        coverage[names[row["retriever_id"]]].add(_place(row))
    return Comparison(
        baseline=names[baseline_id],
        baseline_id=baseline_id,
        rows=[Row(**{**asdict(r), "retriever": names[r.retriever_id]}) for r in rows],
        coverage={name: len(places) for name, places in coverage.items()},
        n_benchmarks=len({_place(row) for row in kept}),
        settings=_differing(workspace, names),
    )


def per_query(workspace: Workspace, baseline_evaluation: str, other_evaluation: str) -> list[QueryDifference]:
    """Both scores of each query that the two evaluations share, the largest loss first."""
    scores = catalog.per_query(workspace, [baseline_evaluation, other_evaluation], MEASURE)
    first, second = scores[baseline_evaluation], scores[other_evaluation]
    texts = _query_texts(workspace, baseline_evaluation)
    found = [
        QueryDifference(query, texts.get(query, ""), 100 * first[query], 100 * second[query])
        for query in first
        if query in second
    ]
    return sorted(found, key=lambda q: (q.difference, q.query_id))


def to_csv(comparison: Comparison) -> str:
    """The rows of a comparison as CSV with a header; numbers in full."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in comparison.rows)
    return out.getvalue()


@access.writes
def rebuild(workspace: Workspace) -> dict[str, Any]:
    """Make the catalogue anew from the files; what was read."""
    return catalog.rebuild(workspace).to_dict()


def query(workspace: Workspace, sql: str) -> catalog.QueryResult:
    """Answer one SELECT over the catalogue."""
    return catalog.query(workspace, sql)


def _place(row: dict[str, Any]) -> tuple[str, str, str, str]:
    return row["benchmark"], row["split"], row["protocol"], row["benchmark_hash"]


def _latest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of several evaluations of one retriever at one place the newest (``rows`` come newest first)."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        seen.setdefault((row["retriever_id"], *_place(row)), row)
    return list(seen.values())


def _retriever_id(rows: list[dict[str, Any]], name: str) -> str:
    for key in ("retriever_id", "retriever_name", "id"):
        for row in rows:
            if row[key] == name:
                return str(row["retriever_id"])
    known = sorted({row["retriever_id"] for row in rows})
    raise NotFoundError("evaluated retriever", name, known=known, hint="" if known else "Evaluate a retriever first.")


def _names(rows: list[dict[str, Any]]) -> dict[str, str]:
    """A name for each retriever; equal names are told apart by the end of the id."""
    by_id = {row["retriever_id"]: row["retriever_name"] for row in rows}
    counts: dict[str, int] = defaultdict(int)
    for name in by_id.values():
        counts[name] += 1
    return {key: name if counts[name] == 1 else f"{name} ({key[:24]})" for key, name in by_id.items()}


def _row(row: dict[str, Any], reference: dict[str, Any] | None, scores: dict[str, dict[str, float]]) -> Row:
    difference = low = high = p = wins = losses = ties = None
    if reference is not None and reference is not row:
        first, second = scores[reference["id"]], scores[row["id"]]
        deltas = np.array([100 * (second[query] - first[query]) for query in first if query in second])
        if deltas.size:
            difference = float(deltas.mean())
            low, high, p = _certainty(deltas.tobytes())
            wins, losses = int((deltas > 0).sum()), int((deltas < 0).sum())
            ties = int(deltas.size) - wins - losses
    return Row(
        benchmark=row["benchmark"],
        split=row["split"],
        protocol=row["protocol"],
        retriever=row["retriever_name"],
        retriever_id=row["retriever_id"],
        ndcg=100 * row[MEASURE],
        difference=difference,
        low=low,
        high=high,
        p=p,
        p_holm=p,
        wins=wins,
        losses=losses,
        ties=ties,
        n_queries=row["n_queries"],
        evaluation_id=row["id"],
        baseline_evaluation_id=None if reference is None or reference is row else reference["id"],
    )


def _corrected(rows: list[Row]) -> list[Row]:
    """The rows with p-values corrected for being several."""
    tested = [row.p for row in rows if row.p is not None]
    corrected = iter(holm(tested))
    return [row if row.p is None else replace(row, p_holm=next(corrected)) for row in rows]


@lru_cache(maxsize=4096)
def _certainty(deltas: bytes) -> tuple[float, float, float]:
    """The interval of the mean difference and the paired t-test's two-sided p. Kept: a page asks at every change."""
    values = np.frombuffer(deltas)
    low, high = bootstrap_interval(values)
    return low, high, _paired_p(values)


def _paired_p(deltas: np.ndarray) -> float:
    """The paired t-test's two-sided p; 1 where no query differs."""
    from scipy.special import stdtr  # scipy.stats would take seconds to load

    if deltas.size < 2 or not deltas.any():
        return 1.0
    spread = float(deltas.std(ddof=1))
    if spread == 0.0:
        return 0.0
    t = float(deltas.mean()) / (spread / deltas.size**0.5)
    return float(2 * stdtr(deltas.size - 1, -abs(t)))


def _differing(workspace: Workspace, names: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The training settings in which the retrievers differ: setting → retriever → value."""
    trained = {}
    for retriever_id, name in names.items():
        if (workspace.jobs / retriever_id / "spec.json").exists():
            trained[name] = jobs.load_spec(workspace, retriever_id).config
    settings: dict[str, dict[str, Any]] = {}
    for field in dict.fromkeys(key for config in trained.values() for key in config):
        values = {name: config.get(field) for name, config in trained.items()}
        if field != "name" and len({str(value) for value in values.values()}) > 1:
            settings[field] = values
    return settings


def _query_texts(workspace: Workspace, evaluation_id: str) -> dict[str, str]:
    """The texts of an evaluation's queries; empty if its benchmark is no longer there."""
    row = next(row for row in catalog.evaluations(workspace) if row["id"] == evaluation_id)
    for name in (row["benchmark"], row["folder"]):
        try:
            folder = evaluation.resolve_benchmark(name, workspace)
            return kept.of_file(
                folder / "queries.jsonl", ("texts", row["split"]), partial(_texts, folder, row["split"])
            )
        except CdpError:
            continue
    return {}


def _texts(folder: Path, split: str) -> dict[str, str]:
    found = evaluation.load_benchmark(folder, split)
    return dict(zip(found.query_ids, found.queries, strict=True))
