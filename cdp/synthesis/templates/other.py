"""Queries by rule for other languages, without grammar: whole sentences, tags, quotations; none that points back.

A sentence that begins with the title is certain: it stands alone, and a tag behind it makes it a question. Others are
looked for by their words, behind the title, but none that is damaged or goes on from another.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import chain, zip_longest

from cdp.base.records import Document
from cdp.base.workspace import shipped_table
from cdp.complexity.guessing import FUNCTION_WORDS, guess_language, main_script
from cdp.synthesis.sentences import WIDE, balanced, plain, plain_title, read_sentences

_DATA = shipped_table("words/pointing")
# First words of a sentence that refers to the one before, and words that do wherever they stand; in scripts without
# spaces, characters.
_POINTING, _REFERRING = frozenset(_DATA["pointing"].split()), frozenset(_DATA["referring"].split())
_POINTING_WIDE, _REFERRING_WIDE = tuple(_DATA["pointing_wide"].split()), tuple(_DATA["referring_wide"].split())
_PATTERNS = {name: re.compile("|".join(parts)) for name, parts in _DATA["patterns"].items()}
_FUNCTION_WORDS = {word for group in FUNCTION_WORDS.values() for words in group.values() for word in words}
_POSSESSIVE = frozenset(_DATA["possessive"].split())
_END = " 。！？.!?؟۔।、，,،;:；：—–-…\u200e\u200f"
_HANGUL, _TOPIC = re.compile(r"[\uac00-\ud7af]"), re.compile(r"[\uac00-\ud7af][은는] ")
_OPEN_QUOTES = frozenset("「『“«")
_KANA = re.compile(r"[\u3040-\u30fa]")
_FULL_STOP = re.compile(r"[.。۔।][\"”»’」』）)]*$")
# Characters of Chinese and Japanese, words of other languages in the longest query; shares of it: the shortest
# query, the longest quotation, the longest title beside another text; how many sentences are quoted.
LONGEST_WIDE, LONGEST = 64, 24
SHORTEST, LONGEST_QUOTED, LONGEST_TITLE, MAX_QUOTED = 0.18, 1.3, 0.4, 3


def diverse(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield the sentences, every second as a question, then other wordings of each."""
    wordings = [texts[at % 2 :] + texts[: at % 2] for at, texts in enumerate(_wordings(document))]
    yield from chain.from_iterable(zip_longest(*wordings, fillvalue=""))


def paraphrases(document: Document, rng: random.Random) -> Iterator[str]:
    """Yield one sentence as it is and as a question, then the next."""
    yield from chain.from_iterable(_wordings(document))


def _wordings(document: Document) -> list[list[str]]:
    """Return each sentence in its wordings: the certain ones first, as they are and as questions, others as quotations.
    Where none can be asked for, the title or the shortest sentence."""
    given, language = plain_title(document), guess_language(document.content)
    title = given
    if main_script(given) != main_script(document.text):
        title = ""

    raw = _raw_sentences(document, title)

    whole = [text for text, sentence in raw if _FULL_STOP.search(sentence) and _is_whole(text)]
    clear = _clear(whole)
    certain = [text for text in clear if _length(text) <= 1 and _begins_with(title, text)]
    certain.sort(key=_length)
    quoted = _to_quote([text for text in clear if text not in certain])

    if not certain and (not quoted or (given and language not in _DATA["quotes"])):
        texts = [given] if given else whole or [text for text, _ in raw] or [plain(document.text)]
        return [[min(texts, key=len)[: 2 * LONGEST_WIDE]]]

    wordings = []
    for text in certain:
        tags = _DATA["tags"].get(language, [])
        wordings.append([text, *(f"{text}{tag}" for tag in tags)])
    for text in quoted[: max(1, MAX_QUOTED - len(certain))]:
        quotes = _DATA["quotes"].get(language, ["{s}"])
        wordings.append([_beside(title, text, quote.format(s=text)) for quote in quotes])

    return wordings


def _raw_sentences(document: Document, title: str) -> list[tuple[str, str]]:
    """Return (text without marks, sentence) of each sentence in the script of the document."""
    wide = _is_wide(document.text)
    raw = []
    for sentence in read_sentences(document):
        text = plain(sentence).strip(_END)
        if text and _is_wide(text) == wide:  # others are references
            raw.append((text, sentence))

    if _HANGUL.search(title) and len(raw) > 1:
        # Korean collections put a definition without a verb in front of a sentence.
        return [(text, sentence) for text, sentence in raw if text.startswith(title[:2])]

    return raw


def _clear(whole: list[str]) -> list[str]:
    """Return the sentences that stand alone; where all refer to something, the longer ones."""
    alone = [text for text in whole if SHORTEST <= _length(text) <= LONGEST_QUOTED and not _points_back(text)]
    return [text for text in alone if not _refers(text)] or [text for text in alone if _length(text) > 0.5]


def _to_quote(texts: list[str]) -> list[str]:
    """Return the sentences to look for by their words, those of a query's length first."""
    texts = sorted(texts, key=lambda text: abs(_length(text) - 0.45))
    texts = [text for text in texts if _OPEN_QUOTES.isdisjoint(text)] or texts
    # A number or foreign letters tell a passage from others.
    return [text for text in texts if _PATTERNS["telling"].search(text)] or texts[:1]


def _is_whole(text: str) -> bool:
    last = text.split()[-1].casefold().rstrip("ـ")
    subject = not _KANA.search(text) or "は" in text[:30]  # of Japanese; without one it is that of the sentence before
    cut = not _is_wide(text) and (len(last) < 2 or last in _FUNCTION_WORDS)
    return balanced(text) and subject and not text[0].islower() and not cut and not _PATTERNS["debris"].search(text)


def _begins_with(title: str, text: str) -> bool:
    """Return True if a text begins with the title, or its first words."""
    first = " ".join(title.split()[:2])
    if _is_wide(text):
        first = title[:3]

    return bool(first) and text.casefold().startswith(first.casefold())


def _names(title: str, text: str) -> bool:
    """Return True if a text holds a word of the title."""
    if not title:
        return False

    folded = title.casefold()
    parts = [part for part in folded.split() if len(part) > 3] or [folded]
    if _is_wide(text):
        parts = [folded[:3]]

    return any(part in text.casefold() for part in parts)


def _is_wide(text: str) -> bool:
    """Return True for a text of Chinese or Japanese, also with names in other scripts."""
    return 3 * len(WIDE.findall(text)) > len(text)


def _length(text: str) -> float:
    """Return a text's length as a share of the longest query's."""
    if _is_wide(text):
        return len(text) / LONGEST_WIDE
    return len(text.split()) / LONGEST


def _points_back(sentence: str) -> bool:
    """Return True if a sentence begins like the continuation of another."""
    if _is_wide(sentence):
        return _PATTERNS["not_he"].sub("", sentence).startswith(_POINTING_WIDE)
    first, *others = sentence.casefold().split()
    connected = first in _POINTING or first.endswith((",", "،"))
    connected |= not _POSSESSIVE.isdisjoint(others[:4])
    connected |= bool(_PATTERNS["adverb"].match(sentence)) or first.startswith("و")  # "and" in Arabic
    # "its inhabitants"
    return connected or any(len(word) > 4 and word.endswith(("ها", "هم", "هما")) for word in others[:5])


def _refers(sentence: str) -> bool:
    """Return True if a sentence holds a word for something in another."""
    if _is_wide(sentence):
        return any(word in _PATTERNS["not_he"].sub("", sentence) for word in _REFERRING_WIDE)
    return any(word.strip(",،") in _REFERRING for word in sentence.casefold().split())


def _beside(title: str, text: str, asked: str) -> str:
    """Return the query for a text, behind the title unless the text names the title already or the title is long."""
    wide = _is_wide(text)
    topic = _TOPIC.search(text)  # a Korean sentence with its own
    if not title or topic or _length(title) > LONGEST_TITLE:
        return asked
    if wide:
        return asked if title in text else f"{title}：{asked}"

    return asked if _names(title, text) else f"{title}: {asked}"
