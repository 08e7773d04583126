"""One look for charts: colour of a method (safe for colour blindness), symbols, dashes, axes; the look for a paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import cycle
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdp.base.text import cut

# Okabe and Ito's colours, the yellow darkened so that it shows on white.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#5f6b7a")

METHOD_COLOURS = {
    "diverse": PALETTE[0],
    "paraphrase": PALETTE[1],
    "human": PALETTE[2],
    "supervised": PALETTE[2],
    "target": PALETTE[3],
    "pretrained": PALETTE[7],
}

# Colours that are no method's, the ones that show best as lines first.
FREE = (PALETTE[5], PALETTE[6], PALETTE[4])

GAIN, LOSS = PALETTE[0], PALETTE[5]
# A grey that reads on the light and on the dark background.
MUTED = "#8793a0"

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def by_method(methods: Mapping[str, str]) -> dict[str, str]:
    """A colour for each thing by the method that made it: ``methods[name]``, or "" where none did.

    The first of a method has the method's colour; every other has one of its own, first those that no method has.
    """
    chosen: dict[str, str] = {}
    others: list[str] = []
    for name, method in methods.items():
        colour = METHOD_COLOURS.get(method)
        if colour is None or colour in chosen.values():
            others.append(name)
        else:
            chosen[name] = colour

    free = [colour for colour in dict.fromkeys((*FREE, *PALETTE)) if colour not in chosen.values()]
    return chosen | dict(zip(others, cycle(free or PALETTE), strict=False))


def by_sign(difference: float) -> str:
    """The colour of a gain or a loss."""
    return GAIN if difference >= 0 else LOSS


def figure(*, x: str, y: str, height: int = 320, legend: bool = True) -> go.Figure:
    """An empty figure with titled axes, thin grid lines and the legend above the plot."""
    empty = go.Figure()
    top = 36 if legend else 16
    empty.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": top, "b": 8},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": None},
        showlegend=legend,
        bargap=0.06,
        hovermode="closest",
        font={"size": 13},
    )

    empty.update_xaxes(title=x, automargin=True, zeroline=False)
    empty.update_yaxes(title=y, automargin=True, zeroline=False)
    return empty


def bars(values: Iterable[tuple[float, float, float]]) -> dict[str, Any]:
    """Error bars of values with their intervals: (value, low, high) each."""
    value, low, high = np.array(list(values), dtype=float).reshape(-1, 3).T
    return {
        "type": "data", "symmetric": False, "array": high - value, "arrayminus": value - low, "thickness": 1.5,
    }  # fmt: skip


def plain(text: str, limit: int = 60) -> str:
    """A user's text for a chart: Plotly reads HTML tags in labels, so these are taken apart; long ones are cut."""
    return escape(cut(" ".join(text.split()), limit), quote=False)


# CSS pixels, 96 to the inch: 185 mm, two columns of a paper.
PAPER_WIDTH = 700

INK, GRID = "#111111", "#d9d9d9"


def paper(figure: go.Figure) -> go.Figure:
    """The same figure on white, in black, with an axis line and small type."""
    copy = go.Figure(figure.to_dict())
    copy.update_layout(
        template="none",
        width=PAPER_WIDTH,
        height=copy.layout.height or 320,
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        font={"size": 11, "color": INK, "family": "Helvetica, Arial, sans-serif"},
        margin={"l": 48, "r": 12, "t": copy.layout.margin.t if copy.layout.showlegend else 14, "b": 44},
    )

    line = {"showline": True, "linecolor": INK, "linewidth": 1, "ticks": "outside", "tickcolor": INK}
    for update in (copy.update_xaxes, copy.update_yaxes):
        update(automargin=True, gridcolor=GRID, color=INK, **line)

    return copy
