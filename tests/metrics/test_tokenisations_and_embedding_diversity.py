"""Self-BLEU decides nothing alone: what tokenisation does to it, and a measure of meaning beside it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.metrics import embedding_diversity, self_bleu
from cdp.metrics.measures.embedding_diversity import document_diversities
from cdp.metrics.tokens import HYPHENS, MARKS, TOKENISATIONS, WORDS, tokens
from tests.metrics.nltks import sentence_bleu, wordpunct_tokenize

HYPHENATED = [
    "long-term low-cost well-known plan",
    "long-run low-risk well-paid system",
    "long-lived low-tech well-made study",
]
REPEATED = ["what is a plan", "who wrote that book", "is there a study"]


def test_each_tokenisation() -> None:
    text = "Isn't a well-known state-of-the-art plan cheap - or free?"
    assert tokens(text) == tokens(text, MARKS) == wordpunct_tokenize(text.lower())
    whole = ["isn't", "a", "well-known", "state-of-the-art", "plan", "cheap", "-", "or", "free", "?"]
    assert tokens(text, HYPHENS) == tokens(text.replace("'", "\u2019").replace("-k", "\u2010k"), HYPHENS) == whole
    assert tokens(text, WORDS) == [token for token in whole if token not in "-?"]
    assert tokens("plain words only", WORDS) == ["plain", "words", "only"]
    assert tokens("长城-是什么", MARKS) == ["长", "城", "-", "是", "什", "么"]
    with pytest.raises(ConfigError, match="no tokenisation"):
        tokens("x", "other")


def test_self_bleu_under_each_is_nltks_on_the_same_tokens() -> None:
    for name in TOKENISATIONS:
        cut = [tokens(query, name) for query in HYPHENATED]
        theirs = np.mean([sentence_bleu(cut[:i] + cut[i + 1 :], cut[i]) for i in range(3)])
        assert self_bleu(HYPHENATED, name) == pytest.approx(theirs)


def test_the_order_of_two_sets_turns_with_the_tokenisation() -> None:
    """Cut at hyphens the first set shares its hyphens and looks more repetitive; its words whole, it shares nothing."""
    assert self_bleu(HYPHENATED, MARKS) > self_bleu(REPEATED, MARKS)
    assert self_bleu(HYPHENATED, HYPHENS) < self_bleu(REPEATED, HYPHENS)


def test_embedding_diversity_is_one_minus_the_mean_cosine_of_all_pairs() -> None:
    random = np.random.default_rng(0)
    table = {f"q{i}": random.normal(size=8) for i in range(6)}

    def encoder(texts: list[str]) -> np.ndarray:
        return np.array([table[text] for text in texts])

    def brute(texts: list[str]) -> float:
        cosines = [
            table[a] @ table[b] / np.linalg.norm(table[a]) / np.linalg.norm(table[b]) for a, b in combinations(texts, 2)
        ]
        return 1 - float(np.mean(cosines))

    names = list(table)
    assert embedding_diversity(names, encoder) == pytest.approx(brute(names))
    found = document_diversities([names, names[:2], names[:1], []], encoder, [1, 3, 6])
    assert found[0, 1:] == pytest.approx([brute(names[:3]), brute(names)])
    assert found[1, 2] == pytest.approx(brute(names[:2]))
    assert np.isnan(found[:, 0]).all()
    assert np.isnan(found[2:]).all()
    assert embedding_diversity(["q1", "q1"], encoder) == pytest.approx(0.0)
