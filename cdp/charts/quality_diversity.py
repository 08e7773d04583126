"""Quality against diversity, and a measure against the number of queries per document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from cdp.charts.style import SYMBOLS, colours, figure, plain


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """A query set with one value on each axis; ``low`` and ``high`` bound the value on y where known."""

    name: str
    method: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def trade_off(sets: Sequence[MeasuredSet], *, x: str, y: str) -> go.Figure:
    """One point per query set. The axis titles should say which end is better."""
    chart = figure(x=x, y=y, height=360)
    palette = colours(list(dict.fromkeys(s.method for s in sets)))
    for i, item in enumerate(sets):
        chart.add_scatter(
            x=[item.x],
            y=[item.y],
            mode="markers+text",
            text=[plain(item.name, 28)],
            textposition="top center",
            name=plain(item.method),
            showlegend=False,
            marker={"size": 13, "color": palette[item.method], "symbol": SYMBOLS[i % len(SYMBOLS)]},
            error_y=None
            if item.low is None or item.high is None
            else {
                "type": "data",
                "symmetric": False,
                "array": [item.high - item.y],
                "arrayminus": [item.y - item.low],
            },
            hovertemplate=f"{plain(item.name)}<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>",
        )
    chart.update_xaxes(range=[-0.03, 1.03])
    chart.update_yaxes(range=[-0.03, 1.08])
    return chart


def by_queries_per_document(curves: Mapping[str, Mapping[int, float]], *, measure: str) -> go.Figure:
    """A measure at each Q/Doc, nested: the first M queries of every document. ``curves[name][M]``."""
    chart = figure(x="queries per document (Q/Doc)", y=measure, height=300)
    palette = colours(list(curves))
    for i, (name, values) in enumerate(curves.items()):
        chart.add_scatter(
            x=list(values),
            y=list(values.values()),
            mode="lines+markers",
            name=plain(name, 40),
            line={"color": palette[name], "width": 2},
            marker={"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8},
            hovertemplate=f"{plain(name)}<br>Q/Doc %{{x}}: %{{y:.3f}}<extra></extra>",
        )
    chart.update_xaxes(dtick=1)
    return chart
