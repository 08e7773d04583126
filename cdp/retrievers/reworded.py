"""What a query is made of whatever its order, its function words and its spaces: by this, rewordings are told.

- Words between spaces count without function words.
- Korean words are cut of particles and of the endings of questions (서울의 → 서울, 하나요 → 하).
- Chinese and Japanese write no spaces: each Chinese character counts, without the most common function characters; a
  run of katakana is a word; of hiragana only question words and the negation, for the rest are particles and endings.
- Thai, Lao, Burmese and Khmer write no spaces and have no such signs: their letters and vowel signs count, sorted.

No dictionary is loaded, so that a check takes microseconds a query and gives the same on every machine.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from cdp.complexity import stopword_list

# Queries that share all they are made of ask the same if that weighs as much as four words: “Where is Paris?” and
# “Why Paris?” do not. One word that is another one ("mill 12", "mill 13") makes another query.
ENOUGH = 12

# What a word weighs, and a Chinese character: six of them are as good as four words.
WORD, CHARACTER = 3, 2

# In scripts that are compared by their letters; vowel signs and tone marks above or below them add nothing.
LETTERS_OF_A_WORD = 4

# Languages that write spaces between words. One list for all: which one a query is in need not be known.
_SPACED = ("en", "fr", "ru", "ar")

# Question words are function words to a stopword list, but two of them ask two things.
_ASKING = frozenset((
    "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "qui", "quoi", "que", "quand",
    "où", "pourquoi", "comment", "combien", "quel", "quelle", "quels", "quelles", "lequel", "laquelle", "кто",
    "что", "какой", "какая", "какое", "какие", "когда", "где", "куда", "почему", "зачем", "как", "сколько",
    "чей", "من", "ما", "ماذا", "متى", "أين", "لماذا", "كيف", "كم", "أي", "هل"
))  # fmt: skip

_HAN = r"\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA, _HANGUL, _UNSPACED = r"\u3040-\u30ff", r"\uac00-\ud7a3", r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_OTHERS = re.compile(rf"[{_HAN}{_KANA}{_HANGUL}{_UNSPACED}]")
_RUNS = re.compile(
    rf"(?P<han>[{_HAN}])|(?P<katakana>[\u30a0-\u30ff]+)|(?P<hiragana>[\u3040-\u309f]+)|(?P<hangul>[{_HANGUL}]+)"
    rf"|(?P<letters>[{_UNSPACED}]+)|(?P<word>[^{_HAN}{_KANA}{_HANGUL}{_UNSPACED}]+)"
)
_HAN_FUNCTION = frozenset("的了是在於于之也都就而及与與和或吗嗎呢吧啊呀着著过過这這那其所")
_HIRAGANA = re.compile("なぜ|いつ|どこ|だれ|どの|どう|どれ|なに|いくつ|いくら|どんな|どちら|ない|なか")
_PARTICLES = re.compile(
    "(?<=.)(?:에서는|에서의|에게서|에서|에게|에는|으로는|으로|로는|까지|부터|이라는|라는|이란|이나|이며|란|로|은|는|이|가|을|를|의|에"
    "|와|과|도|만|나|인)$"
)


def _jamo(text: str) -> str:
    return unicodedata.normalize("NFD", text)


# Of questions, letter by letter: they grow together with the syllable before (하 + ㅂ니까 = 합니까).
_ENDINGS = re.compile(
    "(?<=..)(?:"
    + _jamo(
        "입니까|습니까|\u11b8니까|인가요|는가요|\u11ab가요|인가|는가|\u11ab가|는지|은지|나요|까요|가요|을까|일까|\u11af까요|\u11af까|니까"
        "|까|요|죠|나|냐|니"
    )
    + ")$"
)


@cache
def _function_words() -> frozenset[str]:
    """What may differ between rewordings. Not the question word: when something began is not where it began."""
    return frozenset().union(*map(stopword_list, _SPACED)) - _ASKING


def content(words: str) -> frozenset[str] | None:
    """What the query is made of, from its words (``leakage.words_of``); None where that is too little to tell it from
    other queries."""
    pieces = words.split()
    if words.isascii() or not _OTHERS.search(words):
        units = frozenset(pieces) - _function_words()
        return units if WORD * len(units) >= ENOUGH else None
    found: set[str] = set()
    letters: list[str] = []
    characters = 0
    for piece in pieces:
        for run in _RUNS.finditer(piece):
            text = run[0]
            match run.lastgroup:
                case "han" if text not in _HAN_FUNCTION and text not in found:
                    found.add(text)
                    characters += 1
                case "hiragana":
                    found.update(_HIRAGANA.findall(text))
                case "hangul":
                    found.add(_ENDINGS.sub("", _jamo(_PARTICLES.sub("", text))))
                case "letters":
                    letters += text
                case "katakana" | "word" if text not in _function_words():
                    found.add(text)
    n_letters = sum(map(str.isalnum, letters))
    weight = CHARACTER * characters + WORD * (len(found) - characters + n_letters // LETTERS_OF_A_WORD)
    if letters:
        found.add("".join(sorted(letters)))
    return frozenset(found) if weight >= ENOUGH else None
