"""Plotly figures on a page: a name for screen readers, a caption that says what to see, export as SVG."""

from __future__ import annotations

import re
from typing import Any

import streamlit as st

_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtons": [["toImage"]],
}


def show(figure: Any, *, key: str, alt: str, caption: str = "") -> None:
    """Draw a figure of ``cdp.charts``. ``caption`` is our own text, in Markdown."""
    name = re.sub(r"\W+", "-", key).strip("-")
    st.plotly_chart(
        figure,
        key=key,
        alt=alt,
        config={**_CONFIG, "toImageButtonOptions": {"format": "svg", "filename": name}},
    )
    if caption:
        st.caption(caption)
