"""A user's text shown as text, and one format for each kind of number on screen.

Streamlit reads Markdown, LaTeX, colour directives, icons and emoji names in labels, captions and messages. What a user
wrote goes through ``md`` before it gets there; where possible it goes to ``st.text``, ``st.code`` or a table instead,
which read nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cdp.services.job_words import duration as duration
from cdp.services.job_words import size as size
from cdp.services.job_words import time_left as time_left

JOINER = "\u2060"
"""WORD JOINER: no width, no break. It keeps apart what Streamlit replaces after Markdown has been read."""

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$&:=^\"'])")
_REPLACED_LATER = re.compile(r":(?=[\w/+\-])|(?<=[<~>\-])(?=[\-=>])|(?<=@)(?=\w)|(?<=\bwww)(?=\.)")


def md(text: object, limit: int | None = None) -> str:
    """``text`` for a place that reads Markdown, so that every character shows as it is; one line, cut at ``limit``."""
    line = " ".join(str(text).split())
    if limit is not None:
        line = cut(line, limit)
    apart = _REPLACED_LATER.sub(lambda match: match.group() + JOINER, line)
    return _PUNCTUATION.sub(r"\\\1", apart)


def cut(text: str, limit: int) -> str:
    """At most ``limit`` characters, the last one an ellipsis where something is missing."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def number(value: float, digits: int = 0) -> str:
    """``12,345`` or, with digits, ``3.14``."""
    return f"{value:,.{digits}f}"


def count(n: int, singular: str, plural: str = "") -> str:
    """``1 document``, ``12,345 documents``."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def points(value: float) -> str:
    """A difference in NDCG@10 points, always with its sign: ``+1.20``, ``−0.35``."""
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")


def between(low: float | None, high: float | None) -> str:
    """An interval of differences in points: ``+1.20 to +6.40``, a dash without one."""
    return "–" if low is None or high is None else f"{points(low)} to {points(high)}"


def p_value(p: float) -> str:
    """``0.032``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def moment(stamp: str | None, *, at: datetime | None = None) -> str:
    """A stored time as people say it: ``just now``, ``5 min ago``, ``3 h ago``, else the date and time (UTC)."""
    if not stamp:
        return ""
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    past = ((at or datetime.now(UTC)) - then).total_seconds()
    if 0 <= past < 45:
        return "just now"
    if 0 <= past < 3600:
        return f"{max(1, round(past / 60))} min ago"
    if 0 <= past < 24 * 3600:
        return f"{round(past / 3600)} h ago"
    return then.astimezone(UTC).strftime("%d %b %Y, %H:%M UTC")


WRITTEN = {
    "gpu": "GPU",
    "gpus": "GPUs",
    "lora": "LoRA",
    "ri": "RI",
    "kappa": "κ",
    "eval": "evaluation",
}
"""Words of settings that are written otherwise than they are spelt."""


LABELS = {
    "per_doc": "Queries per document",
    "max_documents": "Maximum documents",
    "dev": "Dev benchmark",
    "by": "Round-trip rank by",
    "round_trip_rank": "Round-trip rank at most",
    "cross_encoder": "Cross-encoder",
    "at_least": "Cross-encoder score at least",
    "usable": "Leave out unusable queries",
}
"""Settings whose name says too little."""


def label_of(field: str) -> str:
    """A setting's name as a label: ``learning_rate`` → ``Learning rate``, ``lora_rank`` → ``LoRA rank``."""
    if field in LABELS:
        return LABELS[field]
    words = " ".join(WRITTEN.get(word, word) for word in field.split("_"))
    return words if words.startswith("κ") else words[:1].upper() + words[1:]
