"""Query sets: Self-BLEU by Q/Doc, histogram of content words (CW)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import MUTED, PALETTE, SYMBOLS, figure, plain


def by_queries_per_document(
    curves: Mapping[str, Mapping[int, float]], palette: Mapping[str, str], unit: str = "document"
) -> go.Figure:
    """Self-BLEU at each Q/Doc, nested: of the first M queries of every ``unit``. ``curves[name][M]``."""
    chart = figure(x=f"queries per {unit} (Q/Doc)", y="Self-BLEU", height=300)
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


def cw_histogram(histogram: Sequence[int]) -> go.Figure:
    """Share of queries by content words, with the published lines at 7 and 10.

    ``histogram[i]`` counts the queries with CW = i; what lies above ``LAST_BAR`` is shown in the last bar.
    """
    chart = figure(x="content words per query (CW)", y="share of queries (%)", legend=False)
    labels = [*map(str, range(LAST_BAR)), f"{LAST_BAR} or more"]
    bar = np.minimum(np.arange(len(histogram)), LAST_BAR)
    counts = np.bincount(bar, weights=histogram, minlength=LAST_BAR + 1)
    highest = max(HIGH_LINE + 2, int(np.flatnonzero(counts).max(initial=0)))
    chart.add_bar(
        x=np.arange(LAST_BAR + 1),
        y=100 * counts / max(1, counts.sum()),
        marker_color=PALETTE[0],
        customdata=np.stack([labels, counts.astype(int).astype(str)], axis=1),
        hovertemplate="CW %{customdata[0]}: %{y:.1f}% (%{customdata[1]} queries)<extra></extra>",
    )
    for value, anchor in ((LOW_LINE, "right"), (HIGH_LINE, "left")):
        chart.add_vline(
            x=value,
            line={"color": MUTED, "dash": "dash", "width": 1.5},
            annotation={"text": f"{value}", "xanchor": anchor, "font": {"color": MUTED}},
        )
    chart.update_xaxes(range=[-0.6, highest + 0.6], dtick=1 if highest <= 20 else 5)
    return chart
