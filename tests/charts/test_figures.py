"""The figures: what they plot, and that a user's text stays text."""

from __future__ import annotations

import pytest

from cdp.charts import evidence, results, style
from cdp.principle import differences, threshold


def test_histogram_shares_and_the_last_bar() -> None:
    chart = evidence.cw_histogram([0, 1, 2, 1])
    assert chart.data[0].y[:4] == pytest.approx([0, 25, 50, 25])
    assert evidence.cw_histogram([0] * 40 + [4]).data[0].y[30] == pytest.approx(100)
    assert {shape.x0 for shape in chart.layout.shapes} == {7, 10}


def test_a_method_has_one_colour_whatever_stands_beside_it() -> None:
    alone = style.by_method({"mine": "paraphrase"})
    both = style.by_method({"theirs": "diverse", "mine": "paraphrase", "more": "paraphrase", "unknown": ""})
    assert both["mine"] == alone["mine"] == style.METHOD_COLOURS["paraphrase"]
    assert both["theirs"] == style.METHOD_COLOURS["diverse"]
    assert len(set(both.values())) == 4


def test_few_steps_stand_at_whole_numbers() -> None:
    assert results.curves({"a": {1: 2.0, 3: 1.0}}, "loss").layout.xaxis.dtick == 1
    two = results.curves({"a": {1: 2.0, 300: 1.0}, "b": {1: 3.0, 2: 2.5}}, "loss")
    assert [(line.name, list(line.x), list(line.y)) for line in two.data] == [
        ("a", [1, 300], [2.0, 1.0]), ("b", [1, 2], [3.0, 2.5]),
    ]  # fmt: skip
    assert two.layout.showlegend
    assert len({line.line.color for line in two.data}) == 2


def test_gains() -> None:
    found = [results.GainPoint("a", 5.0, 3.0, 7.5), results.GainPoint("b", -1.0, -2.0, 0.5)]
    points = results.gains(found, x="points").data[0]
    assert list(points.error_x.array) == [2.5, 1.5]
    assert list(points.error_x.arrayminus) == [2.0, 1.0]
    assert points.marker.color[0] != points.marker.color[1]


def test_evidence_shows_every_difference_and_where_the_user_stands() -> None:
    chart = evidence.difference_against_cw(differences(), threshold(), here=9.0)
    assert sum(len(t.x) for t in chart.data if t.mode == "markers") == 56
    assert any(shape.showlegend and shape.name == "your queries, CW 9.00" for shape in chart.layout.shapes)


def test_names_made_of_markup_are_shown_as_text() -> None:
    hostile = "<b onmouseover=alert(1)>x</b>"
    chart = results.gains([results.GainPoint(hostile, 10.0, 9.0, 11.0)], x="points")
    assert "<b onmouseover" not in chart.layout.yaxis.ticktext[0]
    assert style.plain("a" * 100, 10) == "aaaaaaaaa…"
