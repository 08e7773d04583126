"""Texts as strangers bring them, for property tests: every script, broken marks, half characters, odd repetitions.

``texts()`` draws one such text, ``LONG`` holds patterns that grow to any length, and ``examples`` says how many are
drawn: few and always the same in ``make test``, many and new ones each time where CDP_SOAK is set (``make soak``).
``result_or_error`` is the promise they check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from cdp.base.errors import CdpError

SOAK = bool(os.environ.get("CDP_SOAK"))

SCRIPTS = (
    "The castle, built in 1412 (by Ann), is a museum. However, it was closed because of a storm.",
    "Perhaps the well-known results have shown that cells were found in 39/526 animals.",
    "Озеро содержит пятую часть пресной воды планеты.",
    "تم بناء القلعة في عام 1412، وهي متحف الآن؟",
    "המצודה נבנתה בשנת 1412 והיא מוזיאון.",
    "长城是中国古代的军事防御工程，“修筑”于西周。",
    "東大寺は奈良県にある「寺院」である。",
    "완전히 자란 식물은 높이가 4.9피트에 이를 수 있습니다.",
    "दुर्ग १४१२ में बनाया गया था।",
    "ปราสาทสร้างขึ้นในปี 1412",
    "Το κάστρο χτίστηκε το 1412.",
    "ბევრი ქართული სიტყვა.",
    "የአማርኛ ጽሑፍ።",
    "𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𐎀𐎁",
    "L'école, dit-on, est « fermée » ; pourquoi ?",
)

ODD = (
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "\0",
    "\ud800",
    "\udfff",
    "\u200b",
    "\u200f",
    "\u202e",
    "\ufeff",
    "\u0301",
    "\x85",
    "\u2028",
    ", ",
    ", and ",
    '" ',
    "“",
    "”",
    "‘",
    "’",
    "«",
    "»",
    "「",
    "」",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{x}",
    "{0}",
    "\\",
    "`",
    "*",
    ".",
    "..",
    "…",
    "?",
    "!",
    "。",
    "，",
    "؟",
    "।",
    "-",
    "–",
    "—",
    ";",
    ":",
    "/",
    "_",
    "#",
    "|",
    "<",
    "</document>",
    "&amp;",
    "=",
    "🙂",
    "👩‍👩‍👧",
    "🇫🇷",
    "ǅ",
    "ß",
    "İ",
    "ﬁ",
    "a",
    "I",
    "It",
    "is",
    "the",
    "has",
    "Dr. A. ",
    "e.g.",
    "In 1999, ",
    "its",
    "because",
    "1.",
    "1",
    "Is it true that ",
    "Why does ",
    "and",
    "which",
    "made",
    "'s ",
)

# Patterns to be repeated: each has made something somewhere take time that grew with the square of the length.
LONG = {
    "one letter": "a",
    "words": "word ",
    "sentences": "The king built a wall because he was afraid. ",
    "abbreviations": "Dr. A. ",
    "dots": ".",
    "commas": ", ",
    "marks": "!?",
    "brackets": "(",
    "closing brackets": ")",
    "nested": '("[“',
    "quotes": '"',
    "apostrophes": "'s ",
    "spaces": " ",
    "lines": "\n",
    "dashes": "-",
    "digits": "1",
    "decimals": "1.",
    "Chinese": "长",
    "Chinese sentences": "长城。",
    "Japanese": "東大寺は、",
    "katakana": "カ",
    "Korean": "완전히 ",
    "Arabic": "قلعة ",
    "emoji": "🙂",
    "zero width": "\u200b",
    "marks without letters": "\u0301",
    "surrogates": "\ud800",
    "NUL": "\0",
    "titles": "John Smith ",
    "lists": "1. what? ",
    "labels": "What: ",
    "bold": "**",
    "JSON": "[",
    "escapes": '\\"',
    "objects": '{"a":',
    "thoughts": "<think ",
    "tags": "<document ",
    "and": "the cat and ",
    "commas without spaces": "a,",
}


def texts(most: int = 12) -> st.SearchStrategy[str]:
    """A text of up to ``most`` pieces: whole sentences, odd marks, characters of any category (lone surrogates too)."""
    anything = st.text(st.characters(codec=None), max_size=8)
    piece = st.one_of(st.sampled_from(SCRIPTS), st.sampled_from(ODD), st.sampled_from(ODD), anything)
    joined = st.tuples(st.sampled_from(("", " ", " ", "\n", ". ")), st.lists(piece, max_size=most))
    repeated = st.tuples(st.sampled_from(tuple(LONG.values())), st.integers(1, 40)).map(lambda pair: pair[0] * pair[1])
    return st.one_of(
        joined.map(lambda pair: pair[0].join(pair[1])),
        joined.map(lambda pair: pair[0].join(pair[1])),
        repeated,
        anything,
    )


def examples(few: int, many: int = 10_000) -> settings:
    """How many texts a property is tried on: ``few``, the same ones each time; ``many`` new ones in a soak."""
    return settings(
        max_examples=many if SOAK else few,
        derandomize=not SOAK,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def result_or_error(call: Callable[[], Any]) -> Any:
    """What ``call`` gives, or None where it refuses with a CdpError. Any other exception goes through."""
    try:
        return call()
    except CdpError:
        return None


def cpu_seconds(call: Callable[[], Any]) -> float:
    """CPU seconds of this process in one call."""
    began = time.process_time()
    result_or_error(call)
    return time.process_time() - began


def is_linear(call: Callable[[str], Any], pattern: str, length: int = 4000, *, most: int = 32_000) -> bool:
    """Whether a text four times as long takes less than ten times the CPU: about 4 times where the work is linear, 16
    where it is quadratic. The length is raised to ``most`` until the shorter text takes 8 ms, so that what is measured
    is not the clock; below 5 ms even then, there is nothing to fear. One good try of three is enough."""

    def seconds(n: int) -> float:
        text = (pattern * (n // len(pattern) + 1))[:n]
        return cpu_seconds(lambda: call(text))

    short = seconds(length)
    while short < 0.008 and length < most:
        length *= 2
        short = seconds(length)
    return any(seconds(length * 4) < 10 * max(short, seconds(length) if attempt else 0, 0.005) for attempt in range(3))
