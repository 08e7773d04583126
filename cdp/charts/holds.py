"""The paper's figures and tables, each drawn by one function from its numbers, published or own: *Does it hold here?*

``FIGURES`` says which published tables each stands beside, and which run it needs where nothing can be drawn yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from cdp.base.text import SEPARATOR, condition_name, signed
from cdp.charts.evidence import difference_against_cw
from cdp.charts.style import DASHES, GAIN, LOSS, MUTED, PALETTE, SYMBOLS, by_method, figure, plain
from cdp.principle import Difference, threshold
from cdp.principle.evidence import DIVERSE
from cdp.results import numbers as of
from cdp.results.arms import AXES, FigureData
from cdp.results.numbers import Numbers

PER_ROW, PANEL_HEIGHT = 2, 260


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. ``tables`` are the published ones beside it, by label; ``numbers`` what it shows and ``draw`` how;
    ``needs`` the run that is missing where there are none, and ``page`` with ``params`` where that run is started."""

    name: str
    title: str
    tables: tuple[str, ...]
    numbers: Callable[[FigureData], Numbers]
    draw: Callable[[Numbers], go.Figure]
    needs: str
    page: str = "decide"
    params: Mapping[str, str] | None = None


# Shapes that several figures have.


def lines(
    numbers: Numbers, *, x: str, y: str, line: Sequence[str], panel: str, titles: tuple[str, str], log: bool = False
) -> go.Figure:
    """Lines of ``y`` over ``x``, one for each combination of ``line``, in a panel for each value of ``panel``."""
    from plotly.subplots import make_subplots

    panels = list(dict.fromkeys(str(row[panel]) for row in numbers))
    columns = min(PER_ROW, len(panels))
    deep = -(-len(panels) // columns)

    chart = figure(x=titles[0], y=titles[1], height=90 + PANEL_HEIGHT * deep)
    grid = make_subplots(rows=deep, cols=columns, subplot_titles=[plain(name, 40) for name in panels])
    chart = grid.update_layout(chart.layout)
    names = list(dict.fromkeys(_name(row, line) for row in numbers))
    methods = {_name(row, line): str(row.get("method", "")) for row in numbers}
    palette = by_method(methods)

    for at, title in enumerate(panels):
        for i, name in enumerate(names):
            rows = [row for row in numbers if str(row[panel]) == title and _name(row, line) == name]
            if not rows:
                continue
            chart.add_scatter(
                x=[row[x] for row in rows], y=[row[y] for row in rows],
                mode="lines+markers" if len(rows) > 1 else "markers",
                name=name, legendgroup=name, showlegend=title == _first_panel(numbers, line, name, panel),
                line={"color": palette[name], "dash": DASHES[i % len(DASHES)], "width": 2},
                marker={"symbol": SYMBOLS[i % len(SYMBOLS)], "size": 8, "color": palette[name]},
                error_y=_spread(rows), customdata=[_details(row, (x, y, panel, "sd")) for row in rows],
                hovertemplate=f"{name}<br>{titles[0]} %{{x}}: %{{y:.3~f}}<br>%{{customdata}}<extra></extra>",
                row=at // columns + 1, col=at % columns + 1,
            )  # fmt: skip

    chart.update_xaxes(automargin=True, zeroline=False, title_font={"size": 11})
    chart.update_yaxes(automargin=True, zeroline=False, title_font={"size": 11})

    # Each row of panels says what is upward, the last panel of each column what is to the right.
    for at in range(len(panels)):
        row, column = at // columns + 1, at % columns + 1
        chart.update_xaxes(title_text=titles[0] if at + columns >= len(panels) else "", row=row, col=column)
        chart.update_yaxes(title_text=titles[1] if column == 1 else "", row=row, col=column)

    chart.update_annotations(font={"size": 12})

    if log:
        chart.update_xaxes(type="log", autorange="reversed")

    return chart


def _name(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return plain(SEPARATOR.join(str(row[key]) for key in keys if row.get(key) not in (None, "")), 48)


def _first_panel(numbers: Numbers, line: Sequence[str], name: str, panel: str) -> str:
    return next(str(row[panel]) for row in numbers if _name(row, line) == name)


def _spread(rows: Numbers) -> dict[str, Any] | None:
    if not any(row.get("sd") for row in rows):
        return None
    return {"type": "data", "array": [row.get("sd") or 0.0 for row in rows], "thickness": 1.2}


def _details(row: Mapping[str, Any], shown: Sequence[str]) -> str:
    rest = (f"{key.replace('_', ' ')} {_text(value)}" for key, value in row.items() if key not in shown)
    return plain(", ".join(rest), 200)


def _text(value: Any) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def points(numbers: Numbers, *, x: str, y: str, name: Sequence[str], titles: tuple[str, str]) -> go.Figure:
    """A point for each row, named by ``name`` in the legend; the rest of the row on hover."""
    chart = figure(x=titles[0], y=titles[1], height=400)
    names = list(dict.fromkeys(_name(row, name) for row in numbers))
    palette = by_method({_name(row, name): str(row.get("method", "")) for row in numbers})
    for i, title in enumerate(names):
        rows = [row for row in numbers if _name(row, name) == title]
        chart.add_scatter(
            x=[row[x] for row in rows], y=[row[y] for row in rows], mode="markers+text", name=title,
            text=[f"×{row['per_doc']}" if row.get("per_doc") else "" for row in rows], textposition="top center",
            marker={"size": 10, "symbol": SYMBOLS[i % len(SYMBOLS)], "color": palette[title]}, error_y=_spread(rows),
            customdata=[_details(row, (x, y, "sd")) for row in rows],
            hovertemplate=f"{title}<br>({titles[0]} %{{x:.3f}}, %{{y:.2f}})<br>%{{customdata}}<extra></extra>",
        )  # fmt: skip
    return chart


def matrix(
    numbers: Numbers, *, row: str, column: str, value: str, signed_values: bool = False, note: str = ""
) -> go.Figure:
    """A table of numbers in colour: blue is more, orange less; two decimals. ``note`` names a second value in cells."""
    rows = list(dict.fromkeys(str(r[row]) for r in numbers))
    columns = list(dict.fromkeys(str(r[column]) for r in numbers))
    cells = {(str(r[row]), str(r[column])): r for r in numbers}

    def cell(name: str, title: str) -> str:
        found = cells.get((name, title))
        if found is None:
            return ""
        shown = signed(found[value]) if signed_values else f"{found[value]:.2f}"
        more = found.get(note) if note else None
        return shown if more is None else f"{shown} ({signed(more, 1)}%)"

    chart = figure(x="", y="", height=110 + 30 * len(rows), legend=False)
    held = [[cells[name, title][value] if (name, title) in cells else None for title in columns] for name in rows]
    scale = [[0.0, LOSS], [0.5, "#ffffff"], [1.0, GAIN]] if signed_values else [[0.0, "#ffffff"], [1.0, PALETTE[4]]]
    chart.add_heatmap(
        z=held, x=[plain(name, 32) for name in columns], y=[plain(name, 60) for name in rows], colorscale=scale,
        zmid=0 if signed_values else None, showscale=False, xgap=1, ygap=1, hoverongaps=False,
        text=[[cell(name, title) for title in columns] for name in rows], texttemplate="%{text}",
        textfont={"color": "#111111"}, hovertemplate="%{y}<br>%{x}: %{text}<extra></extra>",
    )  # fmt: skip
    chart.update_yaxes(autorange="reversed", showgrid=False)
    chart.update_xaxes(side="top", showgrid=False)
    return chart


def bars(numbers: Numbers, *, x: str, y: str, name: Sequence[str], titles: tuple[str, str]) -> go.Figure:
    """Bars of ``y`` at each ``x``, in groups by ``name``, with their numbers."""
    chart = figure(x=titles[0], y=titles[1], height=340, legend=bool(name))
    names = list(dict.fromkeys(_name(row, name) for row in numbers))
    for i, title in enumerate(names):
        rows = [row for row in numbers if _name(row, name) == title]
        chart.add_bar(
            x=[plain(str(row[x]), 40) for row in rows], y=[row[y] for row in rows], name=title, error_y=_spread(rows),
            marker={"color": PALETTE[i % len(PALETTE)]}, text=[_text(row[y]) for row in rows], textposition="auto",
            customdata=[_details(row, (x, y, "sd")) for row in rows],
            hovertemplate="%{x}: %{y:.2f}<br>%{customdata}<extra></extra>",
        )  # fmt: skip
    chart.update_xaxes(type="category")
    return chart


# One function per figure.

QDOC, NDCG, POINTS = "queries per document", "NDCG@10 (%)", "difference in NDCG@10 (points)"


def measures_over_qdoc(numbers: Numbers) -> go.Figure:
    return lines(numbers, x="per_doc", y="value", line=("method",), panel="measure", titles=(QDOC, ""))


def quality_against_diversity(numbers: Numbers) -> go.Figure:
    titles = ("paraphrase ratio (CE), lower is more diverse", "Dist-Sim, higher is closer to people")
    return points(numbers, x="ce", y="dist_sim", name=("method",), titles=titles)


def ndcg_over_ce(numbers: Numbers) -> go.Figure:
    titles = ("paraphrase ratio (CE), lower is more diverse", NDCG)
    return points(numbers, x="ce", y="ndcg", name=("retriever", "method", "benchmark"), titles=titles)


def ndcg_over_qdoc(numbers: Numbers) -> go.Figure:
    return lines(numbers, x="per_doc", y="ndcg", line=("retriever", "method"), panel="benchmark", titles=(QDOC, NDCG))


def documents_against_diversity(numbers: Numbers) -> go.Figure:
    """Documents on a reversed logarithmic axis: to the right fewer documents with more queries each."""
    titles = ("documents, fewer to the right", NDCG)
    drawn = [row for row in numbers if row["documents"]]
    chart = lines(drawn, x="documents", y="ndcg", line=("retriever", "method"), panel="benchmark", titles=titles,
                  log=True)  # fmt: skip
    panels = list(dict.fromkeys(row["benchmark"] for row in drawn))
    for row in numbers:
        if not row["documents"] and row["benchmark"] in panels:
            at = panels.index(row["benchmark"])
            chart.add_hline(
                y=row["ndcg"], line={"color": MUTED, "dash": "dash", "width": 1},
                row=at // PER_ROW + 1, col=at % PER_ROW + 1,
                annotation={"text": plain(f"{row['retriever']}, {row['method']}", 40), "font": {"color": MUTED}},
            )  # fmt: skip

    return chart


def documents_by_qdoc(numbers: Numbers) -> go.Figure:
    shown = [{**row, "column": f"Q/Doc {row['per_doc']}"} for row in numbers]
    return matrix(shown, row="arm", column="column", value="ndcg")


def best_qdoc(numbers: Numbers) -> go.Figure:
    return bars(
        numbers, x="per_doc", y="n_datasets", name=("retriever",), titles=(QDOC, "datasets on which it is best")
    )


def gain_over_cw(numbers: Numbers) -> go.Figure:
    """The scatter with its line and band; with fewer than three datasets of different CW the points alone."""
    axis = next(name for name in AXES if all(name in row for row in numbers))
    data = [
        Difference(row["retriever"], row["kind"], row["per_doc"], row["dataset"], row[axis], row["points"])
        for row in numbers
    ]
    if axis == "cw" and len({d.cw for d in data}) >= 3 and len({d.dataset for d in data}) >= 3:
        return difference_against_cw(data, threshold(data))
    titles = (AXES[axis], POINTS)
    chart = points(numbers, x=axis, y="points", name=("retriever", "comparison"), titles=titles)
    chart.add_hline(y=0, line={"color": MUTED, "dash": "dash", "width": 1})
    return chart


def correlations(numbers: Numbers) -> go.Figure:
    shown = [{**row, "condition": f"{row['comparison']}, Q/Doc {row['per_doc']}"} for row in numbers]
    return bars(shown, x="condition", y="r", name=("retriever",), titles=("", "Pearson's r of gain and CW"))


def positives(numbers: Numbers) -> go.Figure:
    return bars(numbers, x="dataset", y="rate", name=(), titles=("", "conditions that gain (%)"))


def methods_by_benchmark(numbers: Numbers) -> go.Figure:
    return matrix(numbers, row="arm", column="benchmark", value="ndcg")


def diverse_against_paraphrase(numbers: Numbers) -> go.Figure:
    shown = [
        {**row, "arm": condition_name(row["retriever"], DIVERSE, row["per_doc"], row["generator"])} for row in numbers
    ]
    return matrix(shown, row="arm", column="benchmark", value="ndcg", signed_values=True)


def gain_by_retriever(numbers: Numbers) -> go.Figure:
    return bars(numbers, x="retriever", y="points", name=(), titles=("", "mean diverse minus paraphrase (points)"))


def weights_by_benchmark(numbers: Numbers) -> go.Figure:
    return matrix(numbers, row="arm", column="benchmark", value="ndcg", signed_values=True)


def train_by_evaluate(numbers: Numbers) -> go.Figure:
    return matrix(numbers, row="arm", column="benchmark", value="ndcg", note="change")


def learning_rates(numbers: Numbers) -> go.Figure:
    shown = [{**row, "split": "dev"} for row in numbers]
    chart = lines(shown, x="rate", y="dev", line=("retriever",), panel="split", titles=("learning rate", f"dev {NDCG}"))
    return chart.update_xaxes(type="log")


def cw_of_languages(numbers: Numbers) -> go.Figure:
    shown = [{**row, "at": at, "cw": row[f"cw_{at}"]} for at in ("min", "max") for row in numbers]
    return bars(shown, x="language", y="cw", name=("at",), titles=("", "content words of a query (CW)"))


def datasets(numbers: Numbers) -> go.Figure:
    return bars(numbers, x="dataset", y="cw", name=(), titles=("", "mean content words (CW)"))


def hops(numbers: Numbers) -> go.Figure:
    shown = [{**row, "at": at, "hops": row[at]} for at in ("least", "most") for row in numbers]
    return bars(shown, x="dataset", y="hops", name=("at",), titles=("", "documents that a query needs"))


def who_is_right(numbers: Numbers) -> go.Figure:
    shown = [row for row in numbers if row["what"] != "queries"]
    chart = figure(x="queries", y="", height=90 + 52 * len(shown), legend=False)
    chart.add_bar(
        x=[row["value"] for row in shown], y=["<br>".join(wrap(plain(row["what"], 200), 34)) for row in shown],
        orientation="h",
        marker={"color": [GAIN if row["value"] >= 0 else LOSS for row in shown]},
        text=[f"{row['value']:,.0f}{_share(row['percent'])}" for row in shown],
        textposition="auto", hovertemplate="%{y}: %{x:,}<extra></extra>",
    )  # fmt: skip
    return chart.update_yaxes(autorange="reversed")


def _share(percent: float | None) -> str:
    return "" if percent is None else f" ({percent:.1f}%)"


TEST, MEASURE = "A test with diverse and paraphrase queries at several Q/Doc", "Model-based measures of the query sets"
TESTED = {"test": "1"}

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("qdoc", "NDCG@10 over Q/Doc", ("tab:multihop_scaling", "tab:scaling_full", "tab:query_scaling"),
               of.ndcg_over_qdoc, ndcg_over_qdoc, "A test with two values of Q/Doc", params=TESTED),
        Figure("cw", "Gain over content words", ("tab:content_words", "tab:cw_threshold"), of.gain_over_cw,
               gain_over_cw, f"{TEST}, out of domain", params=TESTED),
        Figure("correlation", "Correlation with content words", ("tab:content_words",), of.correlations, correlations,
               "Tests on three benchmarks of different content words", params=TESTED),
        Figure("positive", "How often a dataset gains", ("tab:cw_threshold",), of.positives, positives,
               f"{TEST}, out of domain", params=TESTED),
        Figure("paraphrase", "Diverse minus paraphrase",
               ("tab:multihop_diversity", "tab:diversity_ablation", "tab:single_query_ablation",
                "tab:mistral_generator", "tab:qwen_retriever"), of.diverse_against_paraphrase,
               diverse_against_paraphrase, TEST, params=TESTED),
        Figure("retrievers", "Gain by retriever", ("tab:retriever_comparison",), of.gain_by_retriever,
               gain_by_retriever, TEST, params=TESTED),
        Figure("best", "Best Q/Doc", ("fig:qdoc_distribution",), of.best_qdoc, best_qdoc,
               "A test with two values of Q/Doc", params=TESTED),
        Figure("methods", "Every method on every benchmark", ("tab:main_results", "tab:multihop_full"),
               of.methods_by_benchmark, methods_by_benchmark, "An evaluation", "launch", {"tab": "evaluation"}),
        Figure("documents", "Documents against diversity",
               ("fig:cost_efficiency_multihop", "fig:cost_efficiency_full", "fig:cost_efficiency_full_retromae",
                "tab:cost_efficiency_full"), of.documents_against_diversity, documents_against_diversity,
               "A study that holds the pairs equal (design: documents and pairs)", params=TESTED),
        Figure("grid", "Documents by queries, with cost", ("tab:cost_efficiency_full", "fig:cost_efficiency_multihop"),
               of.documents_by_qdoc, documents_by_qdoc,
               "A study with several numbers of documents (design: documents and pairs)", params=TESTED),
        Figure("measures", "Q-D measures over Q/Doc", ("tab:qd_full", "fig:diversity_ablation_qd"),
               of.measures_over_qdoc, measures_over_qdoc, MEASURE, "queries", {"tab": "quality"}),
        Figure("tradeoff", "Quality against diversity", ("fig:qd_tradeoff",), of.quality_against_diversity,
               quality_against_diversity, f"{MEASURE}, with human queries beside them", "queries", {"tab": "quality"}),
        Figure("ce", "NDCG@10 over the paraphrase ratio", ("fig:diversity_multihop",), of.ndcg_over_ce, ndcg_over_ce,
               f"{MEASURE} that were trained on", "queries", {"tab": "quality"}),
        Figure("errors", "Who is right at rank 1", ("tab:error_analysis",), of.who_is_right, who_is_right,
               "Two arms evaluated on one benchmark", params=TESTED),
        Figure("weights", "Weighted minus equal weights",
               ("tab:cw_weighting", "tab:cw_weighting_full", "tab:reasonembed", "tab:reasonembed_full"),
               of.weights_by_benchmark, weights_by_benchmark, "Trainings with equal and with CW weights", "launch"),
        Figure("matrix", "Trained on, evaluated on", ("tab:miracl_results",), of.train_by_evaluate, train_by_evaluate,
               "A training, evaluated", "launch"),
        Figure("rates", "Learning rates", ("tab:lr_sensitivity",), of.learning_rates, learning_rates,
               "A study with several learning rates and a dev split", "launch"),
        Figure("datasets", "Benchmarks", ("tab:dataset_stats",), of.datasets, datasets, "A benchmark", "benchmarks"),
        Figure("hops", "Documents that a query needs", ("tab:multihop_difficulty",), of.hops, hops, "A benchmark",
               "benchmarks"),
        Figure("languages", "Content words by language", ("tab:multilingual",), of.cw_of_languages, cw_of_languages,
               "A benchmark", "benchmarks"),
    )
}  # fmt: skip
