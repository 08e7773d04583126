"""The languages whose content words can be counted, and how each is counted. Forms and docs are made from the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from cdp.complexity import tokenizers
from cdp.complexity.stopwords import WITHOUT_LIST

Words = Callable[[Iterable[str]], Iterator[list[str]]]


@dataclass(frozen=True, slots=True)
class Language:
    """How the words of a language are found. ``tokenizer`` and ``stopwords`` are sentences to be shown."""

    code: str
    name: str
    tokenizer: str
    stopwords: str
    words: Words
    as_in_paper: bool = True


_ISO = "Stopwords ISO, shipped"
_UNICODE = "runs of letters and digits (Unicode word boundaries)"

LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        Language("en", "English", "runs of letters a–z", "NLTK's 179 words, shipped", tokenizers.latin_words),
        Language("ru", "Russian", _UNICODE, f"{_ISO} (559 words)", tokenizers.unicode_words),
        Language("ar", "Arabic", _UNICODE, f"{_ISO} (480 words)", tokenizers.unicode_words),
        Language(
            "fr", "French", _UNICODE, f"{_ISO} (691 words), with or without 15 question words", tokenizers.unicode_words
        ),
        Language(
            "zh",
            "Chinese",
            "jieba, accurate mode",
            f"{_ISO} (794 words), with or without 29 question words",
            tokenizers.chinese_words,
        ),
        Language(
            "ja",
            "Japanese",
            "MeCab surface forms (fugashi, unidic-lite)",
            f"{_ISO} (134 words)",
            tokenizers.japanese_words,
        ),
        Language("ko", "Korean", "Kiwi morphemes (kiwipiepy)", f"{_ISO} (679 words)", tokenizers.korean_words),
    )
}
"""The seven languages of the paper, by ISO 639-1 code."""

WITHOUT_SPACES = {"th": "Thai", "lo": "Lao", "km": "Khmer", "my": "Burmese"}
"""Written without spaces between words: a run of letters is a phrase, so CW comes out far too low."""


def language_of(code: str) -> Language:
    """The entry of a language. One outside the table is counted by runs of letters, and its entry says so."""
    code = code.strip().lower()
    if code in LANGUAGES:
        return LANGUAGES[code]
    caution = (
        f"; {WITHOUT_SPACES[code]} is written without spaces, so these are phrases and CW is far too low"
        if code in WITHOUT_SPACES
        else "; not one of the paper's languages"
    )
    listed = "Stopwords ISO, as installed"
    return Language(
        code,
        WITHOUT_SPACES.get(code) or WITHOUT_LIST.get(code) or code,
        "runs of letters, digits and combining marks" + caution,
        "none is known, so every word counts and CW is too high" if code in WITHOUT_LIST else listed,
        tokenizers.marked_words,
        as_in_paper=False,
    )
