"""Tables, rows of figures and paging. Cells show text as it is; every table has a name for screen readers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.ui.shell.text import count

MISSING = "–"
"""What a cell without a value shows."""


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


def decimals(*columns: str, digits: int = 2) -> dict[str, Any]:
    """Column settings that show numbers with so many digits."""
    return {name: st.column_config.NumberColumn(format=f"%.{digits}f") for name in columns}


def figures(*shown: tuple[str, Any] | tuple[str, Any, str | None] | None) -> None:
    """A row of figures, each (label, value) or (label, value, help); None is left out."""
    with st.container(horizontal=True):
        for label, value, *about in filter(None, shown):
            st.metric(label, value, help=about[0] if about else None, width="content")


def pager(n: int, per_page: int, key: str, noun: str = "document") -> int:
    """Buttons to leaf through ``n`` things; the offset of the first one shown. Nothing is drawn for a single page."""
    pages = max(1, math.ceil(n / per_page))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    with st.container(horizontal=True, vertical_alignment="center"):
        page = int(st.pagination(pages, key=key)) if pages > 1 else 1
        first = (page - 1) * per_page
        if n:
            st.caption(f"{first + 1:,} to {min(n, first + per_page):,} of {count(n, noun)}", width="content")
    return first
