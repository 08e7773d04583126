"""The chart of differences on a narrow screen: every difference in figures, names that are cut alike kept apart."""

from __future__ import annotations

from cdp.charts.results import GainPoint, gains


def test_each_difference_stands_in_figures_below_its_name() -> None:
    figure = gains([GainPoint("<b>mine</b>", 3.04, 1.0, 6.0), GainPoint("two", -1.0, -3.25, 0.5)], x="points", digits=1)
    assert list(figure.layout.yaxis.ticktext) == [
        "&lt;b&gt;mine&lt;/b&gt;<br><b>+3.0</b> (+1.0 to +6.0)",
        "two<br><b>−1.0</b> (−3.2 to +0.5)",
    ]
    assert figure.layout.yaxis.range == (1.5, -0.5), "the first on top"


def test_names_that_are_the_same_once_cut_keep_a_row_each() -> None:
    long = "static-minilm · diverse × 5 · equal pairs · best on a benchmark"
    figure = gains([GainPoint(f"{long} {n}", n, n - 1, n + 1) for n in range(3)], x="points")
    assert len(set(figure.data[0].y)) == 3
