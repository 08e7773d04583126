"""Tables, cards, "5 min ago"; escaping people's text for Markdown.

Streamlit reads Markdown, LaTeX, colour directives, icons and emoji names in labels, captions and messages. What a user
wrote goes through ``md`` before it gets there; where possible it goes to ``st.text``, ``st.code`` or a table instead,
which read nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, Literal

import streamlit as st

from cdp.base.text import counted as count
from cdp.base.text import cut as cut
from cdp.base.text import duration as duration
from cdp.base.text import interval as interval
from cdp.base.text import label_of as label_of
from cdp.base.text import marked
from cdp.base.text import p_value as p_value
from cdp.base.text import signed as points
from cdp.base.text import size as size
from cdp.base.text import written as written

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


def md_marked(text: str, words: Sequence[str]) -> str:
    """``md`` of a text with these words in bold."""
    shown = ""
    for piece, matches in marked(" ".join(text.split()), words):
        before, after = " " * piece.startswith(" "), " " * (piece.endswith(" ") and not piece.isspace())
        text = md(piece)
        if matches:
            text = f"**{text}**"
        shown += before + text + after
    return shown


def html_marked(pieces: Iterable[tuple[str, bool]], shares: Mapping[str, float] | None = None) -> str:
    """Return pieces of ``marked`` as HTML in which every character shows as it is, each word marked by its share."""
    shares = shares or {}
    largest = max(shares.values(), default=0.0)
    shown = []
    for piece, matches in pieces:
        text = escape(piece)
        if matches:
            share = shares.get(piece.lower(), 0.0) / largest if largest > 0 else None
            style = "" if share is None else f" style='--share: {max(0.0, share):.2f}'"
            text = f"<mark{style}>{text}</mark>"
        shown.append(text)
    return "".join(shown)


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


# What a cell without a value shows.
MISSING = "–"


def show(
    columns: Mapping[str, Sequence[Any]],
    *,
    alt: str,
    digits: Mapping[str, int] | None = None,
    about: Mapping[str, str] | None = None,
    width: Mapping[str, int | Literal["small", "medium", "large"]] | None = None,
    config: Mapping[str, Any] | None = None,
    pinned: str = "",
    height: int | Literal["auto", "content"] = "auto",
    **options: Any,
) -> Any:
    """Draw a table; return what is chosen in it.

    ``digits`` (decimals), ``about`` (help in the head) and ``width`` are by column; ``config`` holds Streamlit's own
    column settings where these do not do.
    """
    digits, about, width = digits or {}, about or {}, width or {}
    settings: dict[str, Any] = {}
    for name in {*digits, *about, *width}:
        shared: dict[str, Any] = {"help": about.get(name), "width": width.get(name), "pinned": name == pinned or None}
        if name in digits:
            settings[name] = st.column_config.NumberColumn(format=f"%.{digits[name]}f", **shared)
        else:
            settings[name] = st.column_config.Column(**shared)

    return st.dataframe(
        dict(columns), hide_index=True, placeholder=MISSING, column_config={**settings, **(config or {})}, alt=alt,
        height=height, **options,
    )  # fmt: skip


def by_title(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of a table by their titles; every row names all of them."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        for title, cell in row.items():
            columns[title].append(cell)
    return dict(columns)


def filled(columns: Mapping[str, Sequence[Any]], *always: str) -> dict[str, Sequence[Any]]:
    """Return the columns that say something in some row, and those of ``always``."""
    return {title: cells for title, cells in columns.items() if title in always or set(cells) - {"", None, MISSING}}


def pick_row(columns: Mapping[str, Sequence[Any]], **options: Any) -> int | None:
    """Draw a table of which one row can be chosen; return its position, or None."""
    event = show(columns, on_select="rerun", selection_mode="single-row", **options)
    rows = event["selection"]["rows"]
    if not rows or rows[0] >= len(next(iter(columns.values()), ())):
        return None
    return rows[0]


def figures(*shown: tuple[str, Any] | tuple[str, Any, str | None] | None) -> None:
    """A row of figures, each (label, value) or (label, value, help); None is left out."""
    with st.container(horizontal=True):
        for label, value, *about in filter(None, shown):
            st.metric(label, value, help=next(iter(about), None), width="content")


def cards(*shown: tuple[str, Any] | tuple[str, Any, str | None]) -> None:
    """A row of framed figures of one height, each (label, value) or (label, value, help)."""
    with st.grid(len(shown), min_column_width=150):
        for label, value, *about in shown:
            st.metric(label, value, help=next(iter(about), None), border=True, height="stretch")
