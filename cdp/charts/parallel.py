"""Retrievers as lines over the settings in which they differ, and what came of it: a parallel view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from cdp.charts.style import DASHES, FAINT, MUTED, SYMBOLS, across, colours, figure, plain


def parallel(
    axes: Mapping[str, Mapping[str, object]],
    *,
    palette: Mapping[str, str] | None = None,
    focus: Sequence[str] = (),
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
