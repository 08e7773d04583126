"""What Self-BLEU compares, and a measure of meaning beside it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from cdp.metrics import embedding_diversity
from cdp.metrics.measures import tokens
from cdp.metrics.measures.embedding_diversity import document_diversities
from tests.metrics.nltks import wordpunct_tokenize


def test_tokens_are_words_and_marks() -> None:
    text = "Isn't a well-known state-of-the-art plan cheap - or free?"
    assert tokens(text) == wordpunct_tokenize(text.lower())
    assert tokens("长城-是什么") == ["长", "城", "-", "是", "什", "么"]


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
    found = document_diversities([names, names[:2], names[:1], []], encoder)
    assert found[:2] == pytest.approx([brute(names), brute(names[:2])])
    assert np.isnan(found[2:]).all()
    assert embedding_diversity(["q1", "q1"], encoder) == pytest.approx(0.0)
