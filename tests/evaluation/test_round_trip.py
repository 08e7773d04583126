"""At which rank a query finds the document that it was written for."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.evaluation import round_trip
from cdp.evaluation.round_trip import by_bm25, ranks_of

pytestmark = pytest.mark.slow

DOCUMENTS = ["red apple pie", "green apple", "blue whale song", "red apple pie", "granite tower"]


def test_bm25_ranks_count_what_scores_strictly_higher() -> None:
    own = np.array([0, 3, 2, 2, 4, -1])
    queries = ["red pie", "red pie", "apple whale", "apple", "", "red"]
    ranks = by_bm25(queries, DOCUMENTS, own)
    assert ranks.tolist() == [1, 1, 1, 0, 0, 0], "the copy of a document does not push it down"


def test_ranks_of_a_ranking() -> None:
    scores = np.array([[3.0, 2.0, 2.0], [1.0, -np.inf, -np.inf], [0.5, 0.4, 0.3]])
    documents = np.array([[7, 8, 9], [5, -1, -1], [1, 2, 3]])
    assert ranks_of(scores, documents, np.array([9, -1, 3])).tolist() == [2, 0, 3]
    assert ranks_of(np.zeros((2, 0)), np.zeros((2, 0), int), np.array([0, 1])).tolist() == [0, 0]


def test_shares() -> None:
    ranks = np.array([1, 10, 11, 0], np.int32)
    assert round_trip.within(ranks, 100).tolist() == [True, True, True, False]


def test_bm25_ranks_are_those_of_every_score_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the whole table of scores, in blocks that do not divide the number of queries."""
    from cdp.retrievers import bm25

    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    documents = [" ".join(random.choice(words, 12)) for _ in range(60)]
    queries = [" ".join(random.choice(words, 2)) for _ in range(50)]
    own = random.integers(0, 60, 50)
    monkeypatch.setattr(round_trip, "QUERIES_AT_ONCE", 7)
    ranks = by_bm25(queries, documents, own)
    index = bm25.index(documents)
    for query, mine, rank in zip(queries, own, ranks, strict=True):
        scores = index.get_scores(list(next(iter(bm25.terms_of([query])))))
        expected = 1 + int((scores > scores[mine]).sum()) if scores[mine] > 0 else 0
        assert rank == expected
