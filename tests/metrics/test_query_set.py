"""The quick measures of a whole query set: values, intervals, nested M, edges."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from random import Random

import numpy as np
import pytest

from cdp import query_sets
from cdp.base.errors import NotFoundError
from cdp.base.workspace import Workspace, append_jsonl
from cdp.complexity import count_content_words
from cdp.metrics import MetricValue, len_sim, measure_query_set, self_bleu
from cdp.query_sets import DocumentQueries, QuerySet

DOCUMENTS = [
    ("d1", ["what is rust", "what is iron rust", "why does iron rust in water", "iron rust removal"]),
    ("d2", ["who wrote hamlet", "hamlet author"]),
    ("d3", ["one query only"]),
    ("d4", []),
    ("d5", ["same query again here", "same query again here", "same query again here"]),
]


def value(values: list[MetricValue], name: str, per_doc: int) -> MetricValue:
    (found,) = [v for v in values if (v.name, v.per_doc) == (name, per_doc)]
    return found


def test_values_are_those_of_the_single_functions() -> None:
    result = measure_query_set(DOCUMENTS)
    bleu = value(result.values, "self_bleu", 4)
    several = [queries for _, queries in DOCUMENTS if len(queries) > 1]
    assert bleu.value == pytest.approx(np.mean([self_bleu(queries) for queries in several]))
    assert (bleu.n_documents, bleu.n_queries) == (3, 10)
    cw = value(result.values, "cw", 4)
    assert cw.value == pytest.approx(count_content_words([q for _, queries in DOCUMENTS for q in queries]).mean())
    assert cw.n_documents == 4
    assert result.cw.tolist() == count_content_words([q for _, queries in DOCUMENTS for q in queries]).tolist()
    assert result.document_ids == ["d1", "d2", "d3", "d5"]
    assert result.n_empty == 1
    assert result.per_document["self_bleu"][3] == 1.0
    assert np.isnan(result.per_document["self_bleu"][2])
    for v in (bleu, cw):
        assert v.interval is not None
        assert v.interval[0] <= v.value <= v.interval[1]  # type: ignore[operator]


def test_the_first_m_queries_are_the_set_at_m() -> None:
    nested = measure_query_set(DOCUMENTS)
    for m in (1, 2, 3):
        direct = measure_query_set((name, queries[:m]) for name, queries in DOCUMENTS)
        assert value(nested.values, "self_bleu", m) == value(direct.values, "self_bleu", m)
    assert sorted({v.per_doc for v in nested.values}) == [1, 2, 3, 4]


def test_human_queries_give_len_sim() -> None:
    human = {"d1": ["what makes iron rust"], "d5": ["a b", "c"], "unknown": ["x"]}
    found = value(measure_query_set(DOCUMENTS, human=human).values, "len_sim", 4)
    expected = len_sim([DOCUMENTS[0][1], DOCUMENTS[4][1]], [human["d1"], human["d5"]])
    assert found.value == pytest.approx(expected)
    assert found.n_documents == 2
    nobody = value(measure_query_set(DOCUMENTS, human={}).values, "len_sim", 4)
    assert nobody.value is None
    assert "human queries" in nobody.reason


def test_one_document_has_values_and_no_interval() -> None:
    """It tells nothing about other documents; an interval of no width would claim certainty."""
    found = measure_query_set([("d1", ["what makes iron rust", "why do ships rust at sea"])]).values
    for name in ("self_bleu", "cw"):
        one = value(found, name, 2)
        assert one.value is not None
        assert one.interval is None


def test_self_bleu_of_one_query_per_document_is_not_defined() -> None:
    undefined = value(measure_query_set([("d1", ["what is rust"]), ("d2", ["who is who"])]).values, "self_bleu", 1)
    assert (undefined.value, undefined.interval, undefined.reason) == (None, None, "No document has two queries.")


@pytest.mark.parametrize("documents", [[], [("d", [])]])
def test_an_empty_set_has_a_defined_answer(documents: list[tuple[str, list[str]]]) -> None:
    result = measure_query_set(documents)
    assert all(v.value is None and v.reason for v in result.values)
    assert result.document_ids == []


def test_the_records_are_plain_json() -> None:
    for v in measure_query_set(DOCUMENTS, human={"d1": ["x"]}).values:
        record = json.loads(json.dumps(asdict(v)))
        assert {"name", "value", "n_documents", "model", "threshold", "interval", "per_doc", "sampled_from"} <= set(
            record
        )


@pytest.mark.slow
def test_the_interval_covers_the_whole_sets_value_for_a_sample() -> None:
    """A sample of 60 documents out of 600: its intervals hold the full value in most of 20 draws."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]
    documents = [
        (f"d{i}", [" ".join(rng.choice(words, size=6)) for _ in range(rng.integers(2, 5))]) for i in range(600)
    ]
    full = {v.name: v.value for v in measure_query_set(documents).values if v.per_doc == 4}
    held = dict.fromkeys(full, 0)
    for seed in range(20):
        sample = Random(seed).sample(documents, 60)
        for v in measure_query_set(sample).values:
            if v.per_doc == 4 and v.interval is not None:
                held[v.name] += v.interval[0] <= full[v.name] <= v.interval[1]  # type: ignore[operator]
    assert held["self_bleu"] >= 16
    assert held["cw"] >= 16


@pytest.mark.slow
def test_odd_texts_are_measured() -> None:
    odd = ["", "🙂🙂", "\u202bשלום עולם\u202c", "مرحبا بالعالم", "mixed 中文 русский", "\ud83d", "word " * 10_000]
    for language in ("en", "zh", "ja", "ar"):
        result = measure_query_set([("d", odd), ("e", ["", ""])], language=language)
        assert len(result.cw) == len(odd) + 2
        assert 0 <= value(result.values, "self_bleu", 7).value <= 1  # type: ignore[operator]


def test_reading_a_query_set(workspace: Workspace) -> None:
    query_sets.create(workspace, QuerySet("set-1", "set", "corpus", ""))
    path = query_sets.files(workspace, "set-1").queries
    append_jsonl(path, [{"document_id": "a", "queries": ["x", "y"]}])
    with open(path, "ab") as file:
        file.write(b'{"document_id": "b", "queri')
    assert list(query_sets.read_queries(workspace, "set-1")) == [DocumentQueries("a", ["x", "y"])]
    with pytest.raises(NotFoundError, match="set-1"):
        query_sets.read_queries(workspace, "set-2")


@pytest.mark.slow
def test_importing_the_room_loads_no_torch() -> None:
    code = "import sys, cdp.metrics; print([m for m in ('torch','transformers','pandas','nltk') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
