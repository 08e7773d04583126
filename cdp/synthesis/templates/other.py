"""Queries for documents that are not English: whole sentences of the document itself, without grammar rules.

A sentence stands beside the title where it does not name it. A tag behind it makes it a question. A sentence that
refers back to another is quoted.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from itertools import zip_longest

from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA
from cdp.corpus.languages import FUNCTION_WORDS, guess_language, main_script
from cdp.synthesis.templates.phrases import WIDE, balanced, plain, plain_title, read_sentences

_DATA = tomllib.loads((SHIPPED_DATA / "words" / "pointing.toml").read_text(encoding="utf-8"))
# First words of a sentence that refers to the one before, and words that do wherever they stand; in scripts without
# spaces, characters.
_POINTING, _REFERRING = frozenset(_DATA["pointing"].split()), frozenset(_DATA["referring"].split())
_POINTING_WIDE, _REFERRING_WIDE = tuple(_DATA["pointing_wide"].split()), tuple(_DATA["referring_wide"].split())
_FUNCTION_WORDS = {word for group in FUNCTION_WORDS.values() for words in group.values() for word in words}
# By language: what makes a question of a statement, put behind it; what asks for the place of a quotation.
_TAGS: dict[str, list[str]] = _DATA["tags"]
_QUOTES: dict[str, list[str]] = _DATA["quotes"]
_END = " 。！？.!?؟۔।、，,،;:；：—–-…\u200e\u200f"
# Words with the character for "he".
_NOT_HE = re.compile("[其吉]他|他[人国國]")
_ADVERB = re.compile(r"\w+ [^\W\dA-ZА-Я][^\W\d]*[,،]")  # "De plus,", "Кроме того,"
_HANGUL, _TOPIC = re.compile(r"[\uac00-\ud7af]"), re.compile(r"[\uac00-\ud7af][은는] ")
_FULL_STOP = re.compile(r"[.。۔।][\"”»’」』）)]*$")
_DEBRIS = re.compile(
    r"https?:|www\.|[\[\]{}<>|\\=_^~*#/@?？!！؟…;]|\.\.|:\d|\w ?: |\s[–—-]|[다요]\. |^\w\.|\w{3}\.[^\W\d]"
    r"|\b(\w+)、\1\b|[はがをにとので、後后时時]$|^[はがをの](?=[\u4e00-\u9fff])|[\uac00-\ud7af]: "
    r"|，\s*，|,\s*[,:]|^\d+\b(?![年月日]| \w{3})|(?:，[^，]*){5}"
)
# Characters of Chinese and Japanese, words of other languages in the longest query; shares of it: the shortest one, the
# longest title beside another text, the longest quotation, the longest where there is no other.
LONGEST_WIDE, LONGEST = 64, 24
SHORTEST, LONGEST_TITLE, LONGEST_QUOTED, LONGEST_UNCUT = 0.18, 0.4, 1.2, 1.8


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield the sentences, every second as a question, then other wordings of each."""
    wordings = [texts[at % 2 :] + texts[: at % 2] for at, texts in enumerate(_wordings(document))]
    for texts in zip_longest(*wordings, fillvalue=""):
        yield from texts


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one sentence as it is and as a question, then the next."""
    for texts in _wordings(document):
        yield from texts


def _wordings(document: Document) -> list[list[str]]:
    """Return each sentence in its wordings: those that stand alone, about the title and short ones first, as they are
    and as questions; others as quotations."""
    title, language, wide = plain_title(document), guess_language(document.content), _is_wide(document.text)
    raw = [(text, sentence) for sentence in read_sentences(document) if (text := plain(sentence).strip(_END))]
    raw = [(text, sentence) for text, sentence in raw if _is_wide(text) == wide]  # others are references
    if _HANGUL.search(title) and len(raw) > 1 and not raw[0][0].startswith(title):
        raw = raw[1:]  # Korean collections put a definition without a verb in front of the first sentence
    whole = [text for text, sentence in raw if _FULL_STOP.search(sentence) and _is_whole(text)]
    alone = [text for text in whole if SHORTEST <= _length(text) <= 1 and not _points_back(text)]
    alone.sort(key=lambda text: _length(text) - _names(title, text) - 0.5 * any(map(str.isdigit, text)))
    quoted = [text for text in whole if text not in alone and SHORTEST <= _length(text) <= LONGEST_QUOTED]
    quoted.sort(key=lambda text: abs(_length(text) - 0.7))
    if not (alone or quoted):
        texts = whole or [text for text, _ in raw] or [title or plain(document.text)]
        start = min(texts, key=len)
        if _length(start) > LONGEST_UNCUT:
            named = title and main_script(title) == main_script(start)
            start = title if named else start[:LONGEST_WIDE] if wide else " ".join(start.split()[:LONGEST])
            return [[start]]
        quoted = [start]
    beside = dict.fromkeys(_beside(title, text) for text in alone)
    asked = [[text, *(f"{text}{tag}" for tag in _TAGS.get(language, []))] for text in beside]
    return asked + [[wording.format(s=text) for wording in _QUOTES.get(language, ["{s}"])] for text in quoted]


def _is_whole(text: str) -> bool:
    last = text.split()[-1].casefold().rstrip("ـ")
    cut = not _is_wide(text) and (len(last) < 2 or last in _FUNCTION_WORDS)
    return balanced(text) and not text[0].islower() and not cut and not _DEBRIS.search(text)


def _names(title: str, text: str) -> bool:
    """Return True if a text holds a word of the title."""
    folded = title.casefold()
    parts = [folded[:3]] if _is_wide(text) else [part for part in folded.split() if len(part) > 3] or [folded]
    return bool(title) and any(part in text.casefold() for part in parts)


def _is_wide(text: str) -> bool:
    """Return True for a text of Chinese or Japanese, also with names in other scripts."""
    return 3 * len(WIDE.findall(text)) > len(text)


def _length(text: str) -> float:
    """Return a text's length as a share of the longest query's."""
    return len(text) / LONGEST_WIDE if _is_wide(text) else len(text.split()) / LONGEST


def _points_back(sentence: str) -> bool:
    if _is_wide(sentence):
        sentence = _NOT_HE.sub("", sentence)
        return sentence.startswith(_POINTING_WIDE) or any(word in sentence for word in _REFERRING_WIDE)
    first, *others = sentence.casefold().split()
    connected = first in _POINTING or first.endswith((",", "،")) or first.partition("'")[0] in ("c", "qu")
    connected |= bool(_ADVERB.match(sentence))
    return connected or not _REFERRING.isdisjoint(word.strip(",،") for word in others)


def _beside(title: str, text: str) -> str:
    """Return the text behind the title, unless it names the title already or the title is long or in another script."""
    topic = _TOPIC.search(text)  # a Korean sentence with its own
    named = title in text if _is_wide(text) else _names(title, text)
    alone = not title or topic or named or _length(title) > LONGEST_TITLE
    return (
        text if alone or main_script(title) != main_script(text) else f"{title}{'：' if _is_wide(text) else ': '}{text}"
    )
