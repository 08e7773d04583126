"""The options of a decision against each other, documents by length, and queries by content words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import MUTED, PALETTE, across, colours, figure, plain


def differences(rows: Sequence[tuple[str, float, float, float]], reference: str) -> go.Figure:
    """Points over a reference for each option, as (name, points, low, high), with the intervals as bars."""
    chart = figure(x=f"NDCG@10 points over {plain(reference)}", y="", height=90 + 26 * len(rows), legend=False)
    up, down = [high - value for _, value, _, high in rows], [value - low for _, value, low, _ in rows]
    names = [plain(name) for name, *_ in rows]
    chart.add_scatter(
        x=[value for _, value, _, _ in rows],
        y=names,
        mode="markers",
        name=f"over {plain(reference)}",
        marker={"size": 9, "color": PALETTE[0]},
        error_x={"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.5},
        hovertemplate="%{y}: %{x:+.1f} points<extra></extra>",
    )
    across(chart, x=0, line={"color": MUTED, "width": 1})
    chart.update_yaxes(categoryorder="array", categoryarray=names[::-1])
    return chart


LOW_LINE, HIGH_LINE = 7, 10
# Queries with more content words than this share the last bar.
LAST_BAR = 30


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
