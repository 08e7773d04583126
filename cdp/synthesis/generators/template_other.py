"""Queries for documents that are not English: the document's own phrases and shortened sentences, no English words."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise

from cdp.records import Document
from cdp.synthesis.generators.phrases import sentences

_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")
_WIDE_RUN = re.compile(r"[\u4e00-\u9fff々]{2,8}|[\u30a0-\u30ffー]{3,12}|[A-Za-z0-9]{2,}")
_CLAUSE_BREAK = re.compile(r"[、，,；;：:（）()「」『』《》“”\"—–]")
LONGEST_STATEMENT = 14
"""Words."""


def diverse(document: Document, rng: random.Random) -> list[str]:
    """By turns a statement and keywords of each sentence, sentence after sentence, then what is left of each."""
    per_sentence = [_from_sentence(sentence, document) for sentence in sentences(document.text) or [document.content]]
    depth = max((len(queries) for queries in per_sentence), default=0)
    queries: list[str] = []
    for turn in range(depth):
        for index, options in enumerate(per_sentence):
            place = (turn + index) % 2 if turn < 2 and len(options) > 1 else turn
            if place < len(options):
                queries.append(options[place])
    return queries


def _from_sentence(sentence: str, document: Document) -> list[str]:
    """A statement, then keyword queries, from one sentence."""
    title = document.title.replace("_", " ").strip()
    keywords = _keywords(sentence)
    parts = [part.strip() for part in _CLAUSE_BREAK.split(sentence.rstrip("。！？.!?؟۔।")) if part.strip()]
    options = [_clip(sentence)]
    if keywords:
        options.append(" ".join(([title] if title and title not in keywords[0] else []) + keywords[:2]))
        options.extend(" ".join(pair) for pair in pairwise(keywords[1:]))
    options.extend(_clip(part) for part in parts if len(part) > 6)
    return options


def paraphrases(document: Document, rng: random.Random) -> list[str]:
    """The key phrases of title and first sentence in different orders: the same need in other words' order."""
    first = (sentences(document.text) or [document.content])[0]
    title = document.title.replace("_", " ").strip()
    keywords = _keywords(f"{title} {first}")[:5]
    queries = [title, _clip(first)] if title else [_clip(first)]
    for size in range(len(keywords), 0, -1):
        for start in range(len(keywords)):
            turned = keywords[start:] + keywords[:start]
            queries.append(" ".join(turned[:size]))
            queries.append(" ".join(reversed(turned[:size])))
    return [query for query in queries if query]


def _keywords(text: str) -> list[str]:
    """The most telling words, best first: frequent ones, then long ones; runs of one script where nothing is spaced."""
    found = _WIDE_RUN.findall(text) if _WIDE.search(text) else re.findall(r"[^\W_]{4,}", text)
    counts = Counter(word for word in found if not word.isdigit())
    order = {word: position for position, word in reversed(list(enumerate(found)))}
    return sorted(counts, key=lambda word: (-counts[word], -min(len(word), 8), order[word]))


def _clip(text: str) -> str:
    """The start of a sentence, short enough for a query."""
    text = text.strip().rstrip("。！？.!?؟۔।、，,")
    if _WIDE.search(text):
        if len(text) <= 36:
            return text
        breaks = [match.start() for match in _CLAUSE_BREAK.finditer(text, 12, 36)]
        return text[: breaks[-1] if breaks else 30]
    return " ".join(text.split()[:LONGEST_STATEMENT]).rstrip(",;:")
