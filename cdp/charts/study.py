"""A study's figures: scores by Q/Doc, gains by benchmark, what each way of training costs and brings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from cdp.charts.style import DASHES, MUTED, PALETTE, SYMBOLS, across, by_method, figure, plain
from cdp.studies.gains import Gain
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyReport, StudyRow


def scaling(report: StudyReport, benchmark: str) -> go.Figure:
    """NDCG@10 on one benchmark by Q/Doc, one line per way of training, ± the standard deviation over seeds."""
    chart = figure(x="queries per document (Q/Doc)", y="NDCG@10 (%)", height=320)
    trained = [row for row in report.rows if row.source != UNTRAINED and benchmark in row.scores]
    series = dict.fromkeys(map(_way, trained))
    palette = _palette(report, series)
    for i, key in enumerate(series):
        rows = sorted((r for r in trained if _way(r) == key), key=lambda r: r.per_doc)
        chart.add_scatter(
            x=[str(row.per_doc) for row in rows],
            y=[row.scores[benchmark] for row in rows],
            mode="lines+markers",
            name=_series(*key),
            line={"color": palette[_series(*key)], "dash": DASHES[i % len(DASHES)]},
            marker={"size": 8, "symbol": SYMBOLS[i % len(SYMBOLS)]},
            error_y={"type": "data", "array": [row.spread.get(benchmark, 0.0) for row in rows], "thickness": 1.2},
            customdata=[(row.pairs, row.n_seeds) for row in rows],
            hovertemplate="Q/Doc %{x}: %{y:.2f}<br>%{customdata[0]:,} pairs, %{customdata[1]} seeds<extra></extra>",
        )
    for row in report.rows:
        if row.source == UNTRAINED and benchmark in row.scores:
            across(
                chart,
                y=row.scores[benchmark],
                line={"color": MUTED, "dash": "dash", "width": 1},
                annotation={"text": plain(row.name, 40), "font": {"color": MUTED}},
            )
    chart.update_xaxes(type="category")
    return chart


def gains(differences: Sequence[Gain]) -> go.Figure:
    """The differences of one comparison with their 95% intervals over queries; full symbols are significant."""
    chart = figure(
        x="difference in NDCG@10 (points)",
        y="",
        height=120 + 26 * max(1, len(differences)),
        legend=len({g.benchmark for g in differences}) > 1,
    )
    for i, benchmark in enumerate(dict.fromkeys(g.benchmark for g in differences)):
        rows = [g for g in differences if g.benchmark == benchmark]
        symbol = SYMBOLS[i % len(SYMBOLS)]
        chart.add_scatter(
            x=[g.points for g in rows],
            y=[f"{plain(g.condition, 40)}, Q/Doc {g.per_doc}" for g in rows],
            mode="markers",
            name=f"{plain(benchmark, 32)} (CW {rows[0].cw:.1f})",
            marker={
                "size": 10,
                "symbol": [symbol if g.significant else f"{symbol}-open" for g in rows],
                "color": PALETTE[i % len(PALETTE)],
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [g.high - g.points for g in rows],
                "arrayminus": [g.points - g.low for g in rows],
                "thickness": 1.2,
            },
            customdata=[(g.p_holm, g.n_seeds, g.n_queries) for g in rows],
            hovertemplate=f"{plain(benchmark)}<br>%{{y}}: %{{x:+.2f}} points, corrected p %{{customdata[0]:.3f}}<br>"
            "%{customdata[1]} seeds, %{customdata[2]} queries<extra></extra>",
        )
    across(chart, x=0, line={"color": MUTED, "dash": "dash", "width": 1.5})
    chart.update_yaxes(autorange="reversed")
    chart.update_layout(scattermode="group")
    return chart


def cost_efficiency(report: StudyReport) -> go.Figure:
    """Mean NDCG@10 over all benchmarks against the number of training queries, one line per way of training."""
    chart = figure(x="training queries", y="mean NDCG@10 (%)", height=340)
    trained = [row for row in report.rows if row.pairs and row.average is not None]
    series = dict.fromkeys(map(_way, trained))
    palette = _palette(report, series)
    tops: dict[int, float] = {}
    for row in trained:
        tops[row.pairs] = max(tops.get(row.pairs, 0.0), row.average or 0.0)
    for i, key in enumerate(series):
        rows = sorted((r for r in trained if _way(r) == key), key=_by_cost)
        chart.add_scatter(
            x=[row.pairs for row in rows],
            y=[row.average for row in rows],
            mode="lines+markers+text",
            text=[f"Q/Doc {row.per_doc}" if row.average == tops[row.pairs] else "" for row in rows],
            textposition="top center",
            cliponaxis=False,
            name=_series(*key),
            line={"color": palette[_series(*key)], "dash": DASHES[i % len(DASHES)]},
            marker={"size": 8, "symbol": SYMBOLS[i % len(SYMBOLS)]},
            customdata=[(row.documents, row.seconds, row.per_doc) for row in rows],
            hovertemplate="Q/Doc %{customdata[2]}: %{y:.2f}<br>%{x:,} queries on %{customdata[0]:,} documents, "
            "%{customdata[1]:.0f} s<extra></extra>",
        )
    return chart


def _way(row: StudyRow) -> tuple[str, str, str, str]:
    return row.retriever, row.source, row.weighting, row.held


def _palette(report: StudyReport, series: Iterable[tuple[str, str, str, str]]) -> dict[str, str]:
    """A colour for each way of training (retriever, source, weighting), by the method of its source."""
    kinds = {source.label: source.kind for source in report.sources}
    return by_method({_series(*key): kinds.get(key[1], "") for key in series})


def _by_cost(row: StudyRow) -> tuple[int, int]:
    return row.pairs, row.per_doc


def _series(retriever: str, source: str, weighting: str, held: str) -> str:
    weights = "" if weighting == "none" else f", {weighting}"
    return plain(f"{retriever}, {source}{weights}{f', {held}' if held else ''}", 48)
