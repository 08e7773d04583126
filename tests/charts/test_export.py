"""A chart for a paper: on white whatever the theme, at a column's width, with every number behind it."""

from __future__ import annotations

import csv
import io

import pytest

from cdp.charts import style
from cdp.charts.results import GainPoint, gains, ndcg_bars, parallel
from cdp.charts.style import FAINT

SCORES = {"base": {"one": 40.0, "two": 50.0}, "<b>mine</b>": {"one": 45.5}}


def rows(figure: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(style.to_csv(figure))))  # type: ignore[arg-type]


def test_every_value_is_in_the_data_and_names_are_as_written() -> None:
    found = rows(ndcg_bars(SCORES))
    assert [(r["series"], r["x"], float(r["y"])) for r in found] == [
        ("base", "one", 40.0),
        ("base", "two", 50.0),
        ("<b>mine</b>", "one", 45.5),
    ]


def test_intervals_are_given_by_their_bounds() -> None:
    (found,) = rows(gains([GainPoint("one", "mine", 3.0, 1.0, 6.0)]))
    assert (float(found["x"]), float(found["low"]), float(found["high"]), found["axis"]) == (3.0, 1.0, 6.0, "x")


@pytest.mark.parametrize("width", list(style.WIDTHS))
def test_the_paper_version_is_dark_on_white_and_leaves_the_page_alone(width: str) -> None:
    figure = ndcg_bars(SCORES)
    before = figure.to_json()
    drawn = style.paper(figure, width)
    assert drawn.layout.paper_bgcolor == drawn.layout.plot_bgcolor == "#ffffff"
    assert drawn.layout.font.color == style.INK
    assert drawn.layout.width == style.WIDTHS[width]
    assert style.to_csv(drawn) == style.to_csv(figure)
    assert figure.to_json() == before


def test_focus_fades_the_others_and_clicks_know_whose_they_are() -> None:
    figure = ndcg_bars(SCORES, focus=["base"], marks={("base", "two"): " **"})
    assert [trace.opacity for trace in figure.data] == [1.0, FAINT]
    assert [set(trace.customdata) for trace in figure.data] == [{"base"}, {"<b>mine</b>"}]
    assert list(figure.data[0].text) == ["40.00", "50.00 **"]


def test_what_is_not_significant_has_an_open_symbol() -> None:
    figure = gains(
        [GainPoint("one", "mine", 3.0, 1.0, 6.0, True, "e1"), GainPoint("two", "mine", 1.0, -1.0, 3.0, False, "e2")]
    )
    assert [symbol.endswith("-open") for symbol in figure.data[0].marker.symbol] == [False, True]
    assert [data[2] for data in figure.data[0].customdata] == ["e1", "e2"]


def test_parallel_axes_hold_numbers_to_scale_words_apart_and_gaps_at_the_foot() -> None:
    figure = parallel(
        {
            "Epochs": {"a": 1, "b": 3, "c": 5},
            "Weighting": {"a": "none", "b": "cw", "c": "cw"},
            "Batch size": {"a": None, "b": 64, "c": 128},
        }
    )
    heights = {trace.name: list(trace.y) for trace in figure.data}
    assert [heights[name][0] for name in "abc"] == [0.0, 0.5, 1.0]
    assert heights["b"][1] == heights["c"][1] != heights["a"][1]
    assert heights["a"][2] == 0.0 < heights["b"][2] < heights["c"][2] == 1.0
    assert len({(trace.line.dash, trace.marker.symbol[0]) for trace in figure.data}) == 3
