"""A chart for a paper: on white whatever the theme, at a column's width, with every number behind it."""

from __future__ import annotations

import csv
import io

import pytest

from cdp.charts import style
from cdp.charts.results import GainPoint, gains, ndcg_bars

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


def test_what_is_not_significant_has_an_open_symbol() -> None:
    figure = gains([GainPoint("one", "mine", 3.0, 1.0, 6.0, True), GainPoint("two", "mine", 1.0, -1.0, 3.0, False)])
    assert [symbol.endswith("-open") for symbol in figure.data[0].marker.symbol] == [False, True]
