"""The languages whose content words can be counted, a table: tokenizer of each, scripts without spaces."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.text import encodable
from cdp.base.workspace import SHIPPED_DATA
from cdp.complexity.guessing import UNKNOWN, guess_language, language_beside

_LATIN = re.compile(r"\b[a-z]+\b")
_UNICODE = re.compile(r"\w+")
# Whether a token holds a letter or a digit; those that do not are punctuation.
_ALPHANUMERIC = re.compile(r"[^\W_]").search

# Characters that a tokenizer written in C is given at once.
LONGEST_PIECE = 2000


def normalise(word: str) -> str:
    """The form in which words are compared: NFKC, so that wide letters and ligatures are the usual ones; lower case."""
    return unicodedata.normalize("NFKC", word).lower()


def latin_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Runs of a–z between word boundaries: ``covid19`` and ``naïve`` are no such run, ``don't`` is two."""
    # Not ``normalise``: the letters of formulas would be words (BRIGHT economics: 45.49, not 45.31; printed 45.63).
    find = _LATIN.findall
    for text in texts:
        yield find(text.lower())


def unicode_words(texts: Iterable[str]) -> Iterator[list[str]]:
    r"""Runs of letters and digits (``\w+``), the paper's tokenizer for Russian, Arabic and French
    (tab:multilingual_cw_config).

    A combining mark that has no composed letter ends a word, as in the paper: Russian stress marks make two words of
    ``Вру́бель``, which raises the mean CW of MIRACL's training queries from 4.23 to 4.56 (Arabic: 3.659 to 3.662).
    """
    find = _UNICODE.findall
    for text in texts:
        yield find(normalise(text))


def marked_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Runs of letters, digits and combining marks: for every other language, so that Devanagari words stay whole."""
    find = _marked_word().findall
    for text in texts:
        yield find(normalise(text))


def chinese_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """jieba's accurate mode; punctuation is left out."""
    cut = _jieba().lcut
    for text in texts:
        yield [word for piece in _pieces(normalise(text)) for word in cut(piece) if _ALPHANUMERIC(word)]


def japanese_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """MeCab's surface forms (fugashi with unidic-lite); punctuation is left out."""
    tagger = _fugashi()
    for text in texts:
        surfaces = (word.surface for piece in _pieces(_encodable(normalise(text))) for word in tagger(piece))
        yield [surface for surface in surfaces if _ALPHANUMERIC(surface)]


def simplified_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """The words of Chinese once its characters are Simplified: a sentence in either script has the same ones."""
    table = _simplified()
    yield from chinese_words(normalise(text).translate(table) for text in texts)


def korean_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """Kiwi's morphemes; punctuation is left out."""
    return _morphemes(texts, lambda tag: True)


def korean_stems(texts: Iterable[str]) -> Iterator[list[str]]:
    """Kiwi's morphemes without endings (tags E…), which it writes with conjoining letters that no stopword list has."""
    return _morphemes(texts, lambda tag: not tag.startswith("E"))


def _morphemes(texts: Iterable[str], wanted: Callable[[str], bool]) -> Iterator[list[str]]:
    sizes: deque[int] = deque()

    def pieces() -> Iterator[str]:
        for text in texts:
            parts = list(_pieces(_encodable(normalise(text))))
            sizes.append(len(parts))
            yield from parts

    words: list[str] = []
    read = 0
    for morphemes in _kiwi().tokenize(pieces()):  # given many texts at once, it works on several cores
        words += [m.form for m in morphemes if wanted(m.tag) and _ALPHANUMERIC(m.form)]
        read += 1
        if read == sizes[0]:
            sizes.popleft()
            yield words
            words, read = [], 0


def _encodable(text: str) -> str:
    """What a tokenizer written in C can take: no NUL, no lone surrogates."""
    return encodable(text.replace("\0", " "))


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces of at most ``LONGEST_PIECE`` characters, cut after a sentence or a space where there is one.

    jieba, MeCab and Kiwi take time that grows with the square of a run without one. Queries are shorter by far.
    """
    start = 0
    while len(text) - start > LONGEST_PIECE:
        last = start + LONGEST_PIECE
        ends = (text.rfind(mark, start + LONGEST_PIECE // 2, last) + 1 for mark in ("\n", "。", ". ", " "))
        end = next((end for end in ends if end), last)
        yield text[start:end]
        start = end
    yield text[start:]


@lru_cache(maxsize=1)
def _marked_word() -> re.Pattern[str]:
    return re.compile(rf"[\w{combining_marks()}]+")


@lru_cache(maxsize=1)
def combining_marks() -> str:
    """Every combining mark (Unicode categories Mn and Mc), fit to stand in a character class."""
    return "".join(chr(point) for point in range(0x20000) if unicodedata.category(chr(point)) in ("Mn", "Mc"))


@lru_cache(maxsize=1)
def _simplified() -> dict[int, str]:
    """Each Traditional character with its Simplified one, of those that are never Simplified themselves."""
    pairs = (SHIPPED_DATA / "words" / "traditional.txt").read_text(encoding="utf-8").split()
    return {ord(pair[0]): pair[1] for pair in pairs}


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
            hint=f"Run make install in a clone; else: {sys.executable} -m pip install 'cdp-studio[languages]'",
        ) from error


Words = Callable[[Iterable[str]], Iterator[list[str]]]


@dataclass(frozen=True, slots=True)
class Language:
    """How the words of a language are found. ``tokenizer`` and ``stopwords`` are sentences to be shown; ``content`` are
    the words of which content words are chosen, where that are not all ``words``."""

    code: str
    name: str
    tokenizer: str
    stopwords: str
    words: Words
    content: Words | None = None


_NLTK, _ISO, _WITH = "NLTK's 179 words, shipped", "Stopwords ISO, shipped", ", with or without"
_ANY_SCRIPT = "runs of letters and digits (Unicode word boundaries)"

# The seven languages of the paper, by ISO 639-1 code.
LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        Language(
            "en", "English", "runs of letters a–z", f"NLTK's 179 words, shipped{_WITH} 8 question words", latin_words
        ),
        Language("ru", "Russian", _ANY_SCRIPT, f"{_ISO} (559 words){_WITH} 19 question words", unicode_words),
        Language("ar", "Arabic", _ANY_SCRIPT, f"{_ISO} (480 words){_WITH} 11 question words", unicode_words),
        Language("fr", "French", _ANY_SCRIPT, f"{_ISO} (691 words){_WITH} 15 question words", unicode_words),
        Language(
            "zh",
            "Chinese",
            "jieba, accurate mode, Traditional as Simplified",
            f"{_ISO} (794 words){_WITH} 29 question words",
            chinese_words,
            content=simplified_words,
        ),
        Language(
            "ja",
            "Japanese",
            "MeCab surface forms (fugashi, unidic-lite)",
            f"{_ISO} (134 words){_WITH} 6 question words",
            japanese_words,
        ),
        Language(
            "ko",
            "Korean",
            "Kiwi morphemes (kiwipiepy), endings left out",
            f"{_ISO} (679 words){_WITH} 24 question words",
            korean_words,
            content=korean_stems,
        ),
    )
}

# What languages are called, by ISO 639-1 code.
NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "it": "Italian",
    "ja": "Japanese", "ka": "Georgian", "ko": "Korean", "mr": "Marathi", "ne": "Nepali", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "yo": "Yoruba", "zh": "Chinese",
    "unknown": "not recognised",
}  # fmt: skip

# Languages that Stopwords ISO does not cover and that a corpus may be in: all their words count.
WITHOUT_LIST = frozenset(("ka", "ne", "sr", "ta", "te"))

# Scripts written without spaces between words, as a character class: Chinese, Japanese, Thai, Lao, Khmer, Burmese.
UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)

# Written without spaces between words: a run of letters is a phrase, so CW comes out far too low.
WITHOUT_SPACES = {"th": "Thai", "lo": "Lao", "km": "Khmer", "my": "Burmese"}


def language_of(code: str) -> Language:
    """The entry of a language. One outside the table is counted by runs of letters, and its entry says so."""
    code = code.strip().lower()
    if code in LANGUAGES:
        return LANGUAGES[code]

    caution, stopwords = "not one of the paper's languages", "Stopwords ISO, as installed"
    if code in WITHOUT_SPACES:
        caution = f"{WITHOUT_SPACES[code]} is written without spaces, so these are phrases and CW is far too low"
    if code in WITHOUT_LIST:
        stopwords = "none is known, so every word counts and CW is too high"

    return Language(
        code,
        WITHOUT_SPACES.get(code) or NAMES.get(code, code),
        f"runs of letters, digits and combining marks; {caution}",
        stopwords,
        marked_words,
    )


# Scripts of which one of the paper's languages is the usual one, and the other languages that are written in them.
_SCRIPTS: tuple[tuple[str, re.Pattern[str], frozenset[str]], ...] = (
    ("ko", re.compile(r"[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]"), frozenset()),
    ("ja", re.compile(r"[\u3041-\u309f\u30a1-\u30ff]"), frozenset(("zh",))),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"), frozenset(("ja", "ko"))),
    ("ru", re.compile(r"[\u0400-\u04ff]"), frozenset(("uk", "bg", "sr", "mk", "be", "kk", "mn", "ky", "tg"))),
    ("ar", re.compile(r"[\u0620-\u064a\u066e-\u06d3]"), frozenset(("fa", "ur", "ps", "ckb", "sd", "ug"))),
)
# The languages that are not written in Latin letters, of those in which many corpora are.
_OTHER_SCRIPTS = frozenset(("ko", "ja", "zh", "ru", "ar")).union(*(also for _, _, also in _SCRIPTS)) - {"sr"}
_LATIN_LETTER = re.compile(r"[A-Za-zªº\u00c0-\u024f\u1e00-\u1eff]")
# Of kana so much of the letters of a text without spaces is enough; of any other script more than half is.
_KANA_SHARE = 0.1


def language_written(code: str, text: str) -> str:
    """Return the language whose words a text counts by: ``code``, the corpus's, unless it is in another script, or its
    function words are those of another language of the script.

    A Japanese query among English ones would have no words at all. Where function words do not tell, the corpus's
    language stays; Latin letters in a corpus of another script are then English.
    """
    other_script = code in _OTHER_SCRIPTS
    if text.isascii() and not other_script:
        return _beside(code, text)

    letters = sum(map(str.isalpha, text))
    for other, script, also in _SCRIPTS:
        found = len(script.findall(text))
        share = _KANA_SHARE if other == "ja" else 0.5
        if found > share * letters:
            if code == other or code in also:
                return _beside(code, text)
            return other if _countable(other) else code

    if other_script and 2 * len(_LATIN_LETTER.findall(text)) > letters > 0:
        guessed = guess_language(text)
        return "en" if guessed == UNKNOWN else guessed
    return _beside(code, text)


def _beside(code: str, text: str) -> str:
    found = language_beside(code, text)
    return code if found in WITHOUT_LIST else found


@cache
def _countable(code: str) -> bool:
    """Return True if the package that finds the words of a language is there."""
    try:
        return bool(list(LANGUAGES[code].words(["a"])))
    except ConfigError:
        return False
