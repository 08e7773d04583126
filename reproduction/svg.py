"""A figure as SVG text: a row for each judged set, a panel for each kind of training. No browser, the same bytes.

The names stand in full at the left, which no axis of CW leaves room for, so the rows are in the order of CW, not to
its scale. The white ground and every colour are written out: a dark page changes none of them.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from cdp.base.numbers import signed
from cdp.charts.style import PALETTE

INK, QUIET, GRID, STRIPE, GROUND = "#222222", "#555555", "#dddddd", "#f5f6f7", "#ffffff"

SHAPES = (
    (),  # a circle
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, -1.3), (1.2, 0.9), (-1.2, 0.9)),
    ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    ((0, 1.3), (1.2, -0.9), (-1.2, -0.9)),
    ((-0.5, -1.3), (0.5, -1.3), (0.5, -0.5), (1.3, -0.5), (1.3, 0.5), (0.5, 0.5), (0.5, 1.3), (-0.5, 1.3), (-0.5, 0.5),
     (-1.3, 0.5), (-1.3, -0.5), (-0.5, -0.5)),
    ((-1.2, -1.2), (1.2, -1.2), (-1.2, 1.2), (1.2, 1.2)),
    ((-1.3, 0), (-0.65, -1.15), (0.65, -1.15), (1.3, 0), (0.65, 1.15), (-0.65, 1.15)),
)  # fmt: skip
"""Corners of each marker in radii; closed, for a hollow one must be told from a filled one."""

COLOURS = tuple(PALETTE[i] for i in (0, 5, 2, 3, 6, 7, 4, 1))
"""The product's palette, the colours that show best as thin lines on white first."""

RADIUS, APART = 3.8, 10
"""Of a marker, and from one to the next of the same judged set."""

TITLE, LINE, GAP, MARGIN, LETTER = 20, 15, 14, 12, 6.6
"""Where the title stands, and how far one thing is from the next; the last is a letter's width, about."""

LEGEND = TITLE + 2 * LINE + 6
"""Its first line."""

PANEL, WHOLE, BETWEEN = 160, 560, 32
"""Width of a panel at least, of all together, and between two, where the ticks of both end."""


@dataclass(frozen=True)
class Mark:
    """A difference with its interval: in which panel, on which row, of which series."""

    panel: str
    row: str
    series: str
    value: float
    low: float
    high: float
    hollow: bool


@dataclass(frozen=True)
class Look:
    """A colour that is always with the same shape, so that neither is needed to tell two series apart."""

    colour: str
    shape: tuple[tuple[float, float], ...]

    @classmethod
    def number(cls, n: int) -> Look:
        return cls(COLOURS[n % len(COLOURS)], SHAPES[n % len(SHAPES)])

    def at(self, x: float, y: float, *, hollow: bool) -> str:
        fill = GROUND if hollow else self.colour
        paint = f'fill="{fill}" stroke="{self.colour}" stroke-width="1.6"'
        if not self.shape:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}" {paint}/>'
        corners = " ".join(f"{x + RADIUS * dx:.1f},{y + RADIUS * dy:.1f}" for dx, dy in self.shape)
        return f'<polygon points="{corners}" {paint}/>'


@dataclass(frozen=True)
class Scale:
    """Points to pixels within a panel, with round ticks that the ends are of."""

    ticks: tuple[float, ...]
    digits: int
    width: float

    @classmethod
    def over(cls, values: Sequence[float], width: float) -> Scale:
        low, high = min(0.0, *values), max(0.0, *values)
        rough = ((high - low) or 1.0) / max(2, width // 40)
        power = math.floor(math.log10(rough))
        step = next(s for s in (1.0, 2.0, 5.0, 10.0) if s * 10.0**power >= rough * (1 - 1e-9)) * 10.0**power
        first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        return cls(tuple(round(n * step, digits) for n in range(first, last + 1)), digits, width)

    def __call__(self, value: float) -> float:
        return (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0]) * self.width

    def name(self, tick: float) -> str:
        return "0" if tick == 0 else signed(tick, self.digits)


@dataclass(frozen=True)
class _Entry:
    """One of the legend: ``line`` counts from 0."""

    name: str
    look: Look
    hollow: bool
    x: float
    line: int


class _Layout:
    """Where everything stands, in pixels."""

    def __init__(self, marks: Sequence[Mark], rows: Mapping[str, str], looks: Mapping[str, Look]) -> None:
        self.rows = list(rows)
        self.panels = list(dict.fromkeys(mark.panel for mark in marks))
        self.series = [name for name in looks if any(mark.series == name for mark in marks)]
        self.panel_width = max(PANEL, (WHOLE - BETWEEN * (len(self.panels) - 1)) / len(self.panels))
        self.left = MARGIN + LETTER * max(len(text) for row in rows.items() for text in row) + GAP
        self.width = self.side(len(self.panels)) - BETWEEN + GAP + MARGIN
        letters = int(self.panel_width / LETTER)
        self.heads = [textwrap.wrap(panel, letters, break_on_hyphens=False) for panel in self.panels]
        self.legend = _legend(self, marks, looks)
        self.head = LEGEND + LINE * len({entry.line for entry in self.legend})
        self.top = self.head + LINE * max(len(head) for head in self.heads) + 6
        self.each = max(32, APART * (len(self.series) + 1))
        self.bottom = self.top + self.each * len(rows)
        self.height = self.bottom + 46

    def side(self, panel: int) -> float:
        return self.left + panel * (self.panel_width + BETWEEN)

    def y(self, mark: Mark) -> float:
        """The middle of its row, the series of a row one below the other."""
        middle = self.top + self.each * (self.rows.index(mark.row) + 0.5)
        return middle + APART * (self.series.index(mark.series) - (len(self.series) - 1) / 2)


def forest(
    marks: Sequence[Mark], *, title: str, subtitle: str, rows: Mapping[str, str], looks: Mapping[str, Look], axis: str
) -> str:
    """The figure. ``rows`` are the judged sets from top to bottom, each with what stands below its name; ``looks`` the
    series in the order of the legend."""
    place = _Layout(marks, rows, looks)
    scale = Scale.over([v for mark in marks for v in (mark.low, mark.high)], place.panel_width)
    wide, high = f"{place.width:.0f}", f"{place.height:.0f}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" '
        f'role="img" font-family="sans-serif" font-size="12" fill="{INK}"><title>{escape(title)}</title>',
        f'<rect width="100%" height="100%" fill="{GROUND}"/>',
        _text(MARGIN, TITLE, title, size=14),
        _text(MARGIN, TITLE + LINE + 2, subtitle, fill=QUIET),
        *(part for entry in place.legend for part in _entry(entry)),
        *_names(place, rows),
    ]
    for number, panel in enumerate(place.panels):
        side = place.side(number)
        for line, text in enumerate(place.heads[number]):
            y = place.head + LINE * line + 11
            out.append(_text(side + place.panel_width / 2, y, text, anchor="middle", size=11))
        out += _axis(place, scale, side)
        for mark in marks:
            if mark.panel == panel:
                out += _mark(mark, looks[mark.series], scale, side, place.y(mark))
    out.append(_text((place.left + place.width - MARGIN - GAP) / 2, place.bottom + 36, axis, anchor="middle"))
    return "\n".join([*out, "</svg>\n"])


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, fill: str = INK) -> str:
    look = f'text-anchor="{anchor}" font-size="{size}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'


def _line(x: tuple[float, float], y: tuple[float, float], colour: str, width: float = 1.0) -> str:
    return (
        f'<line x1="{x[0]:.1f}" x2="{x[1]:.1f}" y1="{y[0]:.1f}" y2="{y[1]:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
    )


def _legend(place: _Layout, marks: Sequence[Mark], looks: Mapping[str, Look]) -> list[_Entry]:
    """Each series, where there are several; then what a filled and what a hollow marker is."""
    named = [(name, looks[name], False) for name in place.series if len(place.series) > 1]
    shapes = Look(QUIET, SHAPES[0]) if named else looks[place.series[0]]
    for hollow in sorted({mark.hollow for mark in marks}):
        named.append(("hollow: in-domain" if hollow else "filled: out of domain", shapes, hollow))
    found: list[_Entry] = []
    line, x = 0, MARGIN + RADIUS
    for name, look, hollow in named:
        end = x + 10 + LETTER * len(name)
        if end > place.width and found:
            line, x, end = line + 1, MARGIN + RADIUS, MARGIN + RADIUS + end - x
        found.append(_Entry(name, look, hollow, x, line))
        x = end + GAP
    return found


def _entry(entry: _Entry) -> list[str]:
    y = LEGEND + LINE * entry.line
    return [entry.look.at(entry.x, y - 4, hollow=entry.hollow), _text(entry.x + 10, y, entry.name)]


def _names(place: _Layout, rows: Mapping[str, str]) -> list[str]:
    """Every other row on a stripe, and the judged sets' names."""
    out, right = [], place.left - GAP
    for number, (name, note) in enumerate(rows.items()):
        y = place.top + place.each * number
        if number % 2 == 0:
            out.append(
                f'<rect x="{MARGIN}" y="{y:.1f}" width="{place.width - 2 * MARGIN:.1f}" height="{place.each}" '
                f'fill="{STRIPE}"/>'
            )
        out += [
            _text(right, y + place.each / 2 - 2, name, anchor="end"),
            _text(right, y + place.each / 2 + 12, note, anchor="end", size=11, fill=QUIET),
        ]
    return out


def _axis(place: _Layout, scale: Scale, side: float) -> list[str]:
    """A panel's ticks and lines, that of no difference the darkest."""
    out = []
    for tick in scale.ticks:
        x = side + scale(tick)
        colour = INK if tick == 0 else GRID
        out.append(_line((x, x), (place.top, place.bottom), colour))
        out.append(_text(x, place.bottom + 16, scale.name(tick), anchor="middle", size=11, fill=QUIET))
    return out


def _mark(mark: Mark, look: Look, scale: Scale, side: float, y: float) -> list[str]:
    """The interval, and the marker upon it."""
    ends = side + scale(mark.low), side + scale(mark.high)
    return [_line(ends, (y, y), look.colour, 1.6), look.at(side + scale(mark.value), y, hollow=mark.hollow)]
