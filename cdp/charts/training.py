"""A training run while it goes on and afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, colours, figure, plain

LABELS = {
    "loss": "loss (InfoNCE)",
    "learning_rate": "learning rate",
    "gradient_norm": "gradient norm",
    "pairs_per_second": "pairs per second",
    "memory_mib": "memory (MiB)",
    "gpu_memory_mib": "GPU memory (MiB)",
    "ndcg_at_10": "dev NDCG@10 (%)",
}


def curve(
    runs: Mapping[str, Sequence[Mapping[str, Any]]],
    measure: str,
    *,
    height: int = 280,
    palette: Mapping[str, str] | None = None,
    x: str = "step",
    y: str = "",
) -> go.Figure:
    """One measure over the steps, one line per run. Each run is a list of the lines of its ``metrics.jsonl``. ``x`` and
    ``y`` name the axes where they are something else."""
    chart = figure(x=x, y=y or LABELS.get(measure, measure), height=height, legend=len(runs) > 1)
    palette = palette or colours(list(runs))
    for i, (name, lines) in enumerate(runs.items()):
        points = [(line["step"], line[measure]) for line in lines if line.get(measure) is not None]
        chart.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            mode="lines+markers" if len(points) < 40 else "lines",
            name=plain(name),
            line={"color": palette[name], "dash": DASHES[i % len(DASHES)], "width": 2},
            marker={"size": 5},
            hovertemplate=f"{plain(name)}<br>{x} %{{x}}: %{{y:.4g}}<extra></extra>",
        )
    if max((step for trace in chart.data for step in trace.x), default=0) <= 10:
        chart.update_xaxes(dtick=1)
    if not any(trace.x for trace in chart.data):
        chart.add_annotation(
            text="no values yet", showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper", font={"color": MUTED}
        )
    return chart
