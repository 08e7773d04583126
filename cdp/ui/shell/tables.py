"""Text, numbers and tables on screen: one format for each kind, and a user's text shown as text.

Streamlit reads Markdown, LaTeX, colour directives, icons and emoji names in labels, captions and messages. What a user
wrote goes through ``md`` before it gets there; where possible it goes to ``st.text``, ``st.code`` or a table instead,
which read nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from cdp.base.text import counted as count
from cdp.base.text import duration as duration
from cdp.base.text import interval as interval
from cdp.base.text import p_value as p_value
from cdp.base.text import signed as points
from cdp.base.text import size as size
from cdp.base.text import time_left as time_left

__all__ = ["count", "points"]

# WORD JOINER: no width, no break. It keeps apart what Streamlit replaces after Markdown has been read.
JOINER = "\u2060"

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


def number(value: float) -> str:
    """``12,345``."""
    return f"{value:,.0f}"


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


# Words of settings that are written otherwise than they are spelt.
WRITTEN = {"gpu": "GPU", "gpus": "GPUs", "lora": "LoRA", "ri": "RI", "kappa": "κ", "eval": "evaluation", "bm25": "BM25"}


# Settings whose name says too little.
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


def label_of(field: str) -> str:
    """A setting's name as a label: ``learning_rate`` → ``Learning rate``, ``lora_rank`` → ``LoRA rank``."""
    if field in LABELS:
        return LABELS[field]
    words = " ".join(WRITTEN.get(word, word) for word in field.split("_"))
    return words if words.startswith("κ") else words[:1].upper() + words[1:]


# What a cell without a value shows.
MISSING = "–"


def show(
    columns: Mapping[str, Sequence[Any]],
    *,
    alt: str,
    config: Mapping[str, Any] | None = None,
    key: str | None = None,
    height: int | None = None,
) -> None:
    """A table of columns; ``config`` holds Streamlit's column settings where a column needs any."""
    st.dataframe(
        dict(columns),
        hide_index=True,
        placeholder=MISSING,
        column_config=dict(config or {}),
        key=key,
        alt=alt,
        height="auto" if height is None else height,
    )


def pick_row(
    columns: Mapping[str, Sequence[Any]],
    *,
    alt: str,
    key: str,
    config: Mapping[str, Any] | None = None,
    height: int | None = None,
) -> int | None:
    """A table of which one row can be chosen; its position, or None."""
    event = st.dataframe(
        dict(columns),
        hide_index=True,
        placeholder=MISSING,
        column_config=dict(config or {}),
        key=key,
        alt=alt,
        on_select="rerun",
        selection_mode="single-row",
        height="auto" if height is None else height,
    )
    rows = event["selection"]["rows"]
    n = len(next(iter(columns.values()), ()))
    return rows[0] if rows and rows[0] < n else None


def figures(*shown: tuple[str, Any] | tuple[str, Any, str | None] | None) -> None:
    """A row of figures, each (label, value) or (label, value, help); None is left out."""
    with st.container(horizontal=True):
        for label, value, *about in filter(None, shown):
            st.metric(label, value, help=about[0] if about else None, width="content")


def pager(n: int, per_page: int, key: str) -> int:
    """Buttons to leaf through ``n`` things; the offset of the first one shown. Nothing is drawn for a single page."""
    pages = max(1, math.ceil(n / per_page))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    with st.container(horizontal=True, vertical_alignment="center"):
        page = int(st.pagination(pages, key=key)) if pages > 1 else 1
        first = (page - 1) * per_page
        if n:
            st.caption(f"{first + 1:,} to {min(n, first + per_page):,} of {count(n, 'document')}", width="content")
    return first
