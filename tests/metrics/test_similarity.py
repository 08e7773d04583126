"""Len-Sim, Dist-Sim and the paraphrase ratio of texts given directly."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cdp.base.errors import InputError, ModelError
from cdp.metrics import MEASURES, dist_sim, len_sim, paraphrase_ratio


def letters(texts: list[str]) -> np.ndarray:
    """An encoder: how often a, b and c occur."""
    return np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=float)


def test_len_sim_of_one_document_takes_all_pairs() -> None:
    assert len_sim(["one two"], ["one two three four"]) == 0.5
    assert len_sim(["one two", "one two three four"], ["one two three four"]) == 0.75
    assert len_sim(["Is it one, or two?"], ["one two three four five"]) == 1.0


def test_len_sim_averages_documents_not_pairs() -> None:
    assert len_sim([["a b"], ["a"] * 3], [["a b c d"], ["a"]]) == 0.75


def test_len_sim_of_queries_without_words() -> None:
    assert len_sim([""], ["🙂"]) == 1.0
    assert len_sim([""], ["word"]) == 0.0
    assert len_sim(["東京はどこ"], ["一二三四五"]) == 1.0


def test_dist_sim_is_the_mean_cosine_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    table = {f"q{i}": rng.normal(size=8) for i in range(12)}
    synthetic, human = [["q0", "q1", "q2"], ["q3"]], [["q4", "q5"], ["q6", "q7", "q8"]]

    def cosine(a: str, b: str) -> float:
        return float(table[a] @ table[b] / np.linalg.norm(table[a]) / np.linalg.norm(table[b]))

    expected = np.mean(
        [np.mean([cosine(s, h) for s in ss for h in hh]) for ss, hh in zip(synthetic, human, strict=True)]
    )
    assert dist_sim(synthetic, human, lambda texts: [table[text] for text in texts]) == pytest.approx(expected)


def test_dist_sim_edges() -> None:
    assert dist_sim(["aab"], ["aab"], letters) == pytest.approx(1.0)
    assert dist_sim(["zzz"], ["aab"], letters) == 0.0
    asked: list[str] = []

    def counting(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return letters(texts)

    dist_sim([["a", "a"], ["a"]], [["b"], ["a"]], counting)
    assert sorted(asked) == ["a", "b"]


def test_documents_without_queries_on_one_side_are_left_out() -> None:
    assert len_sim([["a b"], [], ["a"]], [["a b c d"], ["x"], []]) == 0.5


@pytest.mark.parametrize(
    ("synthetic", "human", "message"),
    [
        ([["a"]], [["a"], ["b"]], "1 documents and human ones for 2"),
        ([[]], [["a"]], "nothing to compare"),
        ([], [], "nothing to compare"),
        (["a", ["b"]], [["a"], ["b"]], "mixed"),
        ("text", ["a"], "list"),
    ],
)
def test_what_cannot_be_compared_is_said(synthetic: object, human: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        len_sim(synthetic, human)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        dist_sim(synthetic, human, letters)  # type: ignore[arg-type]


def test_unusable_embeddings_are_refused() -> None:
    with pytest.raises(ModelError, match="shape"):
        dist_sim(["a"], ["b"], lambda texts: [0.0])
    with pytest.raises(ModelError, match="not finite"):
        dist_sim(["a"], ["b"], lambda texts: [[np.nan, 1.0]] * len(texts))


def test_paraphrase_ratio_is_the_share_above_the_threshold_averaged_over_documents() -> None:
    scores = {("a", "b"): 0.9, ("a", "c"): 0.5, ("b", "c"): 0.2, ("x", "y"): 0.6}
    scored: list[tuple[str, str]] = []

    def scorer(pairs: list[tuple[str, str]]) -> list[float]:
        scored.extend(pairs)
        return [scores[pair] for pair in pairs]

    assert paraphrase_ratio(["a", "b", "c"], scorer) == pytest.approx(1 / 3)
    assert paraphrase_ratio([["a", "b", "c"], ["x", "y"], ["z"], []], scorer) == pytest.approx((1 / 3 + 1) / 2)
    assert paraphrase_ratio(["a", "b", "c"], scorer, threshold=0.1) == 1.0
    scored.clear()
    paraphrase_ratio([["a", "b", "c"], ["c", "a"], ["b", "a"]], scorer)
    assert scored == list(combinations("abc", 2))


def test_paraphrase_ratio_needs_a_pair_and_usable_scores() -> None:
    for queries in (["one"], [], [["one"], ["two"]]):
        with pytest.raises(InputError, match="two queries"):
            paraphrase_ratio(queries, lambda pairs: [1.0] * len(pairs))
    with pytest.raises(ModelError, match="shape"):
        paraphrase_ratio(["a", "b"], lambda pairs: [[0.1, 0.9]])
    with pytest.raises(ModelError, match="not numbers"):
        paraphrase_ratio(["a", "b"], lambda pairs: [float("nan")])


def test_the_table_of_measures() -> None:
    assert list(MEASURES) == [
        "dist_sim",
        "len_sim",
        "paraphrase_ratio",
        "paraphrase_ratio_bi_encoder",
        "self_bleu",
        "embedding_diversity",
        "cw",
        "round_trip",
    ]
    for name, measure in MEASURES.items():
        assert measure.name == name
        assert measure.low < measure.high
        assert measure.better in ("higher", "lower", "")
        assert measure.help.endswith(".")
    assert {name for name, measure in MEASURES.items() if measure.model_based} == {
        "dist_sim",
        "paraphrase_ratio",
        "paraphrase_ratio_bi_encoder",
        "embedding_diversity",
        "round_trip",
    }
