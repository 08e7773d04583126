"""A figure on a page: caption, alt text for screen readers, SVG button for a paper."""

from __future__ import annotations

import re
from typing import Any

import streamlit as st

from cdp.charts import style

CAMERA = {"displaylogo": False, "displayModeBar": True, "modeBarButtons": [["toImage"]]}


def show(figure: Any, *, key: str, alt: str, caption: str = "") -> None:
    """Draw a figure of ``cdp.charts``; its camera saves it as PNG with one click. ``caption`` is our own text, in
    Markdown."""
    name = re.sub(r"\W+", "-", key).strip("-")
    png = {"format": "png", "filename": name, "scale": 2}
    st.plotly_chart(figure, key=key, alt=alt, config={**CAMERA, "toImageButtonOptions": png})
    where = "distribute" if caption else "right"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment=where, key=f"below_{key}"):
        if caption:
            st.caption(caption, width="stretch")
        _export(figure, key, alt)


def _export(figure: Any, key: str, alt: str) -> None:
    """The figure as it would stand in a paper, to save as SVG."""
    folded = st.popover(
        "Export", icon=":material/download:", type="tertiary", key=f"export_{key}", on_change="rerun",
        help="Save the figure for a paper (SVG on white).",
    )  # fmt: skip
    if not folded.open:
        return
    name = re.sub(r"\W+", "-", key).strip("-")
    with folded:
        st.caption("Click the camera in the upper right corner to save the figure.")
        saved = {"toImageButtonOptions": {"format": "svg", "filename": name}}
        st.plotly_chart(
            style.paper(figure), key=f"export_figure_{key}", alt=alt, theme=None, width="content",
            config={**CAMERA, **saved},
        )  # fmt: skip
