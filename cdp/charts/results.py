"""NDCG@10 of retrievers side by side, and their differences from a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from cdp.charts.style import DASHES, FAINT, GAIN, LOSS, MUTED, SYMBOLS, across, colours, figure, plain


@dataclass(frozen=True, slots=True)
class GainPoint:
    """A difference from the baseline in NDCG@10 points, with its 95% interval over the queries.

    ``id`` comes back when the point is clicked.
    """

    benchmark: str
    retriever: str
    points: float
    low: float
    high: float
    significant: bool = True
    id: str = ""


def ndcg_bars(
    scores: Mapping[str, Mapping[str, float]],
    *,
    palette: Mapping[str, str] | None = None,
    marks: Mapping[tuple[str, str], str] | None = None,
    focus: Sequence[str] = (),
) -> go.Figure:
    """NDCG@10 in percent: ``scores[retriever][benchmark]``. Benchmarks stand side by side, one bar per retriever.

    ``marks`` of (retriever, benchmark) stand behind the value; ``focus`` names the retrievers that stand out.
    """
    marks = marks or {}
    chart = figure(x="", y="NDCG@10 (%)", height=360)
    palette = palette or colours(list(scores))
    patterns = ("", "/", ".", "x", "-", "\\", "|", "+")
    for i, (retriever, by_benchmark) in enumerate(scores.items()):
        chart.add_bar(
            x=[plain(b, 32) for b in by_benchmark],
            y=list(by_benchmark.values()),
            name=plain(retriever, 40),
            opacity=1.0 if not focus or retriever in focus else FAINT,
            customdata=[retriever] * len(by_benchmark),
            marker={
                "color": palette[retriever],
                "pattern": {
                    "shape": patterns[i % len(patterns)],
                    "fillmode": "overlay",
                    "fgcolor": "#ffffff",
                    "fgopacity": 0.45,
                    "size": 7,
                    "solidity": 0.2,
                },
            },
            text=[f"{v:.2f}{marks.get((retriever, b), '')}" for b, v in by_benchmark.items()],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{plain(retriever)}<br>%{{x}}: %{{y:.2f}}<extra></extra>",
        )
    top = max((v for by in scores.values() for v in by.values()), default=1.0)
    chart.update_yaxes(range=[0, min(112.0, top * 1.18 + 1)])
    chart.update_layout(barmode="group", bargap=0.25, uniformtext={"minsize": 9, "mode": "hide"})
    return chart


def gains(
    differences: Sequence[GainPoint], *, palette: Mapping[str, str] | None = None, focus: Sequence[str] = ()
) -> go.Figure:
    """Differences from the baseline with their intervals; the dashed line is no difference.

    A filled symbol is a significant difference, an open one is not. ``focus`` names the retrievers that stand out.
    """
    names = list(dict.fromkeys(g.retriever for g in differences))
    chart = figure(
        x="difference in NDCG@10 (points)", y="", height=120 + 34 * max(1, len(differences)), legend=len(names) > 1
    )
    palette = palette or (colours(names) if len(names) > 1 else {})
    for i, name in enumerate(names):
        rows = [g for g in differences if g.retriever == name]
        chart.add_scatter(
            x=[g.points for g in rows],
            y=[plain(g.benchmark, 32) for g in rows],
            mode="markers",
            orientation="h",
            offsetgroup=str(i),
            name=plain(name, 40),
            opacity=1.0 if not focus or name in focus else FAINT,
            marker={
                "size": 11,
                "symbol": [SYMBOLS[i % len(SYMBOLS)] + ("" if g.significant else "-open") for g in rows],
                "color": palette.get(name) or [GAIN if g.points >= 0 else LOSS for g in rows],
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [g.high - g.points for g in rows],
                "arrayminus": [g.points - g.low for g in rows],
                "thickness": 1.5,
            },
            customdata=[(g.low, g.high, g.id) for g in rows],
            hovertemplate=f"{plain(name)}<br>%{{y}}: %{{x:+.2f}} points, 95% from %{{customdata[0]:+.2f}} to "
            "%{customdata[1]:+.2f}<extra></extra>",
        )
    across(chart, x=0, line={"color": MUTED, "dash": "dash", "width": 1.5})
    chart.update_yaxes(autorange="reversed")
    if len(names) > 1:
        chart.update_layout(scattermode="group")
    return chart


def parallel(
    axes: Mapping[str, Mapping[str, object]], *, palette: Mapping[str, str] | None = None, focus: Sequence[str] = ()
) -> go.Figure:
    """One line per retriever over upright axes: ``axes[name][retriever]`` is a number, a word or None.

    Numbers stand in their order and to scale; words stand evenly. Every value that occurs has its tick, and a value of
    None stands at the foot as "–". ``focus`` names the retrievers that stand out; without any, all do.
    """
    retrievers = list(dict.fromkeys(name for values in axes.values() for name in values))
    palette = palette or colours(retrievers)
    heights = {axis: _heights(values) for axis, values in axes.items()}
    chart = figure(x="", y="", height=340, legend=len(retrievers) > 1)
    names = list(axes)
    for i, name in enumerate(retrievers):
        shown = [(axis, axes[axis].get(name)) for axis in names]
        chart.add_scatter(
            x=list(range(len(names))),
            y=[heights[axis][_word(value)] for axis, value in shown],
            mode="lines+markers",
            name=plain(name, 40),
            opacity=1.0 if not focus or name in focus else FAINT,
            line={"color": palette[name], "dash": DASHES[i % len(DASHES)], "width": 2.5},
            marker={"size": 9, "symbol": SYMBOLS[i % len(SYMBOLS)], "color": palette[name]},
            customdata=[name] * len(names),
            text=[f"{plain(axis)}: {plain(_word(value))}" for axis, value in shown],
            hovertemplate=f"{plain(name)}<br>%{{text}}<extra></extra>",
        )
    for i, axis in enumerate(names):
        across(chart, x=i, line={"color": MUTED, "width": 1}, layer="below")
        for word, height in heights[axis].items():
            chart.add_annotation(
                x=i, y=height, text=plain(word, 18), showarrow=False, xanchor="left", xshift=8, yshift=9,
                font={"size": 11, "color": MUTED},
            )  # fmt: skip
    chart.update_xaxes(
        tickvals=list(range(len(names))), ticktext=[plain(n, 26) for n in names], showgrid=False, side="top",
        range=[-0.15, max(len(names) - 1, 0) + 0.45],
    )  # fmt: skip
    chart.update_yaxes(visible=False, range=[-0.08, 1.14])
    chart.update_layout(legend={"y": -0.04, "yanchor": "top"}, margin={"t": 16, "b": 44})
    return chart


def _word(value: object) -> str:
    """A value as its tick shows it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)


def _heights(values: Mapping[str, object]) -> dict[str, float]:
    """Where on an axis, from 0 to 1, each value stands."""
    there = [v for v in values.values() if v is not None]
    numbers = [v for v in there if isinstance(v, (int, float)) and not isinstance(v, bool)]
    foot = 0.0
    heights: dict[str, float] = {}
    if len(there) < len(values) or not there:
        heights["–"] = 0.0
        foot = 0.25
    if len(numbers) == len(there) and there:
        low, span = min(numbers), max(numbers) - min(numbers)
        heights |= {_word(v): foot + (1 - foot) * ((v - low) / span if span else 0.5) for v in numbers}
    else:
        ordered = sorted({_word(v) for v in there})
        step = (1 - foot) / max(1, len(ordered) - 1)
        heights |= {word: foot + i * step if len(ordered) > 1 else (1 + foot) / 2 for i, word in enumerate(ordered)}
    return heights


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
