"""Plotly figures on a page: a name for screen readers, a caption that says what to see, export for a paper."""

from __future__ import annotations

import re
from typing import Any

import streamlit as st

from cdp.charts import style
from cdp.ui.shell import forms

_ON_PAGE: dict[str, Any] = {"displaylogo": False, "responsive": True, "displayModeBar": False}
_IN_EXPORT: dict[str, Any] = {"displaylogo": False, "displayModeBar": True, "modeBarButtons": [["toImage"]]}


def show(figure: Any, *, key: str, alt: str, caption: str = "") -> None:
    """Draw a figure of ``cdp.charts``. ``caption`` is our own text, in Markdown."""
    st.plotly_chart(figure, key=key, alt=alt, config=_ON_PAGE)
    where = "distribute" if caption else "right"
    below = st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment=where, gap="small", key=f"below_{key}"
    )
    with below:
        if caption:
            st.caption(caption, width="stretch")
        _export(figure, key, alt)


def _export(figure: Any, key: str, alt: str) -> None:
    """The figure as it would stand in a paper, to save as SVG or PNG, and the numbers in it."""
    folded = st.popover(
        "Export", icon=":material/download:", type="tertiary", key=f"export_{key}", on_change="rerun",
        help="Save the figure for a paper (SVG or PNG on white), or download its data.",
    )  # fmt: skip
    if not folded.open:
        return
    name = re.sub(r"\W+", "-", key).strip("-")
    with folded:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            form = forms.segments("Format", ["SVG", "PNG"], key=f"export_format_{key}", persistent=False)
            width = forms.segments("Width", list(style.WIDTHS), key=f"export_width_{key}", persistent=False)
            forms.download("Download data (CSV)", style.to_csv(figure), f"{name}.csv", key=f"export_data_{key}")
        st.caption("Preview of the saved figure. Click the camera in its upper right corner to save it.")
        drawn = style.paper(figure, str(width))
        st.plotly_chart(
            drawn,
            key=f"export_figure_{key}_{width}_{form}",
            alt=alt,
            theme=None,
            width="content",
            config={
                **_IN_EXPORT,
                "toImageButtonOptions": {
                    "format": str(form).lower(),
                    "filename": name,
                    "width": drawn.layout.width,
                    "height": drawn.layout.height,
                    "scale": 1 if form == "SVG" else style.PNG_SCALE,
                },
            },
        )
