"""Where gains sit: the mean difference by the content words of the query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import plotly.graph_objects as go

from cdp.charts.style import GAIN, LOSS, MUTED, across, figure


class Range(Protocol):
    """A range of CW with the mean difference of its queries, in points; ``mean`` is None where there is none."""

    @property
    def name(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def mean(self) -> float | None: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...


def gains_by_cw(ranges: Sequence[Range]) -> go.Figure:
    """One bar per range of content words, upwards for a gain, with its 95% interval; none without queries."""
    shown = [(r.name, r.n, r.mean, r.interval) for r in ranges if r.mean is not None]
    chart = figure(x="content words of the query", y="difference in NDCG@10 (points)", height=300, legend=False)
    chart.add_bar(
        x=[name for name, *_ in shown],
        y=[mean for _, _, mean, _ in shown],
        marker={
            "color": [GAIN if mean >= 0 else LOSS for _, _, mean, _ in shown],
            "pattern": {"shape": ["" if mean >= 0 else "/" for _, _, mean, _ in shown], "fgcolor": "#ffffff"},
        },
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [interval[1] - mean if interval else 0.0 for _, _, mean, interval in shown],
            "arrayminus": [mean - interval[0] if interval else 0.0 for _, _, mean, interval in shown],
            "color": MUTED,
            "thickness": 1.5,
        },
        customdata=[n for _, n, _, _ in shown],
        hovertemplate="%{x} content words: %{y:+.2f} points over %{customdata} queries<extra></extra>",
    )
    across(chart, y=0, line={"color": MUTED, "width": 1})
    chart.update_xaxes(type="category")
    chart.update_layout(bargap=0.4)
    return chart
