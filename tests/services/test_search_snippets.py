"""What is shown of a document is a part of it as it is, with the words that match."""

from __future__ import annotations

import pytest

from cdp.base.text import SNIPPET as WIDTH
from cdp.base.text import snippet
from cdp.serving.engine import matching_words

LONG = "Nothing of interest stands here. " * 40 + "At last bees find flowers. " + "And more of the same. " * 40


def test_the_part_with_the_most_matches_is_shown() -> None:
    pieces = snippet(LONG, ["bees", "flowers"])
    shown = "".join(piece for piece, _ in pieces)
    assert [piece for piece, matches in pieces if matches] == ["bees", "flowers"]
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) <= WIDTH + 4
    assert shown[2:-2].strip() in LONG


@pytest.mark.parametrize(
    "text", ["", " ", "short", "x" * 5000, "没有空格的中文" * 300, "a\n\n<b>\t&amp; $x$", "é " * 999]
)
@pytest.mark.parametrize("words", [[], ["short"], ["x"], ["中文"], ["("]])
def test_any_text_is_cut_and_never_changed(text: str, words: list[str]) -> None:
    shown = "".join(piece for piece, _ in snippet(text, words))
    inner = shown.removeprefix("… ").removesuffix(" …")
    assert inner in " ".join(text.split())
    assert len(shown) <= WIDTH + 4
    assert bool(shown) == bool(text.strip())


@pytest.mark.slow
@pytest.mark.parametrize(("query", "text", "language", "words"), [
    ("how do connected bees fly", "Connections of a bee, and HOW they do it", "en", ["bee", "connections"]),
    ("the of", "the of a", "en", []),
    ("où vivent les abeilles", "Les abeilles vivent où ?", "fr", ["abeilles", "vivent"]),
])  # fmt: skip
def test_matching_words_are_content_words(query: str, text: str, language: str, words: list[str]) -> None:
    assert matching_words(query, text, language) == words
