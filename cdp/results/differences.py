"""What is compared with a baseline over the same queries: paired tests, seeds, Holm, people's labels, by query."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, catalog
from cdp.base.errors import CdpError, ConfigError, NotFoundError
from cdp.base.statistics import holm, paired_test, seed_spread, two_level_test
from cdp.base.workspace import ANSWERS, Workspace
from cdp.benchmarks import beir_files, judged
from cdp.benchmarks.benchmark import part
from cdp.benchmarks.units import units_of
from cdp.catalog import STUDY
from cdp.evaluation.calibration import Judged, calibrate, judged_by
from cdp.evaluation.results import MEANS_ALONE
from cdp.query_sets import list_query_sets
from cdp.results import board, regraded
from cdp.results.board import MEASURE, Families, ResultRow, families, latest, list_evaluations, rows_of

# {evaluation: {query: value in [0, 1]}}
RunScores = Mapping[str, Mapping[str, float]]


# Retrievers that are compared with a baseline at once.
MOST = 14


@dataclass(frozen=True)
class Comparison:
    """The rows with their differences from the baseline, and the settings in which their trainings differ.

    ``n_tests`` differences were corrected for, shown here or not; ``left_out`` trainings of studies were not named.
    ``settings`` {setting that differs: {retriever:
    value}}, ``scores`` {evaluation: {query: value in [0, 1]}}; ``evaluations`` are those of ``list_evaluations``.
    """

    baseline: str
    baseline_id: str
    rows: list[ResultRow]
    settings: dict[str, dict[str, Any]]
    n_tests: int = 0
    left_out: int = 0
    scores: RunScores = field(default_factory=dict, repr=False)
    evaluations: Sequence[dict[str, Any]] = field(default=(), repr=False)

    @property
    def dev(self) -> list[str]:
        """The places that chose checkpoints: they are in no mean."""
        chose = board.choosing(self.evaluations)
        return list(dict.fromkeys(row.place for row in self.rows if (row.benchmark, row.split) in chose))

    @property
    def tested(self) -> list[ResultRow]:
        """The rows with a difference that was tested."""
        return [row for row in self.rows if row.p_holm is not None]

    def on(self, places: Collection[str]) -> Comparison:
        """The comparison on these benchmarks alone, by place or name; p-values stay corrected for all of them."""
        # The place of a test split is the benchmark's name: it does not mean the other splits too.
        names = set(places) - {row.place for row in self.rows}
        return replace(self, rows=[row for row in self.rows if row.place in places or names & {*row.called}])


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


def unjudged(workspace: Workspace, comparison: Comparison) -> list[str]:
    """Return the jobs (evaluations and studies) of a comparison on one benchmark whose first ten documents have pairs
    that its model did not grade."""
    evaluations = {row["id"]: row for row in comparison.evaluations}
    found: dict[str, None] = {}
    with suppress(CdpError):
        folder = benchmarks.resolve_benchmark(comparison.rows[0].benchmark, workspace)
        grades = judged.grades_of(judged.whole(folder))
        if not grades:
            return []

        for name in chain.from_iterable(row.evaluations for row in comparison.rows):
            run = regraded.retrieved(workspace, evaluations[name]) if name in evaluations else None
            if run is not None and judged.missing(grades, run):
                found[evaluations[name]["job_id"]] = None

    return list(found)


def compare(
    workspace: Workspace,
    baseline: str,
    retrievers: Sequence[str] | None = None,
    *,
    evaluations: Sequence[dict[str, Any]] | None = None,
) -> Comparison:
    """Every evaluation beside the baseline's on the same benchmark, split, protocol and judgments.

    ``baseline`` and ``retrievers`` are retrievers' ids or names; of several evaluations of one the newest counts.
    Trainings of studies are compared where they are named. Significance is that of the t-test, corrected with Holm.
    Runs whose settings differ in the seed alone are averaged, query by query. ``evaluations`` are those of
    ``list_evaluations``, read now if left out.
    """
    if evaluations is None:
        evaluations = list_evaluations(workspace)

    newest = latest(evaluations)
    related = families(newest)
    baseline_id = _retriever_id(newest, related, baseline)
    chosen = {baseline_id, *(_retriever_id(newest, related, name) for name in retrievers or ())}

    selected, left_out = [], set()
    for evaluation in newest:
        run, of_study = evaluation["retriever_id"], evaluation["retriever_kind"] == STUDY
        if related[run][0] in chosen or (retrievers is None and not of_study):
            selected.append(evaluation)
        elif of_study:
            left_out.add(evaluation["settings"]["key"])

    scores = query_scores(workspace, selected)
    found = rows_of(workspace, selected, newest, related)
    means: dict[str, Mapping[str, float]] = {}
    for row in found:
        means[row.evaluation_id] = _mean([scores[run] for run in row.evaluations])

    reference = {row.place: row for row in found if row.retriever_id == baseline_id}
    by_id = {row["id"]: row for row in selected}
    judge = cache(partial(judged_by, workspace))
    tested = []
    for row in found:
        row = _tested_row(workspace, row, reference.get(row.place), scores, means)
        if row.baseline_evaluation_id is not None:
            row = _calibrated(workspace, row, judge(row.benchmark), means, by_id)
            row = _withheld(workspace, row, means, by_id)
        tested.append(row)

    rows = _corrected(tested)
    rows.sort(key=lambda r: (r.benchmark, r.split, r.protocol, r.version, r.retriever_id != baseline_id, r.retriever))

    return Comparison(
        baseline=next(row.retriever for row in rows if row.retriever_id == baseline_id),
        baseline_id=baseline_id,
        rows=rows,
        settings=_differing(workspace, rows),
        n_tests=sum(row.p_holm is not None for row in rows),
        left_out=len(left_out),
        scores={**scores, **means},
        evaluations=evaluations,
    )


def _corrected(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows with their p-values, of the two-level test where there is one, corrected for all of them."""
    p_values: dict[int, float] = {}
    for i, row in enumerate(rows):
        p = row.p_t if row.p_seeds is None else row.p_seeds
        if p is not None:
            p_values[i] = p

    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    return [replace(row, p_holm=corrected.get(i)) for i, row in enumerate(rows)]


def query_scores(workspace: Workspace, evaluations: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return {evaluation: {query: NDCG@10 in [0, 1]}} by the grades as they are now; no queries where means alone were
    imported."""
    scores: dict[str, dict[str, float]] = {}
    whole = {}
    for row in evaluations:
        scores[row["id"]] = {}
        if row["settings"].get("imported") != MEANS_ALONE:
            whole[row["id"]] = row

    if whole:
        scores |= catalog.per_query(workspace, list(whole), MEASURE)

    for name, row in whole.items():
        now = regraded.scores(workspace, row)
        if now is not None:
            scores[name] = {query: now.get(query, 0.0) for query in scores[name]}

    return scores


def _mean(of_runs: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """The mean of several runs' scores on the queries that all have."""
    first, *others = of_runs
    if not others:
        return first

    shared = set(first).intersection(*others)
    return {query: sum(map(itemgetter(query), of_runs)) / len(of_runs) for query in first if query in shared}


def _retriever_id(rows: Sequence[Mapping[str, Any]], related: Families, name: str) -> str:
    """Return the first run of the family that a run's id or name, or an evaluation's id, means."""
    for key in ("retriever_id", "retriever_name", "id"):
        found = sorted({related[row["retriever_id"]][0] for row in rows if row[key] == name})
        if len(found) > 1:
            hint = f"Choose by id: {', '.join(found)}."
            raise ConfigError(f"{len(found)} retrievers are called {name!r}.", hint=hint)
        if found:
            return found[0]

    hint = "" if rows else "Evaluate a retriever first."
    raise NotFoundError("evaluated retriever", name, known=sorted(related), hint=hint)


def _tested_row(
    workspace: Workspace, row: ResultRow, reference: ResultRow | None, scores: RunScores, means: RunScores
) -> ResultRow:
    """The row with its difference from the reference: the paired tests, and the two-level test where both sides that
    were trained have seeds. ``scores`` are those of single runs, ``means`` of rows."""
    if reference is None or reference is row:
        return row

    queries = tuple(means[reference.evaluation_id])
    if not queries or means[row.evaluation_id].keys() != {*queries}:
        return row

    row = replace(row, baseline_evaluation_id=reference.evaluation_id)
    clusters = units_of(workspace, row.benchmark, row.split, queries) or ()
    tested = paired_test(list(_points(row, means).values()), clusters)
    same = ("low", "high", "p_t", "n_clusters", "wins", "losses", "ties")
    row = replace(row, difference=tested.mean, **{name: getattr(tested, name) for name in same})
    if row.trained is None and reference.trained is None:
        return row

    sides: list[list[NDArray[np.float64]]] = []
    known = len(queries) > 1
    for side in (row, reference):
        of_runs = [np.array([100 * scores[run][query] for query in queries]) for run in side.evaluations]
        if side.trained is not None:
            known = known and seed_spread([float(values.mean()) for values in of_runs]) is not None
        sides.append(of_runs)

    if not known:
        return replace(row, noise="unknown")

    result = two_level_test(*sides, clusters=clusters)
    return replace(row, noise="seeds", p_seeds=result.p, low=result.low, high=result.high)


def _points(row: ResultRow, means: RunScores) -> dict[str, float]:
    """{query: the row's NDCG@10 minus the baseline's, in points}."""
    assert row.baseline_evaluation_id is not None
    first, second = means[row.baseline_evaluation_id], means[row.evaluation_id]
    return {query: 100 * (second[query] - first[query]) for query in first}


def _sides(row: ResultRow, of: Mapping[str, Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The evaluations of the baseline, and those of the row."""
    assert row.baseline_evaluation_id is not None
    return [[of[run] for run in side.split("+")] for side in (row.baseline_evaluation_id, row.evaluation_id)]


def _calibrated(
    workspace: Workspace, row: ResultRow, by: Judged | None, means: RunScores, of: Mapping[str, Mapping[str, Any]]
) -> ResultRow:
    """The row with its difference corrected by people's labels, where a model judged it."""
    if by is None:
        return row

    differences = _points(row, means)
    clusters = units_of(workspace, row.benchmark, row.split, tuple(differences)) or ()
    units = dict(zip(differences, clusters, strict=bool(clusters)))
    retrieved = partial(regraded.retrieved, workspace)
    before, after = (list(map(retrieved, side)) for side in _sides(row, of))
    return replace(row, calibration=calibrate(by, before, after, differences, units))


def _withheld(workspace: Workspace, row: ResultRow, means: RunScores, of: Mapping[str, Mapping[str, Any]]) -> ResultRow:
    """The row with both bounds of its difference in place of its tests, where too few documents are judged."""
    found = regraded.if_relevant(workspace, _sides(row, of), list(means[row.evaluation_id]))
    if found is None:
        return row

    share, difference = found
    return replace(row, unjudged=share, if_relevant=difference, low=None, high=None, p_t=None, p_seeds=None, noise="")


def _differing(workspace: Workspace, rows: Sequence[ResultRow]) -> dict[str, dict[str, Any]]:
    """The training settings in which the retrievers differ: setting → retriever → value."""
    trained = {row.retriever: row.trained.settings for row in rows if row.trained}
    names: dict[str, Any] = {}
    for config in trained.values():
        names |= config

    settings: dict[str, dict[str, Any]] = {}
    for setting in names:
        values = {name: config.get(setting) for name, config in trained.items()}
        if setting not in ("name", "seed") and len({str(value or "") for value in values.values()}) > 1:
            settings[setting] = values

    if "query_set" in settings:
        by: dict[str, str] = {}
        for query_set in list_query_sets(workspace):
            by[query_set.id] = ", ".join(filter(None, (query_set.written_by, query_set.licence)))
        settings["queries_written_by"] = {name: by.get(str(key), "–") for name, key in settings["query_set"].items()}

    return settings


def default_comparison(rows: Sequence[ResultRow], baseline: str, most: int = MOST) -> list[str]:
    """Return the rows that are compared by default: all, or where these are more than ``most`` what is not
    trained, the cheapest trainings (one query per document), then the best; whole and unleaked ones before others."""
    by_run: dict[str, ResultRow] = {}
    for row in rows:
        by_run.setdefault(row.retriever_id, row)
    by_run.pop(baseline, None)

    def order(row: ResultRow) -> tuple[bool, int, float]:
        group = 0
        if row.trained is not None:
            group = 1 if row.trained.per_doc == "1" else 2
        return bool(row.marks), group, -row.ndcg

    return [row.retriever_id for row in sorted(by_run.values(), key=order)[:most]]


def per_query(workspace: Workspace, comparison: Comparison, row: ResultRow) -> list[QueryDifference]:
    """Both scores of each query that a row and the baseline share, the largest loss first."""
    if row.baseline_evaluation_id is None:
        return []

    first, second = comparison.scores[row.baseline_evaluation_id], comparison.scores[row.evaluation_id]
    texts: dict[str, str] = {}
    for evaluation in comparison.evaluations:
        if evaluation["id"] == row.evaluations[0]:
            texts = _texts(workspace, evaluation)

    differences = []
    for query in first:
        if query in second:
            text = texts.get(query, "")
            differences.append(QueryDifference(query, text, 100 * first[query], 100 * second[query]))

    return sorted(differences, key=attrgetter("difference", "query_id"))


def _texts(workspace: Workspace, row: Mapping[str, Any]) -> dict[str, str]:
    """Return {query: text} of the evaluation's benchmark; empty if it cannot be read, or not by who looks."""
    for name in (row["benchmark"], row["folder"]):
        with suppress(CdpError):
            file = part(benchmarks.resolve_benchmark(name, workspace), "queries")
            lines = ANSWERS.get(file, "queries", partial(beir_files.read_queries, file))
            return {query: line.text for query, line in lines.items()}
    return {}
