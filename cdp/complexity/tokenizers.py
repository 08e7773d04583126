"""Texts to words, one function per way of finding them. Each takes many texts and yields the words of each in turn.

Words come lower-cased, in order, repeated as in the text. What is a stopword or too short is decided later.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from cdp.errors import ConfigError

_LATIN = re.compile(r"\b[a-z]+\b")
_UNICODE = re.compile(r"\w+")
_ALPHANUMERIC = re.compile(r"[^\W_]").search
"""Whether a token holds a letter or a digit; those that do not are punctuation."""


def latin_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Runs of a–z between word boundaries: ``covid19`` and ``naïve`` are no such run, ``don't`` is two."""
    find = _LATIN.findall
    for text in texts:
        yield find(text.lower())


def unicode_words(texts: Iterable[str]) -> Iterator[list[str]]:
    r"""Runs of letters and digits (``\w+``), the paper's tokenizer for Russian, Arabic and French.

    A combining mark that has no composed letter ends a word, as in the paper: Russian stress marks make two words of
    ``Вру́бель``, which raises the mean CW of MIRACL's training queries from 4.23 to 4.56 (Arabic: 3.659 to 3.662).
    """
    find = _UNICODE.findall
    for text in texts:
        yield find(_normalise(text))


def marked_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Runs of letters, digits and combining marks: for every other language, so that Devanagari words stay whole."""
    find = _marked_word().findall
    for text in texts:
        yield find(_normalise(text))


def chinese_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """jieba's accurate mode; punctuation is left out."""
    cut = _jieba().lcut
    for text in texts:
        yield [word for word in cut(_normalise(text)) if _ALPHANUMERIC(word)]


def japanese_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """MeCab's surface forms (fugashi with unidic-lite); punctuation is left out."""
    tagger = _fugashi()
    for text in texts:
        surfaces = (word.surface for word in tagger(_encodable(_normalise(text))))
        yield [surface for surface in surfaces if _ALPHANUMERIC(surface)]


def korean_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Kiwi's morphemes; punctuation is left out."""
    for morphemes in _kiwi().tokenize(_encodable(_normalise(text)) for text in texts):
        yield [morpheme.form for morpheme in morphemes if _ALPHANUMERIC(morpheme.form)]


def _normalise(text: str) -> str:
    return unicodedata.normalize("NFC", text).lower()


def _encodable(text: str) -> str:
    """What a tokenizer written in C can take: no NUL, no lone surrogates."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


@lru_cache(maxsize=1)
def _marked_word() -> re.Pattern[str]:
    return re.compile(rf"[\w{combining_marks()}]+")


@lru_cache(maxsize=1)
def combining_marks() -> str:
    """Every combining mark (Unicode categories Mn and Mc), fit to stand in a character class."""
    return "".join(chr(point) for point in range(0x20000) if unicodedata.category(chr(point)) in ("Mn", "Mc"))


@lru_cache(maxsize=1)
def _jieba() -> Any:
    """A jieba tokenizer that neither logs to stderr nor leaves a cache in the temporary folder."""
    jieba = _import("jieba", "Chinese")
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@lru_cache(maxsize=1)
def _fugashi() -> Any:
    return _import("fugashi", "Japanese").Tagger()


@lru_cache(maxsize=1)
def _kiwi() -> Any:
    return _import("kiwipiepy", "Korean").Kiwi()


def _import(package: str, language: str) -> Any:
    try:
        return __import__(package)
    except ImportError as error:
        raise ConfigError(
            f"{language} words cannot be counted: the package {package} is missing.",
            hint=f"Install it with: {sys.executable} -m pip install -r requirements.txt",
        ) from error
