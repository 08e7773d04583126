"""NDCG@10 of retrievers side by side, their differences from a baseline, a study's scores, and training curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from cdp.charts.style import DASHES, GAIN, LOSS, MUTED, SYMBOLS, across, bars, by_method, colours, figure, plain
from cdp.studies.plan import UNTRAINED, Cell
from cdp.studies.report import StudyReport, StudyRow


@dataclass(frozen=True, slots=True)
class GainPoint:
    """A difference from the baseline in NDCG@10 points, with its 95% interval over the queries."""

    benchmark: str
    retriever: str
    points: float
    low: float
    high: float
    significant: bool = True


def gains(
    differences: Sequence[GainPoint],
    *,
    palette: Mapping[str, str] | None = None,
    x: str = "difference in NDCG@10 (points)",
) -> go.Figure:
    """Differences from the baseline with their intervals; the dashed line is no difference.

    A filled symbol is a significant difference, an open one is not.
    """
    names = list(dict.fromkeys(g.retriever for g in differences))
    chart = figure(x=x, y="", height=90 + 22 * max(1, len(differences)), legend=len(names) > 1)
    palette = palette or (colours(names) if len(names) > 1 else {})
    for i, name in enumerate(names):
        rows = [g for g in differences if g.retriever == name]
        chart.add_scatter(
            x=[g.points for g in rows],
            y=[plain(g.benchmark, 48) for g in rows],
            mode="markers",
            orientation="h",
            offsetgroup=str(i),
            name=plain(name, 40),
            marker={
                "size": 11,
                "symbol": [SYMBOLS[i % len(SYMBOLS)] + ("" if g.significant else "-open") for g in rows],
                "color": palette.get(name) or [GAIN if g.points >= 0 else LOSS for g in rows],
            },
            # Of a colour of its own: with several marker colours Plotly draws black, which a dark page swallows.
            error_x={**bars([(g.points, g.low, g.high) for g in rows]), "color": MUTED},
            customdata=[(g.low, g.high) for g in rows],
            hovertemplate=f"{plain(name)}<br>%{{y}}: %{{x:+.2f}} points, 95% from %{{customdata[0]:+.2f}} to "
            "%{customdata[1]:+.2f}<extra></extra>",
        )
    across(chart, x=0, line={"color": MUTED, "dash": "dash", "width": 1.5})
    chart.update_yaxes(autorange="reversed")
    if len(names) > 1:
        chart.update_layout(scattermode="group")
    return chart


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
    palette: Mapping[str, str] | None = None,
    x: str = "step",
    y: str = "",
) -> go.Figure:
    """One measure over the steps, one line per run. Each run is a list of the lines of its ``metrics.jsonl``. ``x`` and
    ``y`` name the axes where they are something else."""
    chart = figure(x=x, y=y or LABELS.get(measure, measure), height=280, legend=len(runs) > 1)
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


def scaling(report: StudyReport, benchmark: str) -> go.Figure:
    """NDCG@10 on one benchmark by Q/Doc, one line per way of training, ± the standard deviation over seeds."""
    chart = figure(x="queries per document (Q/Doc)", y="NDCG@10 (%)", height=320)
    trained = [row for row in report.rows if row.source != UNTRAINED and benchmark in row.scores]
    series = dict.fromkeys(map(_way, trained))
    palette = _palette(report, series)
    for i, key in enumerate(series):
        rows = sorted((r for r in trained if _way(r) == key), key=lambda r: r.per_doc)
        chart.add_scatter(
            x=[str(row.per_doc) for row in rows],
            y=[row.scores[benchmark] for row in rows],
            mode="lines+markers",
            name=_series(key),
            line={"color": palette[_series(key)], "dash": DASHES[i % len(DASHES)]},
            marker={"size": 8, "symbol": SYMBOLS[i % len(SYMBOLS)]},
            error_y={"type": "data", "array": [row.spread.get(benchmark, 0.0) for row in rows], "thickness": 1.2},
            customdata=[(row.pairs, row.n_seeds) for row in rows],
            hovertemplate="Q/Doc %{x}: %{y:.2f}<br>%{customdata[0]:,} pairs, %{customdata[1]} seeds<extra></extra>",
        )
    for row in report.rows:
        if row.source == UNTRAINED and benchmark in row.scores:
            across(
                chart,
                y=row.scores[benchmark],
                line={"color": MUTED, "dash": "dash", "width": 1},
                annotation={"text": plain(row.name, 40), "font": {"color": MUTED}},
            )
    chart.update_xaxes(type="category")
    return chart


def _way(row: StudyRow) -> Cell:
    return row.cell._replace(per_doc=0, rate=None)


def _palette(report: StudyReport, series: Iterable[Cell]) -> dict[str, str]:
    """A colour for each way of training, by the method of its source."""
    kinds = {source.label: source.kind for source in report.sources}
    return by_method({_series(way): kinds.get(way.source, "") for way in series})


def _series(way: Cell) -> str:
    return plain(f"{way.retriever}, {way.source}{way.details}", 48)
