"""Differences from a baseline with intervals, training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, PALETTE, bars, by_sign, figure, plain


class GainPoint(NamedTuple):
    """A difference in NDCG@10 points with its 95% interval."""

    name: str
    points: float
    low: float
    high: float
    significant: bool = True


def gains(rows: Sequence[GainPoint], *, x: str) -> go.Figure:
    """Differences with their intervals, one below the other; the dashed line is no difference.

    A filled symbol is a significant difference, an open one is not.
    """
    chart = figure(x=x, y="", height=90 + 24 * max(1, len(rows)), legend=False)
    measured = [(row.points, row.low, row.high) for row in rows]
    points = [row.points for row in rows]
    significant = [row.significant for row in rows]

    chart.add_scatter(
        x=points,
        y=[plain(row.name, 48) for row in rows],
        mode="markers",
        name="points",
        marker={
            "size": 11,
            "symbol": np.where(significant, "circle", "circle-open"),
            "color": list(map(by_sign, points)),
        },
        # Of a colour of its own: with several marker colours Plotly draws black, which a dark page swallows.
        error_x={**bars(measured), "color": MUTED},
        customdata=measured,
        hovertemplate="%{y}: %{x:+.2f} points, 95% from %{customdata[1]:+.2f} to %{customdata[2]:+.2f}<extra></extra>",
    )

    chart.add_vline(x=0, line={"color": MUTED, "dash": "dash", "width": 1.5})
    chart.update_yaxes(autorange="reversed")

    return chart


LABELS = {
    "loss": "loss (InfoNCE)",
    "learning_rate": "learning rate",
    "gradient_norm": "gradient norm",
    "ndcg_at_10": "dev NDCG@10 (%)",
}


def curves(of_jobs: Mapping[str, Mapping[int, float]], title: str) -> go.Figure:
    """One measure by step, a line for each job by its name."""
    several = len(of_jobs) > 1
    chart = figure(x="step", y=title, height=280 + 40 * several, legend=several)
    for i, (job, values) in enumerate(of_jobs.items()):
        name = plain(job, 48)
        series = name if several else ""
        dash = DASHES[i // len(PALETTE) % len(DASHES)]
        chart.add_scatter(
            x=list(values),
            y=list(values.values()),
            mode="lines+markers" if len(values) < 40 else "lines",
            name=name,
            line={"color": PALETTE[i % len(PALETTE)], "dash": dash, "width": 2},
            marker={"size": 5},
            hovertemplate=f"step %{{x}}: %{{y:.4g}}<extra>{series}</extra>",
        )

    if max(chain.from_iterable(of_jobs.values()), default=0) <= 10:
        chart.update_xaxes(dtick=1)

    return chart
