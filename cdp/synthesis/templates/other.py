"""Queries for documents that are not English: whole sentences of the document itself, without grammar rules.

A sentence stands beside the title where it does not name it. A tag behind it makes it a question. Sentences that refer
back to another are left out where the document has others.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator

from cdp.base.records import Document
from cdp.base.workspace import SHIPPED_DATA
from cdp.corpus.languages import FUNCTION_WORDS, guess_language, main_script
from cdp.synthesis.templates.phrases import WIDE, balanced, plain, plain_title, read_sentences

_DATA = tomllib.loads((SHIPPED_DATA / "words" / "pointing.toml").read_text(encoding="utf-8"))
# First words of a sentence that refers to the one before; in scripts without spaces, its first characters.
_POINTING, _POINTING_WIDE = frozenset(_DATA["pointing"].split()), tuple(_DATA["pointing_wide"].split())
# Wherever they stand.
_REFERRING, _REFERRING_WIDE = frozenset(_DATA["referring"].split()), tuple(_DATA["referring_wide"].split())
_FUNCTION_WORDS = {word for group in FUNCTION_WORDS.values() for words in group.values() for word in words}
# By language: what makes a question of a statement, put behind it.
_TAGS: dict[str, list[str]] = _DATA["tags"]
_END = " 。！？.!?؟۔।、，,،;:；：—–-…\u200e\u200f"
_COMMA = re.compile(r"[、，；]|[,،;؛](?=\s)")
_KANA, _RUN = re.compile(r"[\u3041-\u309f]"), re.compile(r"[\u4e00-\u9fff々]{3,8}|[\u30a0-\u30ffー・]{4,14}")
_ADVERB = re.compile(r"\w+ [^\W\dA-ZА-Я][^\W\d]*[,،]")
_TOPIC = re.compile(r"[\uac00-\ud7af][은는] ")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_FULL_STOP = re.compile(r"[.。۔।][\"”»’」』）)]*$")
_DEBRIS = re.compile(
    r"https?:|www\.|[\[\]{}<>|\\=_^~*#/@?？!！؟…]|\.\.|:\d|\s[–—-]|[다요]\. "
    r"|\b(\w+)、\1\b|[はがをにとので、]$|^[はがをの](?=[\u4e00-\u9fff])|[\uac00-\ud7af]: "
    r"|，\s*，|,\s*[,:]|^\d+\b(?![年月日]| \w{3})"
)
# Two capitalised words: a name, to stand beside the title.
_NAME = re.compile(r"(?<=[^\W\d_] )[A-ZÀ-ÞА-ЯЁ][\w’-]+(?: (?:de |du |des |la |van |von )?[A-ZÀ-ÞА-ЯЁ][\w’-]+)+")
# Characters of Chinese and Japanese, words of other languages.
LONGEST_WIDE, SHORTEST_WIDE = 70, 10
LONGEST, SHORTEST = 24, 5
LONGEST_TITLE_WIDE, LONGEST_TITLE = 30, 8


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield statements of different sentences, every third as a question, and names beside the title, then the rest."""
    title, tags = plain_title(document), _tags(document)
    whole, cut = _statements(document, title)
    for at, text in enumerate(whole):
        yield f"{text}{tags[at % len(tags)]}" if tags and at % 3 == 2 else text
    for sentence in map(plain, read_sentences(document)):
        yield from (f"{title} {match[0]}" for match in _NAME.finditer(sentence) if title and match[0] not in title)
    for tag in tags:
        yield from (f"{text}{tag}" for text in whole)
    yield from cut


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one statement as it is and as a question, then the next."""
    tags = _tags(document)
    whole, cut = _statements(document, plain_title(document))
    for text in whole:
        yield text
        yield from (f"{text}{tag}" for tag in tags)
    yield from cut


def _tags(document: Document) -> list[str]:
    return _TAGS.get(guess_language(document.content), [])


def _statements(document: Document, title: str) -> tuple[list[str], list[str]]:
    """Return the whole sentences that stand alone, those about the title first, and the beginnings of others; all of
    them beside the title where they do not name it."""
    texts = [(text, raw) for raw in read_sentences(document) if (text := plain(raw).strip(_END))]
    texts = [(text, raw) for text, raw in texts if _is_wide(text) == _is_wide(document.text)]  # others are references
    if _HANGUL.search(title) and len(texts) > 1 and not texts[0][0].startswith(title):
        texts = texts[1:]  # Korean collections put a definition without a verb in front of the first sentence
    alone = [(text, raw) for text, raw in texts if not _points_back(text)]
    stop = [text for text, raw in alone if _FULL_STOP.search(raw) and _is_whole(text)]
    whole = [text for text in stop if _fits(text)] or [text for text in stop if _fits(text, 2)]
    whole.sort(key=lambda text: -2 * _names(title, text) - any(map(str.isdigit, text)))
    # A clause is a query in Chinese alone: others leave its verb or its subject behind the comma.
    starts = [start for text, _ in texts if _is_wide(text) and (start := _beginning(text)) and start not in whole]
    cut = [start for start in starts if not _points_back(start)]
    if _KANA.search(document.text):
        cut = [" ".join(runs[:3]) for text, _ in texts if len(runs := [*dict.fromkeys(_RUN.findall(text))]) > 1]
    if not (whole or cut):  # the shortest sentence, to begin with a whole one
        long = [text for text, _ in texts if _size(text) >= SHORTEST] or [title or plain(document.text)]
        start = min(stop or long, key=len)
        start = _beginning(start) or start
        cut = [start[:LONGEST_WIDE] if _is_wide(start) else " ".join(start.split()[: 2 * LONGEST])]
    unique = dict.fromkeys
    return list(unique(_beside(title, text) for text in whole)), list(unique(_beside(title, text) for text in cut))


def _is_whole(text: str) -> bool:
    last = text.split()[-1].casefold().rstrip("ـ")
    cut = not _is_wide(text) and (len(last) < 2 or last in _FUNCTION_WORDS)
    return balanced(text) and not text[0].islower() and not cut and not _DEBRIS.search(text)


def _beginning(text: str) -> str:
    """Return a sentence's beginning up to the first comma that leaves it at least a third as long as a query; or ""."""
    ends = [*(match.start() for match in _COMMA.finditer(text)), len(text)]
    long = [start for end in ends if 3 * _size(start := text[:end].strip(_END)) > _longest(text)]
    return next((start for start in long if _fits(start) and _is_whole(start)), "")


def _longest(text: str) -> int:
    return LONGEST_WIDE if _is_wide(text) else LONGEST


def _fits(text: str, times: float = 1) -> bool:
    return (SHORTEST_WIDE if _is_wide(text) else SHORTEST) <= _size(text) <= times * _longest(text)


def _names(title: str, text: str) -> bool:
    """Return True if a text holds a word of the title."""
    folded = title.casefold()
    parts = [folded[:3]] if _is_wide(text) else [part for part in folded.split() if len(part) > 3] or [folded]
    return bool(title) and any(part in text.casefold() for part in parts)


def _is_wide(text: str) -> bool:
    """Return True for a text of Chinese or Japanese, also with names in other scripts."""
    return 3 * len(WIDE.findall(text)) > len(text)


def _size(text: str) -> int:
    """Return the characters of Chinese and Japanese, the words of anything else."""
    return len(text) if _is_wide(text) else len(text.split())


def _points_back(sentence: str) -> bool:
    if _is_wide(sentence):
        return sentence.startswith(_POINTING_WIDE) or any(word in sentence for word in _REFERRING_WIDE)
    first, *others = sentence.casefold().split()
    connected = first in _POINTING or first.endswith((",", "،")) or first.partition("'")[0] in ("c", "qu")
    connected |= bool(_ADVERB.match(sentence))  # "De plus,", "Кроме того,"
    return connected or not _REFERRING.isdisjoint(word.strip(",،") for word in others)


def _beside(title: str, text: str) -> str:
    """Return the text behind the title, unless it names the title already or the title is long or in another script."""
    wide = _is_wide(text)
    longest = LONGEST_TITLE_WIDE if wide else LONGEST_TITLE
    topic = _TOPIC.search(text)  # a Korean sentence with its own
    if not title or topic or _names(title, text) or _size(title) > longest or main_script(title) != main_script(text):
        return text
    return f"{title}{'：' if wide else ': '}{text}"
