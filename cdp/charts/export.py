"""A chart for a paper: dark on white whatever the page's theme, at the size of a column, and the numbers behind it."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator, Mapping
from typing import Any

import plotly.graph_objects as go

from cdp.base.markup import spreadsheet_row

WIDTHS: Mapping[str, int] = {"one column": 340, "two columns": 700}
"""CSS pixels, 96 to the inch: 90 mm and 185 mm."""

PNG_SCALE = 4
"""Dots per CSS pixel of a PNG: 384 to the inch."""

COLUMNS = ("series", "x", "y", "low", "high", "axis")
INK, GRID = "#111111", "#d9d9d9"


def paper(figure: go.Figure, width: str = "two columns") -> go.Figure:
    """The same figure on white, in black, with an axis line and small type, ``WIDTHS[width]`` pixels wide."""
    copy = go.Figure(figure.to_dict())
    height = copy.layout.height or 320
    copy.update_layout(
        template="none",
        width=WIDTHS[width],
        height=min(height, 300) if width == "one column" else height,
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        font={"size": 11, "color": INK, "family": "Helvetica, Arial, sans-serif"},
        margin={"l": 48, "r": 12, "t": 36 if copy.layout.showlegend else 14, "b": 44},
    )
    line = {"showline": True, "linecolor": INK, "linewidth": 1, "ticks": "outside", "tickcolor": INK}
    copy.update_xaxes(automargin=True, gridcolor=GRID, color=INK, **line)
    copy.update_yaxes(automargin=True, gridcolor=GRID, color=INK, **line)
    return copy


def to_csv(figure: go.Figure) -> str:
    """The points of every trace: series, x, y, the bounds of an interval, and along which axis these lie."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for trace in figure.data:
        writer.writerows(map(spreadsheet_row, _rows(trace)))
    return out.getvalue()


def _rows(trace: Any) -> Iterator[tuple[Any, ...]]:
    name = html.unescape(str(trace.name or ""))
    xs, ys = _list(trace.x), _list(trace.y)
    for i in range(max(len(xs), len(ys))):
        x, y = _at(xs, i), _at(ys, i)
        for axis, value, error in (("x", x, trace["error_x"]), ("y", y, trace["error_y"])):
            if error is not None and error.array is not None:
                up = error.array[i]
                down = up if error.arrayminus is None else error.arrayminus[i]
                yield name, x, y, value - down, value + up, axis
                break
        else:
            yield name, x, y, "", "", ""


def _list(values: Any) -> list[Any]:
    return [] if values is None else list(values)


def _at(values: list[Any], i: int) -> Any:
    value = values[i] if i < len(values) else ""
    return html.unescape(value) if isinstance(value, str) else value
