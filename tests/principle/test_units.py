"""Queries that share a document are one unit; a component that chains hold together is cut at its documents."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.benchmarks.units import GIANT, clusters_of, shared_units
from cdp.principle.simultaneous import estimate, simultaneous


def together(found: list[int]) -> list[set[int]]:
    """The positions of each cluster."""
    return [{n for n, name in enumerate(found) if name == cluster} for cluster in dict.fromkeys(found)]


def test_queries_that_share_a_document_hang_together_through_others() -> None:
    documents = [["a"], ["b"], ["a", "c"], ["c"], ["d"], [], ["e"], ["f"], ["g"], ["h"], ["i"], ["j"]]
    assert together(clusters_of(documents))[:5] == [{0, 2, 3}, {1}, {4}, {5}, {6}]


def test_passages_of_one_file_are_one_and_ids_that_look_like_them_are_not() -> None:
    documents = ["manual.pdf#1", "manual.pdf#2", "p3", "p4", "p5", "p6", "p7", "p8"]
    grades = [{document: 1.0, "manual.pdf#9": 0.0} for document in documents]
    assert together(list(shared_units(grades, passages=True))) == [{0, 1}, *({n} for n in range(2, 8))]
    assert shared_units(grades, passages=False) == ()


def test_a_query_without_a_relevant_document_stands_alone_beside_a_giant_component() -> None:
    grades = [{"d": 1.0}, {"d": 1.0}, {"d": 0.0}, {}]
    assert together(list(shared_units(grades, passages=False))) == [{0, 1}, {2}, {3}]


def test_a_giant_component_is_cut_at_the_documents_that_most_queries_share() -> None:
    """A chain of stars: every star stays whole, the links between them are cut."""
    documents = [[f"hub{n // 10}", f"link{n // 10}" if n % 10 == 9 else f"own{n}"] for n in range(100)]
    for star in range(1, 10):
        documents[10 * star].append(f"link{star - 1}")
    found = clusters_of(documents)
    assert together(found) == [set(range(10 * star, 10 * star + 10)) for star in range(10)]
    assert max(map(len, together(found))) <= GIANT * len(documents)


def test_clusters_widen_an_interval_as_far_as_queries_agree() -> None:
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    effect = random.normal(0, 10, (3, 40))[:, groups]
    scores = [(50 + effect[number] + random.normal(0, 5, 400))[None] for number in range(3)]
    apart, within = simultaneous(scores), simultaneous(scores, clusters=groups.tolist())
    assert 2 < within.reach[0, 1] / apart.reach[0, 1] < 3.5
    # Ten queries that say the same are one.
    copies = [np.repeat(random.normal(50, 20, (1, 40)), 10, axis=1) for _ in range(3)]
    once = simultaneous([values[:, ::10] for values in copies])
    assert simultaneous(copies, clusters=groups.tolist()).reach == pytest.approx(once.reach)


def test_labels_move_all_options_by_one_rate() -> None:
    """Differences of three add up, and where people agree with the judge the judge's queries count."""
    random = np.random.default_rng(0)
    judged = [random.normal(50, 20, (1, 300)) + random.normal(0, 10, (1, 300)) for _ in range(3)]
    people = [np.where(np.arange(300) < 60, values + number, np.nan) for number, values in enumerate(judged)]
    found = estimate(judged, people=people)
    assert found.means == pytest.approx([values.mean() + number for number, values in enumerate(judged)])
    assert found.degrees == 59
    assert found.query_variance == pytest.approx(estimate(judged).query_variance, rel=0.05)
    # What the judge says of two of them cannot move the third's difference to the first by another rate.
    noise = [np.where(np.arange(300) < 60, random.normal(50, 20, (1, 300)), np.nan) for _ in range(3)]
    alone = estimate(judged, people=noise)
    assert alone.means == pytest.approx([np.nanmean(values) for values in noise], abs=2)
