"""Wins and losses at rank 1, what stood there instead, and where gains sit by complexity."""

from __future__ import annotations

import pytest

from cdp.base.errors import InputError
from cdp.evaluation.error_analysis import NOTHING, OTHER_SOURCE, SAME_SOURCE, compare_rank_1, gains_by_complexity

QRELS = {
    "both": {"a1": 1},
    "neither": {"a1": 1},
    "page": {"a1": 1, "b9": 0},
    "book": {"a1": 2},
    "empty": {"b1": 1},
    "loss": {"b1": 1, "b2": 1},
    "no relevant": {"a1": 0},
}
BASELINE = {
    "both": {"a1": 2.0, "b1": 1.0},
    "neither": {"b1": 1.0},
    "page": {"a2": 3.0, "a1": 2.0},
    "book": {"b1": 3.0, "a1": 2.0},
    "loss": {"b2": 1.0},
    "no relevant": {"a1": 1.0},
}
OTHER = {
    "both": {"a1": 1.0},
    "page": {"a1": 1.0},
    "book": {"a1": 1.0},
    "empty": {"b1": 1.0, "a1": 0.5},
    "loss": {"b3": 1.0, "b1": 1.0},
}


def test_wins_and_losses_and_what_stood_there_instead() -> None:
    found = compare_rank_1(BASELINE, OTHER, QRELS, source_of=lambda document: document[0])
    assert (found.both, found.neither) == (1, 1)
    assert [(c.query_id, c.right, c.wrong, c.kind) for c in found.wins] == [
        ("page", "a1", "a2", SAME_SOURCE),
        ("book", "a1", "b1", OTHER_SOURCE),
        ("empty", "b1", "", NOTHING),
    ]
    # b3 ties with b1 and has the higher id, so it stands first.
    assert [(c.query_id, c.right, c.wrong, c.kind) for c in found.losses] == [("loss", "b2", "b3", SAME_SOURCE)]
    assert found.kinds(found.wins) == {SAME_SOURCE: 1, OTHER_SOURCE: 1, NOTHING: 1}


def test_swapping_the_runs_swaps_wins_and_losses() -> None:
    forth = compare_rank_1(BASELINE, OTHER, QRELS, source_of=lambda document: document[0])
    back = compare_rank_1(OTHER, BASELINE, QRELS, source_of=lambda document: document[0])
    assert (back.wins, back.losses) == (forth.losses, forth.wins)


def test_gains_by_content_words() -> None:
    found = gains_by_complexity([0.1, 0.3, -0.2, 0.6], [3, 3, 7, 20], edges=(0, 4, 7, 10))
    assert [(b.low, b.high, b.n) for b in found] == [(0, 4, 2), (4, 7, 0), (7, 10, 1), (10, None, 1)]
    assert [b.mean for b in found] == [pytest.approx(0.2), None, -0.2, 0.6]


@pytest.mark.parametrize(("words", "edges"), [([1], (0, 4)), ([1, 2], (4, 0)), ([1, 2], (2, 5)), ([1, 2], ())])
def test_what_does_not_fit_is_refused(words: list[int], edges: tuple[int, ...]) -> None:
    with pytest.raises(InputError):
        gains_by_complexity([0.1, 0.2], words, edges)
