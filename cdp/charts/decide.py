"""What several queries per document gain over one: measured, with the published prior as a faint band behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, SYMBOLS, across, bars, by_method, colours, figure, plain
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


# Of the distance between two Q/Doc: the lines stand beside each other, so that no interval hides another.
APART = 0.06

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
            error_y=bars([(g.points, g.low, g.high) for g in points]),
            hovertemplate=f"{name}{f', {held}' if held else ''}<br>"
            "Q/Doc %{customdata}: %{y:+.1f} points<extra></extra>",
        )
    across(chart, y=0, line={"color": MUTED, "width": 1})
    chart.update_xaxes(
        tickvals=list(place.values()), ticktext=[str(n) for n in numbers], range=[-0.5, max(1, len(numbers)) - 0.5]
    )
    return chart


LOW_LINE, HIGH_LINE = 7, 10
# Queries with more content words than this share the last bar.
LAST_BAR = 30


def length_histogram(edges: Sequence[float], counts: Sequence[int], unit: str = "words") -> go.Figure:
    """Documents by length. ``edges`` has one value more than ``counts``; a bar ends below its right edge."""
    chart = figure(x=f"length of a document ({unit})", y="documents", height=260, legend=False)
    widths = np.diff(np.asarray(edges, dtype=float))
    whole = all(float(edge).is_integer() for edge in edges)
    middles = np.asarray(edges[:-1], dtype=float) + (widths - whole) / 2  # of 3 to 5 words the middle is 4
    spans = [_span(low, high - whole, n, unit) for low, high, n in zip(edges, edges[1:], counts, strict=False)]
    if edges[-1] - edges[0] <= 10:
        chart.update_xaxes(dtick=1)
    chart.add_bar(
        x=middles, y=list(counts), width=widths, customdata=spans, hovertemplate="%{customdata}<extra></extra>"
    )
    return chart


def _span(first: float, last: float, n: int, unit: str) -> str:
    """``3 to 5 words: 12 documents``; edges that are no whole numbers, of a corpus from before, are rounded."""
    lengths = f"{first:,.0f}" if last <= first else f"{first:,.0f} to {last:,.0f}"
    return f"{lengths} {unit}: {n:,} {'document' if n == 1 else 'documents'}"


def cw_histogram(
    histograms: Mapping[str, Sequence[int]], *, palette: Mapping[str, str] | None = None, last: int = LAST_BAR
) -> go.Figure:
    """Share of queries by content words, one series per query set, with the published lines at 7 and 10.

    ``histograms[name][i]`` counts the queries with CW = i; what lies above ``last`` is shown in the last bar.
    """
    chart = figure(x="content words per query (CW)", y="share of queries (%)", legend=len(histograms) > 1)
    palette = palette or colours(list(histograms))
    highest = 0
    for name, histogram in histograms.items():
        counts = _folded(histogram, last)
        highest = max(highest, int(np.flatnonzero(counts).max(initial=0)))
        share = 100 * counts / max(1, counts.sum())
        labels = [f"{i}" if i < last else f"{last} or more" for i in range(last + 1)]
        chart.add_bar(
            x=np.arange(last + 1),
            y=share,
            name=plain(name),
            marker_color=palette[name],
            customdata=np.stack([labels, counts.astype(str)], axis=1),
            hovertemplate=f"{plain(name)}<br>CW %{{customdata[0]}}: %{{y:.1f}}% "
            "(%{customdata[1]} queries)<extra></extra>",
        )
    _published_lines(chart)
    right = max(highest, HIGH_LINE + 2)
    chart.update_xaxes(range=[-0.6, right + 0.6], dtick=1 if right <= 20 else 5)
    chart.update_layout(barmode="group")
    return chart


def _folded(histogram: Sequence[int], last: int) -> np.ndarray:
    counts = np.zeros(last + 1, dtype=np.int64)
    given = np.asarray(histogram, dtype=np.int64)
    counts[: min(last, given.size)] = given[:last]
    counts[last] = given[last:].sum()
    return counts


def _published_lines(chart: go.Figure) -> None:
    for value, text, anchor in ((LOW_LINE, "7", "right"), (HIGH_LINE, "10", "left")):
        across(
            chart,
            x=value,
            line={"color": MUTED, "dash": "dash", "width": 1.5},
            annotation={"text": text, "xanchor": anchor, "font": {"color": MUTED}},
        )
