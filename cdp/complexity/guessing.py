"""Guessing the language of a text by its script, and where several share one by their function words.

A guess for orientation, made without a model; it says ``unknown`` rather than guess between close relatives.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache

from cdp.base.workspace import shipped_table

FUNCTION_WORDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    script: {language: frozenset(words.split()) for language, words in languages.items()}
    for script, languages in shipped_table("words/languages").items()
}

UNKNOWN = "unknown"

_SCRIPTS = {
    "Latin": "A-Za-zªº\u00c0-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u052f",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30fa\u30fc-\u30ff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "Devanagari": "\u0900-\u0963\u0970-\u097f",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Hebrew": "\u05d0-\u05ea",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Bengali": "\u0980-\u09e3\u09f0-\u09fb",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Georgian": "\u10a0-\u10ff",
    "Armenian": "\u0531-\u058f",
}
# Of ASCII, letters as small ones and apostrophes; blanks for all else.
_WORDS_OF_ASCII = bytes(ord(c.lower()) if (c := chr(byte)).isalpha() or c == "'" else 32 for byte in range(256))
_ASCII, _NO_ASCII_LETTERS = re.compile(r"[\x00-\x7f]+"), re.compile(r"[^A-Za-z]+")
_LETTERS = {script: re.compile(f"[{letters}]") for script, letters in _SCRIPTS.items()}
_WORDS = {script: re.compile(f"[{_SCRIPTS[script]}\u0300-\u036f'’]+") for script in FUNCTION_WORDS}


def _listed_by(languages: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """For each function word the languages that have it."""
    by_word: dict[str, list[str]] = defaultdict(list)
    for language, words in languages.items():
        for word in set(words):
            by_word[word].append(language)

    return dict(by_word)


_LISTED_BY = {script: _listed_by(languages) for script, languages in FUNCTION_WORDS.items()}

_SCRIPT_OF_LANGUAGE = {language: script for script, languages in FUNCTION_WORDS.items() for language in languages}

# For each language the function words that others of its script have and it has not.
_FOREIGN = {
    language: frozenset(_LISTED_BY[script]).difference(FUNCTION_WORDS[script][language])
    for language, script in _SCRIPT_OF_LANGUAGE.items()
}

_ONE_LANGUAGE = {
    "Hangul": "ko", "Greek": "el", "Hebrew": "he", "Thai": "th", "Bengali": "bn", "Tamil": "ta", "Telugu": "te",
    "Georgian": "ka", "Armenian": "hy",
}  # fmt: skip

MIN_LETTERS = 12
# Fewer letters, or characters of a script where each is about a syllable, say too little.
MIN_SYLLABLES = 4

# A Han character, kana or Hangul syllable carries about as much as two letters of an alphabet.
SYLLABIC_WEIGHT = 2

MIN_HIRAGANA_SHARE = 0.08
# Running Japanese has far more hiragana than this, a Japanese name or loan word may be all katakana; Chinese text that
# quotes a Japanese name has less of both.
MIN_KATAKANA_SHARE = 0.5

_EAST_ASIAN = ("Han", "Hiragana", "Katakana")
# Scripts as ``main_script`` names them.
_MAIN_SCRIPTS = {"East Asian", *_SCRIPTS}.difference(_EAST_ASIAN)

MIN_FUNCTION_WORD_SHARE = 0.08
# The best language needs this share of the words from its list, and this many times the score of the next. A word's
# score is split between the languages that list it, so that what they share decides nothing.
MIN_LEAD = 1.2


def guess_language(text: str) -> str:
    """A two-letter ISO 639-1 code, or ``unknown``."""
    if text.isascii():  # as most are
        words = text.encode("ascii").translate(_WORDS_OF_ASCII)
        letters = len(words) - words.count(b" ") - words.count(b"'")
        if letters < MIN_LETTERS:
            return UNKNOWN
        return _by_function_words(words.decode().split(), "Latin")

    counts = Counter({"Latin": len(_NO_ASCII_LETTERS.sub("", text))})
    for letter, n in Counter(_ASCII.sub("", text)).items():
        counts[_script_of(letter)] += n

    syllabic = counts["Han"] + counts["Hiragana"] + counts["Katakana"]
    weights = {script: counts[script] for script in _MAIN_SCRIPTS}
    weights["Hangul"] *= SYLLABIC_WEIGHT
    weights["East Asian"] = SYLLABIC_WEIGHT * syllabic

    script = max(weights, key=weights.__getitem__)
    if 2 * weights[script] <= sum(weights.values()):
        return UNKNOWN

    enough = MIN_LETTERS
    if script in ("East Asian", "Hangul"):
        enough = MIN_SYLLABLES * SYLLABIC_WEIGHT
    if weights[script] < enough:
        return UNKNOWN

    if script == "East Asian":
        hiragana, katakana = counts["Hiragana"], counts["Katakana"]
        japanese = hiragana >= MIN_HIRAGANA_SHARE * syllabic or katakana >= MIN_KATAKANA_SHARE * syllabic
        return "ja" if japanese else "zh"

    if language := _ONE_LANGUAGE.get(script):
        return language

    return _by_function_words(_words_of(text, script), script)


def _words_of(text: str, script: str) -> list[str]:
    if text.isascii():
        return text.encode("ascii").translate(_WORDS_OF_ASCII).decode().split()
    return _WORDS[script].findall(text.lower().replace("’", "'"))


# Another language of the script needs this many times the score of the set's own. Of 8,900 English and 9,055 French
# queries 0.01% and 0.3% are then taken for another language, and 99% of English ones in a French set and 86% of French
# ones in an English set for their own (tests/complexity/test_mixed_languages.py).
LEAD_OVER_OWN = 3.0


def language_beside(code: str, text: str) -> str:
    """Return the language of a text in a set in the language ``code``: another one of its script where function words
    leave little doubt, else ``code``."""
    script = _SCRIPT_OF_LANGUAGE.get(code)
    if script is None:
        return code

    found = _words_of(text, script)
    if _FOREIGN[code].isdisjoint(found):
        return code

    scores = _scores(found, script)
    other = _by_function_words(found, script)
    if other == UNKNOWN or scores[other] < LEAD_OVER_OWN * scores[code]:
        return code
    return other


@lru_cache(maxsize=1 << 14)
def _script_of(letter: str) -> str:
    """The script of a letter; empty for any other character."""
    return next((script for script, letters in _LETTERS.items() if letters.match(letter)), "")


def main_script(text: str) -> str:
    """The script that more than half of the letters of a text are in, Han and kana as one; empty where none is."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""

    counts = {script: script_letters(text, script) for script in _MAIN_SCRIPTS}
    script = max(counts, key=counts.__getitem__)
    return script if 2 * counts[script] > sum(counts.values()) else ""


def script_letters(text: str, script: str) -> int:
    """How many letters of a script, as ``main_script`` names it, a text has; 0 for no script."""
    if not script:
        return 0

    parts = _EAST_ASIAN if script == "East Asian" else (script,)
    return sum(len(_LETTERS[part].findall(text)) for part in parts)


def _scores(found: list[str], script: str) -> dict[str, float]:
    """How much each language of a script has of its function words in a text; what several list is split."""
    listed_by = _LISTED_BY[script]
    scores = dict.fromkeys(FUNCTION_WORDS[script], 0.0)
    for word, n in Counter(filter(listed_by.__contains__, found)).items():
        listed = listed_by[word]
        for language in listed:
            scores[language] += n / len(listed)
    return scores


def _by_function_words(found: list[str], script: str) -> str:
    scores = _scores(found, script)
    best, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    n_best = sum(map(FUNCTION_WORDS[script][best].__contains__, found))
    if n_best < 2 or n_best < MIN_FUNCTION_WORD_SHARE * len(found) or scores[best] < MIN_LEAD * scores[second]:
        return UNKNOWN

    return best


def language_shares(texts: Iterable[str]) -> dict[str, float]:
    """The share of the texts in each language, most frequent first; the shares sum to 1 (empty for no text)."""
    counts = Counter(map(guess_language, texts))
    total = sum(counts.values())
    return {language: count / total for language, count in counts.most_common()}
