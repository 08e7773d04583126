"""Which format a query has, told by its first words and its punctuation: a hint for a reader. Small and pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

FORMATS = ("what", "how", "why", "when/if", "which/verify", "comparison", "keyword", "statement", "other question")
"""The eight formats that the diverse prompt names, and questions that are none of them."""

LONGEST_KEYWORDS = 5

_WORDS: tuple[tuple[str, str], ...] = (
    (
        "comparison",
        r".*\b(?:compared? (?:to|with)|versus|vs\.?|differs? from|difference between|differ|unlike|rather than"
        r"|différence entre|unterschied zwischen|diferencia entre|отлич\w+)\b|.*(?:区别|不同|比较|違い|차이)",
    ),
    ("why", r"(?:for what reason|why|pourquoi|warum|weshalb|por qué|почему|зачем|لماذا)\b|.*(?:为什么|为何|なぜ|왜)"),
    ("how", r"(?:how|comment|wie|cómo|как|كيف)\b|.*(?:怎么|怎样|如何|どのよう|どうやって|어떻게)"),
    (
        "when/if",
        r"(?:when|if|in which case|quand|si|wann|wenn|falls|cuándo|когда|если|متى)\b|.*(?:什么时候|何时|いつ|언제)",
    ),
    (
        "which/verify",
        r"(?:which|is|are|was|were|does|do|did|can|could|has|have|will|would|should|quel(?:le)?s?|welche[rsnm]?|est-ce"
        r"|ist|sind|cuál(?:es)?|какой|какая|какие|هل|أي)\b|.*(?:哪个|哪些|吗[？?]?$|どの|ですか[？?]?$|어느)",
    ),
    (
        "what",
        r"(?:at what|in what|on what|of what|what|who|whom|whose|where|que|quoi|qui|où|was|wer|wo|qué|quién|dónde|что"
        r"|кто|где|ما|ماذا|من|أين)\b|.*(?:什么|谁|哪里|何|誰|どこ|무엇|누구|어디)",
    ),
)
_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _WORDS)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|can|could|may|must|will|would|does|do|did|est|sont|ist|sind|es|son|\w+(?:ed|es))\b",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u2e80-\u9fff\u3040-\u30ff]")


def query_format(query: str) -> str:
    """One of ``FORMATS``. A question word counts only where a question stands: in front, or before a question mark."""
    text = query.strip().lstrip("¿¡\"'“‘«(")
    is_question = text.rstrip("\"'”’») ").endswith(("?", "？", "؟"))
    first = next((name for name, pattern in _PATTERNS if pattern.match(text)), "")
    n_words = len(text) // 2 if _WIDE.search(text) else len(text.split())
    if is_question:
        return first or "other question"
    if first == "comparison" or (first in ("what", "how", "why", "when/if") and not _WIDE.search(text)):
        return first
    if n_words <= LONGEST_KEYWORDS and not (n_words > 2 and _VERB.search(text)):
        return "keyword"
    return first if first and _WIDE.search(text) else "statement"


def format_mix(queries: Sequence[str]) -> dict[str, int]:
    """How many queries have each format, in the order of ``FORMATS``, without those that none has."""
    formats = [query_format(query) for query in queries]
    return {name: formats.count(name) for name in FORMATS if name in formats}
