"""Queries of one document count as one unit: the intervals of whole documents hold, and those of single queries do not.

Queries are those of FairytaleQA, up to eight of one section, with their kept scores (``tests.principle.worlds``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy

from cdp.base.statistics import cluster_influence, cluster_numbers, paired_test, two_level_test
from cdp.evaluation.calibration import FEWEST, correct, estimate
from tests.principle.worlds import pool, whole_documents

pytestmark = pytest.mark.slow

DRAWS = 600


def test_each_query_on_its_own_is_the_paired_t_test() -> None:
    deltas = np.random.default_rng(0).normal(1, 5, 50)
    found = paired_test(deltas, range(50))
    assert found == paired_test(deltas)
    assert found.p_t == pytest.approx(scipy.stats.ttest_1samp(deltas, 0.0).pvalue)


def test_clusters_of_equal_size_are_a_t_test_of_their_means() -> None:
    """Twenty documents of five queries: G − 1 degrees of freedom, however much the queries of a document agree."""
    random = np.random.default_rng(1)
    deltas = np.repeat(random.normal(1, 3, 20), 5) + random.normal(0, 3, 100)
    clusters = np.repeat(np.arange(20), 5).tolist()
    found, means = paired_test(deltas, clusters), deltas.reshape(20, 5).mean(axis=1)
    expected = scipy.stats.ttest_1samp(means, 0.0)
    assert (found.n, found.n_clusters, found.p_t) == (100, 20, pytest.approx(expected.pvalue))
    low, high = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high))
    assert two_level_test([deltas], clusters=clusters).degrees == 19


def test_queries_in_one_cluster_still_have_an_interval() -> None:
    deltas = np.random.default_rng(2).normal(1, 5, 50)
    found = paired_test(deltas, [7] * 50)
    assert (found.n_clusters, found.low) == (1, paired_test(deltas).low)
    assert len(cluster_influence(deltas[None], cluster_numbers([7] * 50, 50))) == 50


def covers(clustered: bool, seeds: int) -> float:
    """How often the interval of a difference of two trainings, or of one and BM25, holds the true one."""
    random, held, p = np.random.default_rng(3), 0, pool()
    truth = 0.0  # every kept option has a mean of 0 over all queries
    for _ in range(DRAWS):
        chosen, groups = whole_documents(random, p.documents, 250)
        noise = random.normal(0, p.own, (seeds, 1))
        rows = p.trained[3][:seeds, chosen] + noise
        found = two_level_test(list(rows), [p.fixed[1][chosen]], clusters=groups if clustered else [])
        held += found.low <= truth <= found.high
    return held / DRAWS


@pytest.mark.parametrize("seeds", [1, 3])
def test_intervals_of_whole_documents_hold(seeds: int) -> None:
    # Three standard errors of a share of 95% over the draws are 2.7 points.
    assert covers(True, seeds) >= 0.923


def test_the_unit_matters_here() -> None:
    """Else the coverage above would say nothing."""
    assert covers(False, 1) < 0.923


def corrected(random: np.random.Generator, *, clustered: bool) -> bool:
    """Whether the corrected interval holds: documents that a judge errs on alike, people's labels of one in four."""
    documents = np.repeat(np.arange(60), 5)
    people = random.normal(0, 10, 60)[documents] + random.normal(0, 5, 300)
    model = 0.5 * people + random.normal(3, 10, 60)[documents]
    labelled = np.isin(documents, random.permutation(60)[:15])
    clusters: Sequence[int] = documents[labelled].tolist() if clustered else ()
    found = estimate(model, people[labelled], model[labelled], clusters)
    return bool(found.interval[0] <= 0 <= found.interval[1])


def test_the_corrected_interval_counts_clusters_too() -> None:
    draws = {clustered: np.random.default_rng(4) for clustered in (True, False)}
    held = {c: np.mean([corrected(random, clustered=c) for _ in range(DRAWS)]) for c, random in draws.items()}
    assert held[True] >= 0.92
    assert held[False] < 0.85


def test_labels_on_fewer_than_ten_documents_correct_nothing() -> None:
    judged = {f"q{i}": float(i % 7) for i in range(50)}
    people = {f"q{i}": float(i % 5) for i in range(40)}
    units = {query: int(query[1:]) % (FEWEST - 1) for query in judged}
    assert correct(judged, people) is not None
    assert correct(judged, people, units) is None
