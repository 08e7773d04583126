"""How lengths and content words are distributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, across, colours, figure, plain

LOW_LINE, HIGH_LINE = 7, 10
LAST_BAR = 30
"""Queries with more content words than this share the last bar."""


def length_histogram(edges: Sequence[float], counts: Sequence[int], *, unit: str = "words") -> go.Figure:
    """Documents by length. ``edges`` has one value more than ``counts``; a bar ends below its right edge."""
    chart = figure(x=f"length of a document ({unit})", y="documents", height=260, legend=False)
    widths = np.diff(np.asarray(edges, dtype=float))
    whole = all(float(edge).is_integer() for edge in edges)
    middles = np.asarray(edges[:-1], dtype=float) + (widths - whole) / 2  # of 3 to 5 words the middle is 4
    spans = [_span(low, high - whole, n, unit) for low, high, n in zip(edges, edges[1:], counts, strict=False)]
    if edges[-1] - edges[0] <= 10:
        chart.update_xaxes(dtick=1)
    chart.add_bar(
        x=middles,
        y=list(counts),
        width=widths,
        customdata=spans,
        hovertemplate="%{customdata}<extra></extra>",
    )
    return chart


def _span(first: float, last: float, n: int, unit: str) -> str:
    """``3 to 5 words: 12 documents``; edges that are no whole numbers, of a corpus from before, are rounded."""
    lengths = f"{first:,.0f}" if last <= first else f"{first:,.0f} to {last:,.0f}"
    return f"{lengths} {unit}: {n:,} {'document' if n == 1 else 'documents'}"


def cw_histogram(
    histograms: Mapping[str, Sequence[int]], *, palette: Mapping[str, str] | None = None, last: int = LAST_BAR
) -> go.Figure:
    """Share of queries by content words, one series per query set, with the published lines at 7 and 10.

    ``histograms[name][i]`` counts the queries with CW = i; what lies above ``last`` is shown in the last bar.
    """
    chart = figure(x="content words per query (CW)", y="share of queries (%)", legend=len(histograms) > 1)
    palette = palette or colours(list(histograms))
    highest = 0
    for name, histogram in histograms.items():
        counts = _folded(histogram, last)
        highest = max(highest, int(np.flatnonzero(counts).max(initial=0)))
        share = 100 * counts / max(1, counts.sum())
        labels = [f"{i}" if i < last else f"{last} or more" for i in range(last + 1)]
        chart.add_bar(
            x=np.arange(last + 1),
            y=share,
            name=plain(name),
            marker_color=palette[name],
            customdata=np.stack([labels, counts.astype(str)], axis=1),
            hovertemplate=f"{plain(name)}<br>CW %{{customdata[0]}}: %{{y:.1f}}% "
            "(%{customdata[1]} queries)<extra></extra>",
        )
    _published_lines(chart)
    right = max(highest, HIGH_LINE + 2)
    chart.update_xaxes(range=[-0.6, right + 0.6], dtick=1 if right <= 20 else 5)
    chart.update_layout(barmode="group")
    return chart


def cw_cumulative(
    histograms: Mapping[str, Sequence[int]], *, palette: Mapping[str, str] | None = None, last: int = LAST_BAR
) -> go.Figure:
    """Share of queries with at most so many content words, one step line per query set."""
    chart = figure(x="content words per query (CW)", y="share of queries up to this CW (%)", legend=len(histograms) > 1)
    palette = palette or colours(list(histograms))
    highest = 0
    for i, (name, histogram) in enumerate(histograms.items()):
        counts = _folded(histogram, last)
        highest = max(highest, int(np.flatnonzero(counts).max(initial=0)))
        chart.add_scatter(
            x=np.arange(last + 1),
            y=100 * np.cumsum(counts) / max(1, counts.sum()),
            mode="lines",
            line={"shape": "hv", "color": palette[name], "dash": DASHES[i % len(DASHES)], "width": 2},
            name=plain(name),
            hovertemplate=f"{plain(name)}<br>CW ≤ %{{x}}: %{{y:.1f}}%<extra></extra>",
        )
    _published_lines(chart)
    chart.update_xaxes(range=[0, max(highest, HIGH_LINE + 2)])
    chart.update_yaxes(range=[0, 102])
    return chart


def _folded(histogram: Sequence[int], last: int) -> np.ndarray:
    counts = np.zeros(last + 1, dtype=np.int64)
    given = np.asarray(histogram, dtype=np.int64)
    counts[: min(last, given.size)] = given[:last]
    counts[last] = given[last:].sum()
    return counts


def _published_lines(chart: go.Figure) -> None:
    for value, text, anchor in ((LOW_LINE, "7", "right"), (HIGH_LINE, "10", "left")):
        across(
            chart,
            x=value,
            line={"color": MUTED, "dash": "dash", "width": 1.5},
            annotation={"text": text, "xanchor": anchor, "font": {"color": MUTED}},
        )
