"""What several queries per document gain over one: measured, with the published prior as a faint band behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, SYMBOLS, across, by_method, figure, plain
from cdp.studies.gains import Gain


class Band(Protocol):
    """The prior at one Q/Doc, in points."""

    @property
    def per_doc(self) -> int: ...
    @property
    def points(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


APART = 0.06
"""Of the distance between two Q/Doc: the lines stand beside each other, so that no interval hides another."""

NAMES = {"diverse": "diverse queries", "paraphrase": "paraphrases", "human": "human queries"}


def gains_over_one(gains: Sequence[Gain], band: Sequence[Band]) -> go.Figure:
    """Points over one query per document by Q/Doc with 95% intervals, one line per kind of queries; dotted where pairs
    are held equal."""
    chart = figure(x="queries per document (Q/Doc)", y="NDCG@10 points over one query", height=320)
    numbers = sorted({g.per_doc for g in gains} | {b.per_doc for b in band})
    place = {n: float(i) for i, n in enumerate(numbers)}
    if band:
        ordered = sorted(band, key=lambda b: b.per_doc)
        at = [place[b.per_doc] for b in ordered]
        chart.add_scatter(
            x=[*at, *at[::-1]],
            y=[*(b.high for b in ordered), *(b.low for b in reversed(ordered))],
            fill="toself",
            mode="lines",
            line={"width": 0},
            fillcolor="rgba(135,147,160,0.16)",
            name="published, 95% of new datasets",
            hoverinfo="skip",
        )
        chart.add_scatter(
            x=at,
            y=[b.points for b in ordered],
            mode="lines",
            line={"color": MUTED, "dash": "dash", "width": 1},
            name="published, mean",
            customdata=[b.per_doc for b in ordered],
            hovertemplate="published, Q/Doc %{customdata}: %{y:+.1f}<extra></extra>",
        )
    ways = dict.fromkeys((g.source, g.held) for g in gains)
    colour = by_method({source: source for source, _ in ways})
    for i, (source, held) in enumerate(ways):
        points = sorted((g for g in gains if (g.source, g.held) == (source, held)), key=lambda g: g.per_doc)
        name = plain(NAMES.get(source, source), 40)
        chart.add_scatter(
            x=[place[g.per_doc] + APART * (i - (len(ways) - 1) / 2) for g in points],
            customdata=[g.per_doc for g in points],
            y=[g.points for g in points],
            mode="lines+markers",
            name=f"{name}, {held}" if held else name,
            line={"color": colour[source], "dash": "dot" if held else DASHES[0]},
            marker={"size": 9, "symbol": f"{SYMBOLS[i % len(SYMBOLS)]}{'-open' if held else ''}"},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [g.high - g.points for g in points],
                "arrayminus": [g.points - g.low for g in points],
                "thickness": 1.2,
            },
            hovertemplate=f"{name}{f', {held}' if held else ''}<br>"
            "Q/Doc %{customdata}: %{y:+.1f} points<extra></extra>",
        )
    across(chart, y=0, line={"color": MUTED, "width": 1})
    chart.update_xaxes(
        tickvals=list(place.values()), ticktext=[str(n) for n in numbers], range=[-0.5, max(1, len(numbers)) - 0.5]
    )
    return chart
