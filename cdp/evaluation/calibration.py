"""A difference corrected by people's labels: its sentence, interval, "judged by" badge, fewest labels, missing ones, κ.

A model judged all N queries, people a random sample of n whole queries. The unit is the query, because NDCG is not
linear in single grades, or a cluster of queries that share a relevant document. The estimate is prediction-powered
inference (Angelopoulos et al., Science 2023, arXiv 2301.09633), power-tuned (Angelopoulos, Duchi & Zrnic 2023,
arXiv 2311.01453), for a sample out of the judged queries (the difference estimator of two-phase sampling; Särndal,
Swensson & Wretman 1992, ch. 9).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cdp.base.config import PEOPLE
from cdp.base.errors import CdpError
from cdp.base.statistics import (
    FEWEST_CLUSTERS,
    Floats,
    cluster_influence,
    cluster_numbers,
    correction_rate,
    count_clusters,
    stdtrit,
)
from cdp.base.text import counted, interval, signed
from cdp.base.workspace import ANSWERS, Workspace
from cdp.benchmarks import judged, manifests, resolve_benchmark
from cdp.evaluation.results import FirstTen, scores_of

# With fewer labelled queries, or clusters of them, the interval does not keep its level (simulated).
FEWEST = FEWEST_CLUSTERS
# Half-widths, in points, for which the missing labels are stated.
TARGETS = (4.0, 2.0)
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Corrected:
    """The difference of two systems over ``n_queries``, corrected by ``n_labelled`` of them.

    ``mean`` ± ``half`` is the 95% interval, ``weight`` the share λ of the judge's differences that the estimate uses.
    All in the unit of the input; the standard deviations are those of as many independent queries.
    """

    n_queries: int
    n_labelled: int
    n_clusters: int
    mean: float
    half: float
    weight: float
    sd_people: float
    sd_residual: float

    @property
    def interval(self) -> tuple[float, float]:
        return self.mean - self.half, self.mean + self.half

    def more_labels(self, half: float) -> int:
        """Return how many more labelled queries make the interval ±``half``, by the spread seen so far.

        Beyond ``n_queries`` further queries are counted as labelled and judged both.
        """
        if self.half <= half:
            return 0
        return bisect_left(range(self.n_labelled, 10**9), True, key=lambda n: self._half_at(n) <= half)

    def _half_at(self, n_labelled: int) -> float:
        degrees = n_labelled * self.n_clusters / self.n_labelled - 1
        total = max(n_labelled, self.n_queries)
        return _half(n_labelled, total, degrees, self.sd_people**2, self.sd_residual**2)


def correct(
    judged: Mapping[str, float], people: Mapping[str, float], units: Mapping[str, int] | None = None
) -> Corrected | None:
    """Return the corrected mean of per-query differences; None below ``FEWEST`` labelled queries or clusters of these.

    ``judged`` {query: difference by the judge's grades} for all queries, ``people`` {query: the same by people's
    labels} for a random sample of them. Queries of ``people`` that the judge did not see are ignored.
    """
    labelled = [query for query in people if query in judged]

    def of(values: Mapping[str, float]) -> Floats:
        return np.array([values[query] for query in labelled], np.float64)

    clusters = of(units).astype(np.int64).tolist() if units else []
    if count_clusters(clusters, len(labelled)) < FEWEST:
        return None

    model = np.array(list(judged.values()), np.float64)
    return estimate(model, of(people), of(judged), clusters)


def estimate(model: Floats, people: Floats, paired: Floats, clusters: Sequence[int] = ()) -> Corrected:
    """Correct the mean of ``model`` (N,), the judge's value of every query, by ``people`` (n,) and ``paired`` (n,),
    people's and the judge's of the sample, whose ``clusters`` (n,) are those of ``cluster_numbers``.

    e = h − λ (m − mean of all m); the estimate is mean(e), with the variance S²(h) / N + (1/n − 1/N) S²(e). Where
    people's values are all the same, the judge's spread stands for both: a sample without differences does not show
    that there are none.
    """
    n, units = len(people), cluster_numbers(clusters, len(people))
    # Cross-fitting: a λ fitted to the query that it corrects biases the estimate and shrinks its residuals.
    rate = correction_rate(np.array([0 * people, people]), np.array([0 * paired, paired]), units)
    residual = people - rate * (paired - model.mean())
    influence = cluster_influence(np.array([people, residual]), units)
    count = len(influence)
    variances = n * (influence**2).sum(axis=0) * (count - 1) / count
    if np.ptp(people) == 0:
        variances = np.full(2, model.var(ddof=1))
    half = _half(n, len(model), count - 1, *variances.tolist())
    sd_people, sd_residual = np.sqrt(variances).tolist()
    mean, weight = float(residual.mean()), float(rate.mean())
    return Corrected(len(model), n, count, mean, half, weight, sd_people, sd_residual)


def _half(n: int, total: int, degrees: float, variance_people: float, variance_residual: float) -> float:
    error = np.sqrt(variance_people / total + (1 / n - 1 / total) * variance_residual)
    return float(stdtrit(degrees, 0.5 + LEVEL / 2) * error)


def kappa(first: Sequence[int], second: Sequence[int], *, weighted: bool = False, grades: int = 4) -> float | None:
    """Return Cohen's κ of two judges' grades of the same pairs (Cohen 1960); None where chance agrees perfectly.

    ``weighted``: disagreement counts by the squared distance of the grades (Cohen 1968).
    """
    if not len(first):
        return None
    observed = np.zeros((grades, grades))
    np.add.at(observed, (np.asarray(first), np.asarray(second)), 1 / len(first))
    distance = np.subtract.outer(np.arange(grades), np.arange(grades))
    cost = distance**2.0 if weighted else (distance != 0).astype(np.float64)
    expected = np.outer(observed.sum(1), observed.sum(0))
    by_chance = float((cost * expected).sum())
    return 1 - float((cost * observed).sum()) / by_chance if by_chance else None


@dataclass(frozen=True)
class Agreement:
    """How two of those who decided agree on the items that both graded; ``weighted`` is the quadratically weighted
    κ."""

    first: str
    second: str
    pairs: int
    same: float
    kappa: float | None
    weighted: float | None


def agreements(graded: Mapping[str, Mapping[Any, int]], grades: int) -> tuple[Agreement, ...]:
    """Return the agreement of each two of {who: {item: grade from 0}}, where both graded an item."""
    found = []
    for (first, of_first), (second, of_second) in combinations(graded.items(), 2):
        both = [(of_first[item], of_second[item]) for item in of_first if item in of_second]
        if both:
            a, b = zip(*both, strict=True)
            same = float(np.equal(a, b).mean())
            plain, weighted = kappa(a, b, grades=grades), kappa(a, b, grades=grades, weighted=True)
            found.append(Agreement(first, second, len(both), same, plain, weighted))

    return tuple(found)


@dataclass(frozen=True)
class Judged:
    """Who judged a benchmark: a model, and people's grades {query: {document: grade}} of whole queries.

    ``writer`` is the model that wrote its queries; empty if people did.
    """

    judge: str
    people: Mapping[str, Mapping[str, float]]
    writer: str = ""

    @property
    def badge(self) -> tuple[str, str]:
        """The badge of results, and its explanation."""
        if self.writer:
            told = "People may ask differently, and judge differently."
            return f"queries written by {self.writer}, judged by {self.judge}", told
        return f"judged by {self.judge}", "A model judged the documents, not people."


@dataclass(frozen=True)
class Calibration:
    """What people's labels say of one difference that a model judged. Points of NDCG@10.

    ``labelled`` whole queries were labelled by people. ``unlabelled`` documents of the first ten of either retriever
    have no label of people, -1 where it is not known what was retrieved; then there is no corrected figure.
    """

    judge: str
    labelled: int
    unlabelled: int = 0
    corrected: Corrected | None = None

    @property
    def sentence(self) -> str:
        """The corrected figure with its interval and what makes it narrower, or why there is none."""
        found = self.corrected
        if found is not None:
            missing = [(found.more_labels(half), half) for half in TARGETS]
            needs = ", ".join(f"{n:,} more for ±{half:g}" for n, half in missing if n)
            labels = needs and f"; labelled queries: {needs}"
            return (
                f"Corrected by {counted(found.n_labelled, 'query', 'queries')} of people: {signed(found.mean)} "
                f"(95% {interval(found.interval, sign=True)}){labels}."
            )

        if self.unlabelled < 0:
            why = "what it retrieved was not kept"
        elif self.labelled < FEWEST:
            why = f"{self.labelled} of the {FEWEST} labelled queries that a correction needs"
        elif self.unlabelled:
            why = f"{counted(self.unlabelled, 'document')} of the first ten have no label by people"
        else:
            why = f"the {self.labelled} labelled queries share documents: fewer than {FEWEST} groups"

        return f"Uncalibrated, judged by {self.judge} alone: {why}."

    def record(self) -> dict[str, Any]:
        """The calibration as JSON; ``more_labels`` {half-width in points: labelled queries still missing}."""
        found = self.corrected
        value = {"judge": self.judge, "labelled_queries": self.labelled, "unlabelled": self.unlabelled}
        if found is None:
            return {**value, "state": "uncalibrated"}
        more = {f"{half:g}": found.more_labels(half) for half in TARGETS}
        low, high = found.interval
        figures = {"difference": found.mean, "low": low, "high": high, "weight": found.weight}
        return {**value, "state": "corrected", **figures, "more_labels": more}


def judged_by(workspace: Workspace, benchmark: str) -> Judged | None:
    """Return the model that judged a benchmark, with people's labels; None where people alone did, or it is not here.
    Kept while the labels are unchanged.

    The labels of a subset are those of the benchmark that it was drawn from.
    """
    try:
        folder = resolve_benchmark(benchmark, workspace)
    except CdpError:
        return None
    manifest = manifests.read(folder)
    judge = manifest.source.get("judge")
    if not judge:
        return None
    folder = judged.whole(folder)

    def load() -> Mapping[str, Mapping[str, float]]:
        return judged.people_grades(judged.read_pool(folder), judged.read_labels(folder))

    writer = str(manifest.source.get("written_by") or PEOPLE)
    people = ANSWERS.get(folder / "labels.jsonl", ("people's grades", judged.version(folder)), load)
    return Judged(str(judge), people, "" if writer == PEOPLE else writer)


def judge_badge(workspace: Workspace, benchmark: str) -> tuple[str, str] | None:
    """Return the badge of results on a benchmark that was judged here, and its explanation; None for any other."""
    by = judged_by(workspace, benchmark)
    if by is not None:
        return by.badge

    with suppress(CdpError):
        if manifests.read(resolve_benchmark(benchmark, workspace)).source.get("judge") == "":
            return "judged by people", "Judged by people, who labelled all pooled documents of these queries."
    return None


def calibrate(
    by: Judged,
    first: Sequence[FirstTen | None],
    second: Sequence[FirstTen | None],
    differences: Mapping[str, float],
    units: Mapping[str, int] | None = None,
) -> Calibration:
    """Correct ``differences`` {query: second minus first, by the model, in points} by people's labels.

    ``first`` and ``second`` hold what each side retrieved, once per seed; None where it was not kept. ``units`` are the
    clusters of the queries, where some share a document.
    """
    by = Judged(by.judge, {query: grades for query, grades in by.people.items() if query in differences})
    labelled = len(by.people)
    if labelled < FEWEST:
        return Calibration(by.judge, labelled)

    before = [run for run in first if run is not None]
    after = [run for run in second if run is not None]
    if len(before) < len(first) or len(after) < len(second):
        return Calibration(by.judge, labelled, -1)

    unlabelled: set[tuple[str, str]] = set()
    for run in (*before, *after):
        for query, grades in by.people.items():
            unlabelled.update((query, document) for document in run.get(query, ()) if document not in grades)

    if unlabelled:
        # Leaving these queries out would leave the random sample.
        return Calibration(by.judge, labelled, len(unlabelled))

    gain = 100 * (_by_people(by, after) - _by_people(by, before))
    people = dict(zip(by.people, gain.tolist(), strict=True))

    return Calibration(by.judge, labelled, 0, correct(differences, people, units))


def _by_people(by: Judged, runs: Sequence[FirstTen]) -> Floats:
    """Return NDCG@10 of the labelled queries by people's grades, in their order, the mean of the runs."""
    total = np.zeros(len(by.people))
    for run in runs:
        found = scores_of({query: run.get(query, ()) for query in by.people}, by.people)
        total += [found[query] for query in by.people]

    return total / len(runs)
