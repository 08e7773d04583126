"""From a log of people's queries to a stratified sample that stands for it: duplicates, personal data flagged."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from cdp.base.workspace import shuffle_key
from cdp.complexity.content_words import count_content_words

LONGEST = 2000

_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w")
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d[\d ().\-/]{5,24}\d(?!\w)")


@dataclass(frozen=True)
class QueryLog:
    """The distinct queries of a log in order of their first line, and what was left out or should be looked at.

    ``personal`` maps queries to a hint of personal data: ``e-mail`` or ``phone or card number``.
    """

    queries: tuple[str, ...]
    lines: int
    repeated: int
    unusable: int
    personal: dict[str, str]

    @property
    def sentence(self) -> str:
        """``1,204 lines: 1,021 different queries, 183 repeated, 2 with hints of personal data.``"""
        parts = [f"{len(self.queries):,} different queries"]
        others = {"repeated": self.repeated, "empty or too long": self.unusable,
                  "with hints of personal data": len(self.personal)}  # fmt: skip
        for what, n in others.items():
            if n:
                parts.append(f"{n:,} {what}")

        return f"{self.lines:,} lines: {', '.join(parts)}."


def distinct(texts: Iterable[str]) -> QueryLog:
    """Return the distinct queries of a log. Those that differ in case, spacing or final marks are the same."""
    first: dict[str, str] = {}
    lines = unusable = 0
    for text in texts:
        lines += 1
        clean = " ".join(text.split())
        key = _key(clean)
        if not key or len(clean) > LONGEST:
            unusable += 1
            continue
        first.setdefault(key, clean)
    queries = tuple(first.values())
    personal = {query: hint for query in queries if (hint := personal_data(query))}
    return QueryLog(queries, lines, lines - unusable - len(queries), unusable, personal)


def _key(query: str) -> str:
    return unicodedata.normalize("NFKC", query).casefold().strip(" ?!.,;:¿¡？。！")


def personal_data(query: str) -> str:
    """Return the kind of personal data that a query seems to hold; empty for none."""
    if _MAIL.search(query):
        return "e-mail"
    for match in _DIGITS.finditer(query):
        # From nine digits on: two years and a date have eight.
        digits = sum(map(str.isdecimal, match[0]))
        grouped = match[0][0] in "+0(" or re.search(r"[ ()/-]|\..*\.", match[0])
        if 9 <= digits <= 19 and (grouped or len(match[0]) == digits >= 13):
            return "phone or card number"
    return ""


def sample(queries: Sequence[str], n: int, *, language: str = "en", seed: int = 0) -> list[str]:
    """Draw ``n`` queries that stand for all: in order of CW and length, one out of each n-th, in the order given.

    Every distinct query counts once. This is systematic sampling, so each range of CW and length keeps its share.
    """
    if n >= len(queries):
        return list(queries)

    cw = count_content_words(queries, language)
    drawn = list(map(partial(shuffle_key, seed), queries))
    order = sorted(range(len(queries)), key=lambda i: (cw[i], len(queries[i].split()), drawn[i]))
    start = int.from_bytes(shuffle_key(f"start {seed}")[:4]) / 2**32
    chosen = {order[int((i + start) * len(queries) / n)] for i in range(n)}
    return [queries[i] for i in sorted(chosen)]
