"""Differences from a baseline with intervals, training curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from cdp.base.text import signed
from cdp.charts.style import DASHES, MUTED, PALETTE, bars, by_sign, figure, plain


class GainPoint(NamedTuple):
    """A difference in NDCG@10 points with its 95% interval."""

    name: str
    points: float
    low: float
    high: float
    significant: bool = True


def gains(rows: Sequence[GainPoint], *, x: str, digits: int = 2) -> go.Figure:
    """Differences with their intervals, one below the other; the dashed line is no difference.

    A filled symbol is a significant difference, an open one is not. Each stands in figures below its name, so that a
    narrow screen shows them without scrolling.
    """
    chart = figure(x=x, y="", height=90 + 38 * max(1, len(rows)), legend=False)
    measured = [(row.points, row.low, row.high) for row in rows]
    points = [row.points for row in rows]
    significant = [row.significant for row in rows]
    names = [plain(row.name, 48) for row in rows]

    labels = []
    for name, (value, low, high) in zip(names, measured, strict=True):
        bounds = f"{signed(low, digits)} to {signed(high, digits)}"
        labels.append(f"{name}<br><b>{signed(value, digits)}</b> ({bounds})")

    chart.add_scatter(
        x=points,
        y=list(range(len(rows))),  # not the names: two that are cut may be the same
        text=names,
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
        hovertemplate="%{text}: %{x:+.2f} points, 95% from %{customdata[1]:+.2f} to %{customdata[2]:+.2f}"
        "<extra></extra>",
    )

    chart.add_vline(x=0, line={"color": MUTED, "dash": "dash", "width": 1.5})
    chart.update_yaxes(tickvals=list(range(len(rows))), ticktext=labels, range=[len(rows) - 0.5, -0.5])

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
