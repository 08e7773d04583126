"""Queries for documents that are not English: whole sentences of the document itself, without grammar rules.

A sentence that names the title or holds a name or number near its start is certain: it stands alone or beside the
title, and a tag behind it makes it a question. Others are quoted, but none that is damaged or goes on from another.
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
_ADVERB = re.compile(r"(?i:c|qu|j|n)['’]|\w+ [^\W\dA-ZА-Я][^\W\d]*[,،]")  # "De plus,", "Кроме того,"
_HANGUL, _TOPIC = re.compile(r"[\uac00-\ud7af]"), re.compile(r"[\uac00-\ud7af][은는] ")
_FULL_STOP = re.compile(r"[.。۔।][\"”»’」』）)]*$")
_DEBRIS = re.compile(
    r"https?:|www\.|[\[\]{}<>|\\=_^~*#/@?？!！؟…;]|\.\.|:\d|\w ?: |\s[–—-]|[다요]\. |^\w\.|\w{3}\.[^\W\d]"
    r"|\b(\w+)、\1\b|[はがをにとので、後后时時]$|^[はがをの](?=[\u4e00-\u9fff])|[\uac00-\ud7af]: "
    r"|，\s*，|,\s*[,:]|^\d+\b(?![年月日]| \w{3})|(?:，[^，]*){5}|——"
    # Holes of removed words, doubled ones, names without their spaces, a cut beginning; Arabic for "you".
    r"|[及和与與或在于於由、，][，、]|、等|\b(?:أو|و|في|من|إلى|هو|هي)،|\b(\w{4,}) (?:\w+ )?\2\b"
    r"|^[ぁ-ゖ]|^[\u4e00-\u9fff]や|[ぁ-ゖ].*[\u4e00-\u9fff]$|なりで|[A-Za-z]{13}.*[\u3040-\u9fff]"
    r"|[\u3040-\u9fff].*[A-Za-z]{13}|[\uac00-\ud7af]'|[A-Z]'[\s\uac00-\ud7af]|[\uac00-\ud7afA-Za-z] [는은도을를] "
    r"|[《「『]\s*[》」』]|\b\d{4}[a-z]|\b[dlnq] [aeéèiouh]\w"
    r"|[؛،]\s*[؛،]|\bوال،|\bال |\b(?:و?هي|و?هو|و?ال)$|\b(?:في|من|إلى|على) و(?![قسجالصزح])|\b[أ-ي]{2,}(?<!هت)تم\b"
)
# A number, foreign name, title of a work, country or town near the start of a sentence.
_NAMED = re.compile(
    r"^(?![ء-ي])(?:.{0,40}\d|[\u3040-\u9fff].{0,24}[A-Za-z《·・]|.{0,12}[国國州市县縣省]|[ァ-ヺー]{3}"
    r"|(?:\S+ ){1,7}[«\"]?[A-ZÀ-ÞА-Я]\w|\S+ ?\S*[은는] )"
)
# Characters of Chinese and Japanese, words of other languages in the longest query; shares of it: the shortest one, the
# longest title beside another text, the longest quotation.
LONGEST_WIDE, LONGEST = 64, 24
SHORTEST, LONGEST_TITLE, LONGEST_QUOTED = 0.18, 0.4, 1.6


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
    """Return each sentence in its wordings: the certain, about the title and short ones first, as they are and as
    questions; others as quotations. Where none can be asked for, the title or the shortest sentence."""
    title, language, wide = plain_title(document), guess_language(document.content), _is_wide(document.text)
    title, given = (title if main_script(title) == main_script(document.text) else ""), title
    raw = [(text, sentence) for sentence in read_sentences(document) if (text := plain(sentence).strip(_END))]
    raw = [(text, sentence) for text, sentence in raw if _is_wide(text) == wide]  # others are references
    if _HANGUL.search(title) and len(raw) > 1 and not raw[0][0].startswith(title):
        raw = raw[1:]  # Korean collections put a definition without a verb in front of the first sentence
    whole = [text for text, sentence in raw if _FULL_STOP.search(sentence) and _is_whole(text)]
    alone = [text for text in whole if SHORTEST <= _length(text) <= LONGEST_QUOTED and not _points_back(text)]
    certain = [text for text in alone if _length(text) <= 1 and not _refers(text)]
    can_precede = _length(title) <= LONGEST_TITLE
    certain = [text for text in certain if _names(title, text) or (can_precede and _NAMED.search(text))]
    certain.sort(key=lambda text: _length(text) - _names(title, text))
    quoted = [text for text in alone if text not in certain]
    quoted = [text for text in quoted if not _refers(text)] or [text for text in quoted if _length(text) > 0.5]
    quoted.sort(key=lambda text: abs(_length(text) - 0.7))
    if not certain and (not quoted or (given and language not in _QUOTES)):
        texts = [given] if given else whole or [text for text, _ in raw] or [plain(document.text)]
        return [[min(texts, key=len)[: 2 * LONGEST_WIDE]]]
    beside = dict.fromkeys(_beside(title, text) for text in certain)
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
    """Return True if a sentence begins as one that goes on from another."""
    if _is_wide(sentence):
        return _NOT_HE.sub("", sentence).startswith(_POINTING_WIDE)
    first, *others = sentence.casefold().split()
    connected = first in _POINTING or first.endswith((",", "،"))
    connected |= bool(_ADVERB.match(sentence)) or first.startswith("و")  # "and" in Arabic
    # "its inhabitants"
    return connected or any(len(word) > 4 and word.endswith(("ها", "هم", "هما")) for word in others[:5])


def _refers(sentence: str) -> bool:
    """Return True if a sentence holds a word for something in another."""
    if _is_wide(sentence):
        return any(word in _NOT_HE.sub("", sentence) for word in _REFERRING_WIDE)
    return any(word.strip(",،") in _REFERRING for word in sentence.casefold().split())


def _beside(title: str, text: str) -> str:
    """Return the text behind the title, unless it names the title already or the title is long."""
    topic = _TOPIC.search(text)  # a Korean sentence with its own
    named = title in text if _is_wide(text) else _names(title, text)
    alone = not title or topic or named or _length(title) > LONGEST_TITLE
    return text if alone else f"{title}{'：' if _is_wide(text) else ': '}{text}"
