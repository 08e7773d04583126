"""A study's report as one HTML file that needs nothing else: text, tables, and figures that answer to the pointer."""

from __future__ import annotations

import html as escaping
import re
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from cdp.charts import study
from cdp.charts.evidence import difference_against_cw
from cdp.studies.gains import TITLES
from cdp.studies.report import StudyReport
from cdp.studies.text import to_markdown

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
            (study.scaling(report, b.name), f"{b.name}: NDCG@10 by Q/Doc, ± standard deviation over seeds.")
            for b in report.benchmarks
        ]
    for comparison, name in TITLES.items():
        if title == name and report.of(comparison):
            caption = f"{name}: 95% intervals over queries and seeds; full symbols are significant."
            figures.append((study.gains(report.of(comparison)), caption))
    if title == "Relation to content words" and report.differences:
        chart = difference_against_cw(report.differences, report.threshold, band=True)
        figures.append((chart, "Each difference of this study at its benchmark's CW. Shaded: the published advice."))
    if title == "Cost" and any(row.pairs and row.average is not None for row in report.rows):
        figures.append((study.cost_efficiency(report), "Mean NDCG@10 over all benchmarks by training queries."))
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
