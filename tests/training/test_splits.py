"""A fixed number of pairs as documents × Q/Doc: what is possible, and what is in the way of the rest."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.training.pairs import load_pairs
from cdp.training.splits import chosen, pairs_of, splits, suggested
from tests.training.conftest import write_queries

COUNTS = np.array([20] * 300 + [5] * 1300 + [1] * 6400)


def test_the_papers_splits_of_8000_pairs() -> None:
    found = {split.per_doc: split for split in splits(COUNTS, 8000)}
    assert list(found) == [1, 2, 4, 5, 8, 10, 16, 20]  # the divisors of 8,000 up to 20
    assert str(found[5]) == "1,600 × 5"
    assert [per_doc for per_doc, split in found.items() if not split.problem] == [1, 5]
    assert found[2].problem == "2,400 of the first 4,000 documents have fewer than 2 queries"
    assert found[20].problem == "100 of the first 400 documents have fewer than 20 queries"


def test_what_is_chosen_gives_exactly_that_many_pairs(workspace: Workspace, query_set: str) -> None:
    counts = np.full(13, 3)
    for split in (s for s in splits(counts, 12) if not s.problem):
        pairs = load_pairs(workspace, query_set, per_doc=split.per_doc, max_documents=split.documents)
        assert len(pairs) == 12 == pairs_of(counts, split.per_doc, split.documents)
    assert [str(s) for s in splits(counts, 12) if not s.problem] == ["12 × 1", "6 × 2", "4 × 3"]


@pytest.mark.parametrize(
    ("counts", "pairs", "per_doc", "words", "hint"),
    [
        ([3, 3, 3], 9, 2, "9 pairs cannot be shared out by 2 queries per document", "3 × 3"),
        ([3, 3, 3], 12, 2, "it takes 6 documents, and there are 3 documents", "the set has 9 queries"),
        ([3, 2, 3], 6, 3, "1 of the first 2 documents has fewer than 3 queries", "3 × 2"),
        ([3, 3], 3, 3, "1 document has no other document to learn from", "the set has 6 queries"),
    ],
)
def test_an_impossible_one_says_why_and_what_is_possible(
    counts: list[int], pairs: int, per_doc: int, words: str, hint: str
) -> None:
    with pytest.raises(InputError, match=words) as raised:
        chosen(np.array(counts), pairs, per_doc)
    assert hint in raised.value.hint


def test_a_number_to_begin_with_can_be_split() -> None:
    assert suggested(COUNTS) == 8000
    assert suggested(np.full(96, 8)) == 90  # 90 × 1, 45 × 2, 30 × 3, 18 × 5, 15 × 6
    assert sum(not s.problem for s in splits(np.full(96, 8), 90)) == 5
    assert suggested(np.full(13, 3)) == 12
    assert suggested(np.array([1, 1])) == 2
    assert suggested(np.array([7])) == 2


def test_documents_without_queries_do_not_count(workspace: Workspace, query_set: str) -> None:
    from cdp.services.training import query_counts

    corpus = "any"
    write_queries(workspace, "holes", corpus, {"d0": ["a", " "], "d1": [], "d2": ["b", "c", "d"]})
    (workspace.query_set("holes") / "manifest.json").write_text(
        '{"id": "holes", "name": "holes", "corpus_id": "any", "corpus_hash": ""}', encoding="utf-8"
    )
    assert query_counts(workspace, "holes").tolist() == [1, 3]
