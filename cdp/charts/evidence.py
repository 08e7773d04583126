"""Gain from diverse queries over content words (CW), published or a study's own: fitted line and band."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import MUTED, PALETTE, SYMBOLS, figure, plain
from cdp.principle import AVOID_BELOW, COMPARISONS, RECOMMEND_ABOVE, Difference, Threshold, fit_of_means


def difference_against_cw(
    points: Sequence[Difference],
    fit: Threshold,
    *,
    here: float | None = None,
) -> go.Figure:
    """Every difference at its dataset's CW and the fitted line; each point tells its origin on hover.

    ``here`` marks the user's queries. The band is the 95% confidence band of the line through the dataset means.
    """
    chart = figure(x="mean content words of the dataset's queries (CW)", y="difference in NDCG@10 (points)", height=400)
    cw = [p.cw for p in points]
    low, high = min(cw), max(cw)
    if here is not None:
        cw.append(here)

    left, right = min(cw) - 0.7, max(cw) + 0.7
    _published_lines(chart, left, right)
    _band(chart, points, low, high)

    by_retriever: dict[str, list[Difference]] = defaultdict(list)
    for p in points:
        by_retriever[p.retriever].append(p)

    for i, (retriever, chosen) in enumerate(by_retriever.items()):
        name = plain(retriever, 48)
        chart.add_scatter(
            x=[p.cw for p in chosen],
            y=[p.points for p in chosen],
            mode="markers",
            name=name,
            marker={
                "size": 8,
                "symbol": SYMBOLS[i % len(SYMBOLS)],
                "color": PALETTE[(0, 3, 2, 1, 4, 7)[i % 6]],
                "opacity": 0.75,
            },
            customdata=[(plain(p.dataset), COMPARISONS.get(p.comparison, p.comparison), p.per_doc) for p in chosen],
            hovertemplate=f"{name} on %{{customdata[0]}}<br>%{{customdata[1]}}, Q/Doc %{{customdata[2]}}<br>"
            "%{y:+.2f} points at CW %{x:.2f}<extra></extra>",
        )

    fitted = "fit"
    if low <= fit.crossing <= high:
        fitted = f"fit, zero at CW {fit.crossing:.2f}"

    chart.add_scatter(
        x=[low, high],
        y=[fit.intercept + fit.slope * low, fit.intercept + fit.slope * high],
        mode="lines",
        name=fitted,
        line={"color": MUTED, "width": 2},
        hoverinfo="skip",
    )

    chart.add_hline(y=0, line={"color": MUTED, "dash": "dash", "width": 1})

    if here is not None:
        label = f"your queries, CW {here:.2f}"
        chart.add_vline(x=here, line={"color": PALETTE[5], "width": 2}, name=label, showlegend=True)

    chart.update_xaxes(range=[left, right])
    return chart


def _published_lines(chart: go.Figure, left: float, right: float) -> None:
    areas = (
        ("avoid", left, min(right, AVOID_BELOW), PALETTE[5]),
        ("test", max(left, AVOID_BELOW), min(right, RECOMMEND_ABOVE), PALETTE[1]),
        ("recommend", max(left, RECOMMEND_ABOVE), right, PALETTE[2]),
    )

    for name, start, end, colour in areas:
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


def _band(chart: go.Figure, points: Sequence[Difference], low: float, high: float) -> None:
    """The confidence band, kept within what the points need: with few datasets it is far wider than they are."""
    fitted, cw = fit_of_means(points), np.linspace(low, high, 60)
    below, above = fitted.mean_interval(cw)
    values = [p.points for p in points]
    reach = max(values) - min(values)
    top, bottom = max(values) + reach / 2, min(values) - reach / 2
    chart.add_scatter(
        x=[*cw, *cw[::-1]],
        y=[*np.minimum(above, top), *np.maximum(below, bottom)[::-1]],
        fill="toself",
        mode="lines",
        line={"width": 0},
        fillcolor="rgba(135,147,160,0.18)",
        name=f"95% band, {fitted.n} datasets",
        hoverinfo="skip",
    )

    chart.update_yaxes(range=[bottom, top])


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
    highest = max(int(RECOMMEND_ABOVE) + 2, int(np.flatnonzero(counts).max(initial=0)))
    chart.add_bar(
        x=np.arange(LAST_BAR + 1),
        y=100 * counts / max(1, counts.sum()),
        marker_color=PALETTE[0],
        customdata=np.stack([labels, counts.astype(int).astype(str)], axis=1),
        hovertemplate="CW %{customdata[0]}: %{y:.1f}% (%{customdata[1]} queries)<extra></extra>",
    )

    for value, anchor in ((AVOID_BELOW, "right"), (RECOMMEND_ABOVE, "left")):
        chart.add_vline(
            x=value,
            line={"color": MUTED, "dash": "dash", "width": 1.5},
            annotation={"text": f"{value:g}", "xanchor": anchor, "font": {"color": MUTED}},
        )

    chart.update_xaxes(range=[-0.6, highest + 0.6], dtick=1 if highest <= 20 else 5)
    return chart
