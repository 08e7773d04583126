"""A study's figures, from made-up records."""

from __future__ import annotations

from cdp.charts import holds as figures
from cdp.charts.evidence import difference_against_cw
from cdp.principle import differences, threshold
from tests.studies.support import BENCHMARKS, study


def made(**settings: object):  # type: ignore[no-untyped-def]
    return study(lambda b, s, m, w: 5.0 + (BENCHMARKS[b] - 8 if m > 1 else 0.0), **settings)


def test_scaling_has_a_line_per_way_of_training_and_the_untrained_level() -> None:
    report = made(weightings="none, cw")
    chart = figures.scaling(report, "hard")
    assert [trace.name for trace in chart.data] == ["tiny · human", "tiny · human · cw"]
    assert list(chart.data[0].x) == ["1", "2", "5"]
    assert list(chart.data[0].y) == [
        r.scores["hard"] for r in report.rows if r.pairs and r.condition.weighting == "none"
    ]
    assert len(chart.layout.shapes) == 1
    assert chart.layout.xaxis.title.text == "queries per document (Q/Doc)"
    assert figures.scaling(report, "hard", "passage").layout.xaxis.title.text == "queries per passage (Q/Doc)"


def test_the_published_scatter_holds_every_point_and_the_band() -> None:
    data = differences()
    chart = difference_against_cw(data, threshold(data))
    markers = [t for t in chart.data if t.mode == "markers"]
    assert sum(len(t.x) for t in markers) == len(data) == 56
    assert any("95% band, 4 datasets" in (t.name or "") for t in chart.data)
    assert any("zero at CW 7.91" in (t.name or "") for t in chart.data)
