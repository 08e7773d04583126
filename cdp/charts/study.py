"""A study's figures: scores by Q/Doc, gains by benchmark, what each way of training costs and brings."""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from cdp.charts.evidence import difference_against_cw
from cdp.charts.style import DASHES, MUTED, PALETTE, SYMBOLS, across, by_method, figure, plain
from cdp.studies.gains import TITLES, Gain
from cdp.studies.plan import UNTRAINED
from cdp.studies.report import StudyReport, StudyRow
from cdp.studies.text import to_markdown


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


_ESCAPED = re.compile(r"\\([\\`*\[\]!])")

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1f2933; max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.2rem; }
.table { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border-bottom: 1px solid #d5dbe1; padding: 4px 10px; text-align: left; vertical-align: top; min-width: 3rem; }
th:first-child, td:first-child { position: sticky; left: 0; background: #fff; min-width: 8rem; max-width: 16rem; }
td { overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
@media print { .table { overflow: visible; } table { font-size: 9px; } th, td { position: static !important; } }
figure { margin: 1.2rem 0; } figcaption { color: #52606d; font-size: 14px; }
"""


def html(report: StudyReport) -> str:
    """The report as a page. Plotly's script is inside, so that it opens without a network."""
    parts = to_markdown(report).split("\n## ")
    head, sections = parts[0], dict(part.split("\n", 1) for part in parts[1:])
    body = [_markdown(head)]
    drawn = 0
    for title, text in sections.items():
        body.append(f"<h2>{_inline(title)}</h2>")
        body.append(_markdown(text))
        for chart, caption in _figures(report, title):
            drawn += 1
            body.append(_figure(chart, caption, f"figure-{drawn}"))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaping.escape(report.name)}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _figures(report: StudyReport, title: str) -> list[tuple[go.Figure, str]]:
    """The figures that belong under a heading of the report."""
    figures: list[tuple[go.Figure, str]] = []
    if title == "NDCG@10" and any(row.pairs for row in report.rows):
        figures += [
            (scaling(report, b.name), f"{b.name}: NDCG@10 by Q/Doc, ± standard deviation over seeds.")
            for b in report.benchmarks
        ]
    for comparison, name in TITLES.items():
        if title == name and report.of(comparison):
            caption = f"{name}: 95% intervals over queries and seeds; full symbols are significant."
            figures.append((gains(report.of(comparison)), caption))
    if title == "Relation to content words" and report.differences:
        chart = difference_against_cw(report.differences, report.threshold, band=True)
        figures.append((chart, "Each difference of this study at its benchmark's CW. Shaded: the published advice."))
    if title == "Cost" and any(row.pairs and row.average is not None for row in report.rows):
        figures.append((cost_efficiency(report), "Mean NDCG@10 over all benchmarks by training queries."))
    return figures


def _figure(chart: go.Figure, caption: str, name: str) -> str:
    """``name`` is the element's id: one that Plotly draws by chance would make each report another file."""
    chart.update_layout(template="plotly_white")
    drawn = chart.to_html(
        full_html=False, include_plotlyjs=False, config={"displaylogo": False, "responsive": True}, div_id=name
    )
    return f"<figure>{drawn}<figcaption>{escaping.escape(caption)}</figcaption></figure>"


def _markdown(text: str) -> str:
    """The little Markdown that reports are written in: a title, lists, tables, paragraphs. All else shows as it is."""
    out: list[str] = []
    lines = [line.rstrip() for line in text.strip().splitlines()]
    i = 0
    while i < len(lines):
        line = lines[i]
        block = [line]
        if line.startswith(("- ", "|")):
            first = line[0]
            while i + 1 < len(lines) and lines[i + 1].startswith(first):
                i += 1
                block.append(lines[i])
            out.append(_list(block) if first == "-" else _table(block))
        elif line.startswith("# "):
            out.append(f"<h1>{_inline(line[2:])}</h1>")
        elif line:
            out.append(f"<p>{_inline(line)}</p>")
        i += 1
    return "\n".join(out)


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"


def _table(lines: Sequence[str]) -> str:
    head, rows = _cells(lines[0]), [_cells(line) for line in lines[2:]]
    out = [
        '<div class="table" tabindex="0"><table><thead><tr>',
        *(f"<th>{_inline(cell)}</th>" for cell in head),
        "</tr></thead><tbody>",
    ]
    for row in rows:
        out.append("<tr>" + "".join(_td(cell) for cell in row) + "</tr>")
    return "".join([*out, "</tbody></table></div>"])


def _td(cell: str) -> str:
    number = cell.lstrip("*+−-–").strip()[:1].isdigit()
    return f'<td class="number">{_inline(cell)}</td>' if number else f"<td>{_inline(cell)}</td>"


def _cells(line: str) -> list[str]:
    masked = line.strip().strip("|").replace("\\|", "\0")
    return [cell.strip().replace("\0", "|") for cell in masked.split("|")]


def _inline(text: str) -> str:
    """Escaped text; ``**bold**`` cells are read, and what Markdown escapes is what it stands for."""
    text = text.strip()
    bold = text.startswith("**") and text.endswith("**") and len(text) > 4
    plain = escaping.unescape(_ESCAPED.sub(r"\1", text[2:-2] if bold else text))
    safe = escaping.escape(plain, quote=False)
    return f"<strong>{safe}</strong>" if bold else safe
