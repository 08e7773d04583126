"""A chart for a paper: on white whatever the theme, with every number behind it."""

from __future__ import annotations

import csv
import io

from cdp.charts import style
from cdp.charts.results import GainPoint, gains

FOUND = [GainPoint("<b>mine</b>", 3.0, 1.0, 6.0, True), GainPoint("two", 1.0, -1.0, 3.0, False)]


def rows(figure: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(style.to_csv(figure))))  # type: ignore[arg-type]


def test_every_value_is_in_the_data_with_its_bounds() -> None:
    found = [r for r in rows(gains(FOUND, x="points")) if r["low"]]
    assert [(r["y"], float(r["x"]), float(r["low"]), float(r["high"]), r["axis"]) for r in found] == [
        ("<b>mine</b>", 3.0, 1.0, 6.0, "x"),
        ("two", 1.0, -1.0, 3.0, "x"),
    ]


def test_the_paper_version_is_dark_on_white_and_leaves_the_page_alone() -> None:
    figure = gains(FOUND, x="points")
    before = figure.to_json()
    drawn = style.paper(figure)
    assert drawn.layout.paper_bgcolor == drawn.layout.plot_bgcolor == "#ffffff"
    assert drawn.layout.font.color == style.INK
    assert style.to_csv(drawn) == style.to_csv(figure)
    assert figure.to_json() == before


def test_what_is_not_significant_has_an_open_symbol() -> None:
    figure = gains(FOUND, x="points")
    assert [symbol.endswith("-open") for symbol in figure.data[0].marker.symbol] == [False, True]
