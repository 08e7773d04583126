"""Documents drawn by seed and budgets met to the pair, against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cdp.base.errors import InputError
from cdp.training.pairs import drawn_rows, ranks

pytestmark = pytest.mark.slow

# Queries of each document: 1 to 5, as in an imported set.
COUNTS = np.random.default_rng(0).integers(1, 6, 300)

DOCUMENT_OF = np.repeat(np.arange(len(COUNTS)), COUNTS)


def order(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(len(COUNTS))


@pytest.mark.parametrize("budget", [100, 101, 103])
def test_equal_budgets_are_equal_at_every_q_doc(budget: int) -> None:
    """The first 1,200/M documents gave 1,200, 1,020 and 755 pairs at Q/Doc 1, 2 and 4."""
    for per_doc in (1, 2, 4, 5):
        rows = drawn_rows(DOCUMENT_OF, order(0), per_doc=per_doc, budget=budget, widest=5)
        assert len(rows) == budget
        taken = Counter(DOCUMENT_OF[rows].tolist())
        assert sorted(taken.values(), reverse=True)[: budget // per_doc] == [per_doc] * (budget // per_doc)


def test_documents_are_drawn_by_seed_nested_and_not_the_first_ones() -> None:
    def documents(seed: int, per_doc: int) -> set[int]:
        return set(DOCUMENT_OF[drawn_rows(DOCUMENT_OF, order(seed), per_doc=per_doc, budget=70, widest=5)].tolist())

    assert documents(0, 5) < documents(0, 1)
    assert documents(0, 1) != documents(1, 1)
    assert max(documents(0, 1)) > 200
    assert set(COUNTS[list(documents(0, 1))].tolist()) == {5}, "enough documents have as many as the widest condition"


def test_every_document_is_drawn_alike() -> None:
    draws = (drawn_rows(DOCUMENT_OF, order(seed), per_doc=1, documents=30) for seed in range(400))
    drawn = Counter(d for rows in draws for d in DOCUMENT_OF[rows].tolist())
    counts = np.array([drawn[d] for d in range(300)])
    assert counts.sum() == 400 * 30
    # Binomial with mean 40 and standard deviation 6: five of these on either side.
    assert 10 < counts.min() <= counts.max() < 70


def test_all_documents_and_the_first_queries_of_each() -> None:
    rows = drawn_rows(DOCUMENT_OF, order(3), per_doc=2)
    by_hand = [i for d in range(300) for i in np.flatnonzero(d == DOCUMENT_OF)[:2]]
    assert rows.tolist() == by_hand


def test_ranks_in_any_order() -> None:
    assert ranks(np.array([2, 0, 2, 2, 1, 0])).tolist() == [0, 0, 1, 2, 0, 1]
    assert ranks(np.array([], dtype=np.int64)).tolist() == []


def test_a_budget_that_the_set_cannot_meet_names_the_one_it_can() -> None:
    with pytest.raises(InputError, match="take 200 documents with 5 queries each") as told:
        drawn_rows(DOCUMENT_OF, order(0), per_doc=5, budget=1000)
    assert f"A budget of {5 * int((COUNTS == 5).sum())} is possible" in str(told.value.hint)
