"""Query sets: quality against diversity, a measure against the queries per document, queries by content words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import MUTED, PALETTE, SYMBOLS, bars, by_method, figure, plain

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """A query set with one value on each axis and their intervals where known."""

    name: str
    method: str
    x: float
    y: float
    x_interval: Interval | None = None
    y_interval: Interval | None = None


def trade_off(sets: Sequence[MeasuredSet], *, x: str, y: str, lines: bool = False) -> go.Figure:
    """One point per query set.

    The axis titles should say which end is better. ``lines`` marks 0.5 on both axes, the targets of Algorithm 1.
    """
    chart = figure(x=x, y=y, height=420, legend=False)
    if lines:
        dots = {"color": MUTED, "dash": "dot", "width": 1}
        chart.add_vline(x=0.5, line=dots)
        chart.add_hline(y=0.5, line=dots)
    palette = by_method({f"{i}": item.method for i, item in enumerate(sets)})
    for i, item in enumerate(sets):
        chart.add_scatter(
            x=[item.x],
            y=[item.y],
            mode="markers+text",
            text=[f"<b>{plain(item.name, 28)}</b>"],
            textposition="top left" if item.x > 0.7 else "top right",
            name=plain(item.name),
            marker={"size": 14, "color": palette[f"{i}"], "symbol": SYMBOLS[i % len(SYMBOLS)]},
            error_x=bars([(item.x, *item.x_interval)]) if item.x_interval else None,
            error_y=bars([(item.y, *item.y_interval)]) if item.y_interval else None,
            hovertemplate=f"{plain(item.name)}<br>%{{x:.3f}}, %{{y:.3f}}<extra></extra>",
        )
    highest = max((s.y for s in sets), default=1.0)
    lowest = min((s.y for s in sets), default=0.0)
    chart.update_xaxes(range=[-0.03, 1.03])
    chart.update_yaxes(range=[min(-0.03, lowest - 0.05), max(0.62, highest + 0.08)])
    return chart


def by_queries_per_document(
    curves: Mapping[str, Mapping[int, float]], *, measure: str, palette: Mapping[str, str]
) -> go.Figure:
    """A measure at each Q/Doc, nested: the first M queries of every document. ``curves[name][M]``."""
    chart = figure(x="queries per document (Q/Doc)", y=measure, height=300)
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


LOW_LINE, HIGH_LINE = 7, 10
# Queries with more content words than this share the last bar.
LAST_BAR = 30


def cw_histogram(histograms: Mapping[str, Sequence[int]], palette: Mapping[str, str] | None = None) -> go.Figure:
    """Share of queries by content words, one series per query set, with the published lines at 7 and 10.

    ``histograms[name][i]`` counts the queries with CW = i; what lies above ``LAST_BAR`` is shown in the last bar.
    """
    chart = figure(x="content words per query (CW)", y="share of queries (%)", legend=len(histograms) > 1)
    labels = [*map(str, range(LAST_BAR)), f"{LAST_BAR} or more"]
    highest = HIGH_LINE + 2
    for name, histogram in histograms.items():
        bar = np.minimum(np.arange(len(histogram)), LAST_BAR)
        counts = np.bincount(bar, weights=histogram, minlength=LAST_BAR + 1)
        highest = max(highest, int(np.flatnonzero(counts).max(initial=0)))
        chart.add_bar(
            x=np.arange(LAST_BAR + 1),
            y=100 * counts / max(1, counts.sum()),
            name=plain(name),
            marker_color=palette[name] if palette else PALETTE[0],
            customdata=np.stack([labels, counts.astype(int).astype(str)], axis=1),
            hovertemplate=f"{plain(name)}<br>CW %{{customdata[0]}}: %{{y:.1f}}% "
            "(%{customdata[1]} queries)<extra></extra>",
        )
    for value, anchor in ((LOW_LINE, "right"), (HIGH_LINE, "left")):
        chart.add_vline(
            x=value,
            line={"color": MUTED, "dash": "dash", "width": 1.5},
            annotation={"text": f"{value}", "xanchor": anchor, "font": {"color": MUTED}},
        )
    chart.update_xaxes(range=[-0.6, highest + 0.6], dtick=1 if highest <= 20 else 5)
    chart.update_layout(barmode="group")
    return chart
