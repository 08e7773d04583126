"""Self-BLEU equals NLTK's sentence_bleu, averaged over the queries of a document, to 1e-12."""

from __future__ import annotations

import gzip
import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.errors import InputError
from cdp.metrics import self_bleu
from cdp.metrics.measures import tokens
from cdp.metrics.measures.self_bleu import bleu_against_others
from tests.metrics.nltks import sentence_bleu
from tests.strategies import examples
from tests.support import shared


def nltk_self_bleu(queries: list[list[str]]) -> float:
    return statistics.fmean(sentence_bleu(queries[:i] + queries[i + 1 :], query) for i, query in enumerate(queries))


WORDS = st.sampled_from(["a", "b", "c", "столица", "عاصمة", "東", "京", "🙂", "word", "?"])


@pytest.mark.slow
@given(st.lists(st.lists(WORDS, max_size=14), min_size=2, max_size=20))
@examples(50, 1000)
def test_equals_nltk_for_any_lengths_and_scripts(queries: list[list[str]]) -> None:
    """Few words, so n-grams repeat within and between queries; queries may be empty or shorter than four words."""
    assert self_bleu(queries) == pytest.approx(nltk_self_bleu(queries), abs=1e-12)


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from("ab"), max_size=12), min_size=2, max_size=6))
@examples(50, 1000)
def test_each_query_equals_nltk_where_ngrams_repeat(queries: list[list[str]]) -> None:
    scores = bleu_against_others(queries)
    for i, query in enumerate(queries):
        expected = sentence_bleu(queries[:i] + queries[i + 1 :], query)
        assert scores[i] == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 5, 20])
def test_equals_nltk_on_real_questions(m: int) -> None:
    with gzip.open(shared("data/queries_only/beir_hotpotqa/queries.jsonl.gz"), "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line, _ in zip(file, range(60), strict=False)]
    for start in range(0, len(texts) - m, m):
        queries = texts[start : start + m]
        assert self_bleu(queries) == pytest.approx(nltk_self_bleu([tokens(q) for q in queries]), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xquad_ar", "xquad_ru", "xquad_zh", "jaquad_ja", "strategyqa_ko", "piaf_fr"])
def test_equals_nltk_on_real_questions_of_other_scripts(name: str) -> None:
    checked = 0
    with gzip.open(shared(f"data/multiquery/{name}.jsonl.gz"), "rt", encoding="utf-8") as file:
        for document in map(json.loads, file):
            queries = document["queries"][:20]
            if len(queries) > 1 and checked < 8:
                checked += 1
                assert self_bleu(queries) == pytest.approx(nltk_self_bleu([tokens(q) for q in queries]), abs=1e-12)
    assert checked == 8


def test_identical_queries() -> None:
    assert self_bleu(["what is the capital of france"] * 4) == 1.0
    assert self_bleu(["what is it"] * 2) == pytest.approx(0.1**0.25)  # three words: no 4-gram, 0.1 matches of 1


def test_queries_without_a_common_word() -> None:
    assert self_bleu(["red green", "blue yellow"]) == 0.0
    assert self_bleu(["", ""]) == 0.0
    assert self_bleu(["?", "🙂"]) == 0.0


def test_case_does_not_count_but_punctuation_does() -> None:
    assert self_bleu(["Where is Rome today now", "where IS rome Today now"]) == 1.0
    assert self_bleu(["where is rome now ?", "where is rome now !"]) < 1.0


def test_long_queries() -> None:
    repeated = " ".join(["word"] * 10_000)
    assert self_bleu([repeated, repeated]) == 1.0
    varied = " ".join(f"w{i % 977}" for i in range(10_000))
    assert 0 < self_bleu([varied, "w1 w2 w3 w4 w5"]) < 1


@pytest.mark.parametrize("queries", [[], ["only one"], "a text"])
def test_fewer_than_two_queries_are_refused(queries: list[str]) -> None:
    with pytest.raises(InputError, match="at least two"):
        self_bleu(queries)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's X-ray, 3.5?", ["what", "'", "s", "x", "-", "ray", ",", "3", ".", "5", "?"]),
        ("東京はどこ？", ["東", "京", "は", "ど", "こ", "？"]),
        ("GPT-4とは何", ["gpt", "-", "4", "と", "は", "何"]),
        ("भारत की राजधानी?", ["भारत", "की", "राजधानी", "?"]),
        ("أين تقع مدينة قُم ؟", ["أين", "تقع", "مدينة", "قُم", "؟"]),
        ("cafe\u0301", ["café"]),
        ("  ", []),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected
