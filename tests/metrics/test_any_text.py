"""Whatever a query holds: a value of each measure within its range or a CdpError, and time linear in its length."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cdp.complexity import LANGUAGES, content_words, count_content_words, cw_weights
from cdp.metrics import dist_sim, len_sim, paraphrase_ratio, self_bleu
from cdp.metrics.measures import tokens, word_count
from tests.strategies import LONG, SOAK, examples, is_linear, result_or_error, texts

QUERIES = st.lists(texts(4), max_size=4)
NUMBERS = st.floats() | st.integers(-3, 10**400).map(lambda n: float(n) if n < 10**300 else math.inf)


def encoder(queries: list[str]) -> NDArray[np.float64]:
    """An encoder's place: counts of five kinds of characters, zeros for an empty text."""
    return np.array([[text.count(c) for c in ("a", " ", "长", "\ud800", "\0")] for text in queries], float)


def scorer(pairs: list[tuple[str, str]]) -> list[float]:
    return [float(first[:1] == second[:1]) for first, second in pairs]


@pytest.mark.slow
def test_every_measure_gives_a_value_in_its_range() -> None:
    @given(QUERIES, QUERIES)
    @examples(40)
    def check(one: list[str], two: list[str]) -> None:
        for value, low in (
            (result_or_error(lambda: self_bleu(one)), 0),
            (result_or_error(lambda: len_sim(one, two)), 0),
            (result_or_error(lambda: len_sim([one, two], [two, one])), 0),
            (result_or_error(lambda: paraphrase_ratio(one, scorer)), 0),
            (result_or_error(lambda: dist_sim(one, two, encoder)), -1),
        ):
            assert value is None or low - 1e-9 <= value <= 1 + 1e-9

    check()


@given(texts())
@examples(30)
def test_tokens_are_the_text_without_its_spaces(text: str) -> None:
    assert all(token and not token.isspace() for token in tokens(text))
    assert 0 <= word_count(text) <= len(tokens(text))


@pytest.mark.slow
@pytest.mark.parametrize("language", [*LANGUAGES, "hi", "th"])
def test_content_words_of_any_text(language: str) -> None:
    @given(st.lists(texts(), max_size=3))
    @examples(12, 3000)
    def check(queries: list[str]) -> None:
        counted = count_content_words(queries, language)
        assert counted.tolist() == [len(content_words(query, language)) for query in queries]

    check()


@given(st.lists(NUMBERS, max_size=6), NUMBERS)
@examples(50)
def test_weights_have_mean_1_or_say_what_is_wrong(cw: list[float], kappa: float) -> None:
    weights = result_or_error(lambda: cw_weights(cw, kappa))
    if weights is not None and len(cw):
        assert np.isclose(weights.mean(), 1)


# Self-BLEU takes in the tokens that all measures share; languages with spaces are cut by one and the same code. MeCab
# takes time that grows with the square of a run of some of these, Kiwi of one letter.
WORST = {
    "self_bleu": ("one letter", "Chinese", "surrogates"),
    "content words en": ("one letter", "dots", "spaces"),
    "content words hi": ("one letter", "emoji"),
    "content words ja": ("one letter", "dots", "katakana", "emoji", "Chinese"),
    "content words ko": ("one letter", "Chinese"),
    "content words zh": ("one letter", "Chinese"),
}
LINEAR: dict[str, Callable[[str], Any]] = {
    "self_bleu": lambda text: self_bleu([text, f"{text} a"]),
    **{f"content words {code}": lambda text, code=code: content_words(text, code) for code in [*LANGUAGES, "hi"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR if SOAK else WORST)
def test_time_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    LINEAR[name]("长 a")  # loads what there is to load
    patterns = LONG if SOAK else WORST[name]
    assert [pattern for pattern in patterns if not is_linear(LINEAR[name], LONG[pattern])] == []


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_text_has_the_words_of_its_parts(language: str) -> None:
    sentence = {"zh": "长城是军事工程。", "ja": "東大寺は寺院である。", "ko": "식물은 높이가 높습니다. "}.get(
        language, "castle wall. "
    )
    assert content_words(sentence * 500, language) == content_words(sentence, language)
