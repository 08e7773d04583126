"""A figure on a page: caption, alt text for screen readers, SVG button for a paper."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from cdp.charts import style


def show(figure: Any, *, key: str, alt: str, caption: str = "") -> None:
    """Draw a figure of ``cdp.charts`` with the ways to save it. ``caption`` is our own text, in Markdown."""
    st.plotly_chart(figure, key=key, alt=alt, config={"displaylogo": False, "displayModeBar": False})
    where = "distribute" if caption else "right"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment=where, key=f"below_{key}"):
        if caption:
            st.caption(caption, width="stretch")
        _saver()(key=f"save_{key}", data={"key": key}, width="content")
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
        buttons = {"displayModeBar": True, "modeBarButtons": [["toImage"]]}
        saved = {"toImageButtonOptions": {"format": "svg", "filename": name}}
        st.plotly_chart(
            style.paper(figure), key=f"export_figure_{key}", alt=alt, theme=None, width="content",
            config={"displaylogo": False, **buttons, **saved},
        )  # fmt: skip


@cache
def _saver() -> Any:
    """The two buttons that save a figure as it is on screen, as SVG or PNG, registered once."""
    return st.components.v2.component(
        "save_figure",
        html='<button data-format="svg">SVG</button> <button data-format="png">PNG</button>',
        css="button { font: inherit; color: inherit; background: none; border: 0; padding: 0.4rem; cursor: pointer; }",
        js=(Path(__file__).parent / "assets" / "save.js").read_text(encoding="utf-8"),
    )
