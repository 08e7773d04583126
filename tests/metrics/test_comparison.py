"""Two query sets for the same documents, compared document by document; the demo's two modes among them."""

from __future__ import annotations

import json

import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import SHIPPED_DATA
from cdp.metrics import measure_query_set, paired_difference


def test_the_difference_is_over_documents_with_both_values() -> None:
    found = paired_difference({"a": 0.1, "b": 0.2, "c": None, "d": 0.4}, {"d": 0.5, "a": 0.4, "c": 0.9})
    assert found.n_documents == 2
    assert found.mean == pytest.approx(0.2)
    assert found.interval[0] <= found.mean <= found.interval[1]


def test_sets_without_a_common_document_are_refused() -> None:
    with pytest.raises(InputError, match="no document in common"):
        paired_difference({"a": 0.1}, {"b": 0.2})
    with pytest.raises(InputError, match="no document in common"):
        paired_difference({"a": None}, {"a": 0.2})


@pytest.mark.parametrize("m", [2, 8])
def test_the_demos_paraphrases_repeat_each_other_more_than_its_diverse_queries(m: int) -> None:
    measured = []
    for mode in ("diverse", "paraphrase"):
        lines = (SHIPPED_DATA / "demo" / "generations" / f"{mode}.jsonl").read_text("utf-8").splitlines()[:48]
        records = map(json.loads, lines)
        measured.append(measure_query_set((r["document_id"], r["queries"][:m]) for r in records))
    diverse, paraphrase = (dict(zip(m.document_ids, m.per_document["self_bleu"], strict=True)) for m in measured)
    found = paired_difference(diverse, paraphrase)
    assert found.n_documents == 48
    assert found.interval[0] > 0


def test_at_full_length_their_self_bleu_intervals_lie_apart() -> None:
    intervals = {}
    for mode in ("diverse", "paraphrase"):
        lines = (SHIPPED_DATA / "demo" / "generations" / f"{mode}.jsonl").read_text("utf-8").splitlines()[:48]
        measured = measure_query_set((r["document_id"], r["queries"]) for r in map(json.loads, lines))
        (value,) = [v for v in measured.values if (v.name, v.per_doc) == ("self_bleu", 8)]
        assert value.interval is not None
        intervals[mode] = value.interval
    assert intervals["diverse"][1] < intervals["paraphrase"][0]
