"""The figures: one for each study and comparison, every difference with its own marker where its value is."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from cdp.studies import StudyReport
from cdp.studies.gains import PARAPHRASE, SCALING, WEIGHTING, Gain
from reproduction import figures, svg
from tests.reproduction.support import gain, report

SVG = "{http://www.w3.org/2000/svg}"
SETS = ("simple", "middle", "complex")


def drawn(study: StudyReport, comparison: str, plan: str = "plan") -> ElementTree.Element:
    return ElementTree.fromstring(figures.files({plan: study})[f"{comparison}-{plan}.svg"])


def markers(figure: ElementTree.Element) -> list[ElementTree.Element]:
    """Those in the panels; the legend's stand above every line."""
    top = min(float(line.attrib["y1"]) for line in figure.iter(f"{SVG}line"))
    return [mark for kind in ("circle", "polygon") for mark in figure.iter(SVG + kind) if middle(mark)[1] > top]


def middle(mark: ElementTree.Element) -> tuple[float, float]:
    if "cx" in mark.attrib:
        return float(mark.attrib["cx"]), float(mark.attrib["cy"])
    corners = [[float(v) for v in corner.split(",")] for corner in mark.attrib["points"].split()]
    xs, ys = zip(*corners, strict=True)
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


def words(figure: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in figure.iter(f"{SVG}text")]


def grid(comparison: str, **facts: object) -> list[Gain]:
    return [
        gain(comparison, name, (-1.0 + n, 0.5 + n), cw=5.0 + n, **facts)
        for n, name in enumerate(SETS)
    ]  # fmt: skip


def test_each_study_and_comparison_has_a_figure_and_its_rows() -> None:
    one = report([*grid(SCALING), *grid(PARAPHRASE)])
    other = report([*grid(SCALING)[:2], *grid(WEIGHTING, weighting="cw")], in_domain=["simple"])
    made = figures.files({"one": one, "other": other})
    stems = {f"{SCALING}-one", f"{PARAPHRASE}-one", f"{SCALING}-other", f"{WEIGHTING}-other"}
    assert set(made) == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "csv")}
    rows = list(csv.DictReader(io.StringIO(made[f"{SCALING}-other.csv"])))
    assert [(row["Benchmark"], row["Domain"]) for row in rows] == [("simple", "in-domain"), ("middle", "out of domain")]
    text = "\n".join(figures.lines({"one": one, "other": other}, made, "folder"))
    assert all(f"](folder/{name})" in text for name in made)
    assert made == figures.files({"one": one, "other": other}), "the same bytes"


def test_two_series_differ_in_colour_and_shape_and_hide_none_of_each_other() -> None:
    figure = drawn(report([g for n in (2, 3, 5) for g in grid(SCALING, per_doc=n)]), SCALING)
    found = markers(figure)
    assert len(found) == 9
    assert len({mark.attrib["stroke"] for mark in found}) == 3
    assert len({(mark.tag, len(mark.get("points", "").split())) for mark in found}) == 3
    heights = sorted(middle(mark)[1] for mark in found)
    assert min(b - a for a, b in pairwise(heights)) >= 2 * svg.RADIUS
    assert [word for word in words(figure) if word in SETS] == list(SETS), "in the order of CW, in full"
    assert {"CW 5.00", "Q/Doc 2", "Q/Doc 3", "Q/Doc 5"} <= set(words(figure))


def test_a_hollow_marker_is_in_domain() -> None:
    figure = drawn(report(grid(SCALING), in_domain=["middle"]), SCALING)
    hollow = [mark.attrib["fill"] == svg.GROUND for mark in sorted(markers(figure), key=lambda mark: middle(mark)[1])]
    assert hollow == [False, True, False]
    assert {"hollow: in-domain", "filled: out of domain"} <= set(words(figure))
    assert "hollow: in-domain" not in words(drawn(report(grid(SCALING)), SCALING))


def test_what_a_judged_set_has_two_of_is_a_panel_and_what_it_has_one_of_stands_with_it() -> None:
    sources = [g for name in ("human on b", "human on a") for g in grid(SCALING, source=name)]
    assert [w for w in words(drawn(report(sources), SCALING)) if w.startswith("human on")] == [
        "human on a",
        "human on b",
    ]
    apart = [gain(SCALING, name, (-1, 1), source=f"human on {name}") for name in SETS]
    found = words(drawn(report(apart), SCALING))
    assert all(f"CW 6.00, human on {name}" in found for name in SETS)


def test_a_number_of_queries_looks_the_same_in_every_figure() -> None:
    reports = {
        "one": report(grid(SCALING, per_doc=2) + grid(SCALING, per_doc=5)),
        "other": report(grid(SCALING, per_doc=5)),
    }
    made = figures.files(reports)
    both = [
        {m.attrib["stroke"] for m in markers(ElementTree.fromstring(made[f"{SCALING}-{plan}.svg"]))} for plan in reports
    ]
    assert both[1] < both[0]


@pytest.mark.parametrize(
    ("values", "width", "names"),
    [
        ((-5.55, 14.9), 560, ["−6", "−4", "−2", "0", "+2", "+4", "+6", "+8", "+10", "+12", "+14", "+16"]),
        ((-7.3, 8.9), 160, ["−10", "−5", "0", "+5", "+10"]),
        ((0.01, 0.04), 160, ["0", "+0.01", "+0.02", "+0.03", "+0.04"]),
        ((-0.3, -0.1), 160, ["−0.3", "−0.2", "−0.1", "0"]),
        ((0.0, 0.0), 160, ["0", "+0.5"]),
    ],
)
def test_ticks_are_round_and_span_zero_and_all_values(
    values: tuple[float, float], width: float, names: list[str]
) -> None:
    scale = svg.Scale.over(values, width)
    assert [scale.name(tick) for tick in scale.ticks] == names
    assert 0 <= scale(values[0]) <= scale(values[1]) <= width


def test_a_marker_stands_at_its_value_with_its_interval_on_white() -> None:
    figure = drawn(report([gain(SCALING, "a", (1.0, 4.0))]), SCALING)
    ((x, y),) = map(middle, markers(figure))
    (own,) = [line for line in figure.iter(f"{SVG}line") if line.attrib["y1"] == line.attrib["y2"]]
    low, high = float(own.attrib["x1"]), float(own.attrib["x2"])
    assert (x, y) == pytest.approx(((low + high) / 2, float(own.attrib["y1"])), abs=0.1)
    zero = next(float(text.attrib["x"]) for text in figure.iter(f"{SVG}text") if text.text == "0")
    assert low - zero == pytest.approx((high - low) / 3, abs=0.1)
    assert figure.find(f"{SVG}rect").attrib == {"width": "100%", "height": "100%", "fill": "#ffffff"}  # type: ignore[union-attr]


def test_a_legend_too_wide_for_the_figure_goes_on_in_a_second_line() -> None:
    names = [f"a-weighting-of-a-long-name-{n}" for n in range(4)]
    figure = drawn(report([g for name in names for g in grid(WEIGHTING, weighting=name)]), WEIGHTING)
    entries = [text for text in figure.iter(f"{SVG}text") if "weighting a-" in (text.text or "")]
    ends = [float(text.attrib["x"]) + svg.LETTER * len(text.text or "") for text in entries]
    assert max(ends) <= float(figure.attrib["width"])
    assert len({text.attrib["y"] for text in entries}) == 2
