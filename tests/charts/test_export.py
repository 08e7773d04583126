"""A chart for a paper: on white whatever the theme."""

from __future__ import annotations

from cdp.charts import style
from cdp.charts.results import GainPoint, gains

FOUND = [GainPoint("<b>mine</b>", 3.0, 1.0, 6.0, True), GainPoint("two", 1.0, -1.0, 3.0, False)]


def test_the_paper_version_is_dark_on_white_and_leaves_the_page_alone() -> None:
    figure = gains(FOUND, x="points")
    before = figure.to_json()
    drawn = style.paper(figure)
    assert drawn.layout.paper_bgcolor == drawn.layout.plot_bgcolor == "#ffffff"
    assert drawn.layout.font.color == style.INK
    assert drawn.data[0].x == figure.data[0].x
    assert figure.to_json() == before


def test_what_is_not_significant_has_an_open_symbol() -> None:
    figure = gains(FOUND, x="points")
    assert [symbol.endswith("-open") for symbol in figure.data[0].marker.symbol] == [False, True]
