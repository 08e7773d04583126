"""The published relation between content words and the gain from diverse queries."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from cdp.charts.style import MUTED, PALETTE, SYMBOLS, figure
from cdp.principle import AVOID_BELOW, RECOMMEND_ABOVE, Difference, Threshold


def difference_against_cw(points: Sequence[Difference], fit: Threshold, *, here: float | None = None) -> go.Figure:
    """Every published difference at its dataset's CW, the fitted line, and the user's queries (``here``)."""
    chart = figure(x="mean content words of the dataset's queries (CW)", y="difference in NDCG@10 (points)", height=360)
    low, high = min(p.cw for p in points), max(p.cw for p in points)
    left, right = min(low, here or low) - 0.7, max(high, here or high) + 0.7
    for name, start, end, colour in (
        ("avoid", left, AVOID_BELOW, PALETTE[5]),
        ("test", max(left, AVOID_BELOW), min(right, RECOMMEND_ABOVE), PALETTE[1]),
        ("recommend", RECOMMEND_ABOVE, right, PALETTE[2]),
    ):
        if end > start:
            chart.add_vrect(
                x0=start,
                x1=end,
                fillcolor=colour,
                opacity=0.09,
                line_width=0,
                annotation={"text": name, "font": {"color": MUTED}},
                annotation_position="top left",
            )
    for i, retriever in enumerate(dict.fromkeys(p.retriever for p in points)):
        chosen = [p for p in points if p.retriever == retriever]
        chart.add_scatter(
            x=[p.cw for p in chosen],
            y=[p.points for p in chosen],
            mode="markers",
            name=retriever,
            marker={"size": 8, "symbol": SYMBOLS[i], "color": PALETTE[(0, 3)[i % 2]], "opacity": 0.75},
            customdata=[(p.dataset, p.comparison.replace("_", " "), p.per_doc) for p in chosen],
            hovertemplate=f"{retriever} on %{{customdata[0]}}<br>%{{customdata[1]}}, Q/Doc %{{customdata[2]}}<br>"
            "%{y:+.2f} points at CW %{x:.2f}<extra></extra>",
        )
    chart.add_scatter(
        x=[low, high],
        y=[fit.intercept + fit.slope * low, fit.intercept + fit.slope * high],
        mode="lines",
        name=f"fit, zero at CW {fit.crossing:.2f}",
        line={"color": MUTED, "width": 2},
        hoverinfo="skip",
    )
    chart.add_hline(y=0, line={"color": MUTED, "dash": "dash", "width": 1})
    if here is not None:
        chart.add_vline(
            x=here,
            line={"color": PALETTE[5], "width": 2},
            annotation={"text": f"your queries: {here:.2f}", "showarrow": False, "font": {"color": PALETTE[5]}},
        )
    chart.update_xaxes(range=[left, right])
    return chart
