"""The paper's figures and tables, each drawn by one function from its numbers, published or own: *Does it hold here?*

``FIGURES`` says which published tables each stands beside, and which run it needs where nothing can be drawn yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product, starmap
from operator import itemgetter
from textwrap import wrap
from typing import Any

import numpy as np
import plotly.graph_objects as go

from cdp.base.condition import DIVERSE, EQUAL_PAIRS
from cdp.base.text import SEPARATOR, condition_name, interval, signed, written
from cdp.charts import style
from cdp.charts.evidence import difference_against_cw
from cdp.charts.style import DASHES, GAIN, LOSS, MUTED, PALETTE, SYMBOLS, by_method, by_sign, figure, plain
from cdp.principle import Difference, threshold
from cdp.results import numbers as of
from cdp.results.arms import AXES, FigureData
from cdp.results.numbers import Numbers
from cdp.studies.report import StudyReport

PER_ROW, PANEL_HEIGHT = 2, 260


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. ``tables`` are the published ones beside it, by label; ``numbers`` what it shows and ``draw`` how.

    ``needs`` is what is missing where there are none, in words, and ``run`` the name of the run that makes it, one of
    ``services.evidence.RUNS``; empty where a benchmark is added by hand. ``uncertainty`` says which interval it has, or
    why it has none, where that is not the usual one of scores; ``of_scores`` whether evaluations are behind it.
    """

    name: str
    title: str
    tables: tuple[str, ...]
    numbers: Callable[[FigureData], Numbers]
    draw: Callable[[Numbers], go.Figure]
    needs: str
    run: str = "test"
    uncertainty: str = ""
    of_scores: bool = True

    def sentence(self, evidence: FigureData, shown: Numbers) -> str:
        """What the numbers rest on, and their interval."""
        if self.numbers is of.who_is_right:
            return of.said_of_errors(shown)
        if not self.of_scores:
            return self.uncertainty
        return of.said(evidence, shown, self.uncertainty)


# Shapes that several figures have.


def lines(
    numbers: Numbers,
    *,
    x: str,
    y: str,
    line: Sequence[str],
    titles: tuple[str, str],
    panel: str = "",
) -> go.Figure:
    """Lines of ``y`` over ``x``, one for each combination of ``line``, in a panel for each value of ``panel``."""
    from plotly.subplots import make_subplots

    panels: dict[str, Numbers] = {}
    for row in numbers:
        panels.setdefault(str(row.get(panel, "")), []).append(row)
    panels = panels or {"": []}

    columns = min(PER_ROW, len(panels))
    deep = -(-len(panels) // columns)
    look = figure(x="", y="", height=112 + PANEL_HEIGHT * deep)
    grid = make_subplots(rows=deep, cols=columns, subplot_titles=[plain(name, 40) for name in panels])
    chart = grid.update_layout(look.layout)
    looks = _looks(numbers, line)
    shown: set[str] = set()

    for at, in_panel in enumerate(panels.values()):
        where = {"row": at // columns + 1, "col": at % columns + 1}
        for name, rows in _grouped(in_panel, line).items():
            colour, symbol, dash = looks[name]
            mode = "lines+markers" if len(rows) > 1 else "markers"
            chart.add_scatter(
                **_values(rows, name, x=x, y=y, title=titles[0], left_out=(panel,)), legendgroup=name,
                mode=mode, showlegend=name not in shown,
                line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": symbol, "size": 8, "color": colour}, **where,
            )  # fmt: skip
            shown.add(name)

        # Each row of panels says what is upward, the last panel of each column what is to the right.
        if at + columns >= len(panels):
            chart.update_xaxes(title_text=titles[0], **where)
        if where["col"] == 1:
            chart.update_yaxes(title_text=titles[1], **where)

    # The panels' names stand where the legend would: it moves above them.
    chart.update_layout(margin={"t": 58}, legend={"yref": "container", "y": 1, "yanchor": "top"})
    chart.update_xaxes(automargin=True, zeroline=False, title_font={"size": 11})
    chart.update_yaxes(automargin=True, zeroline=False, title_font={"size": 11})
    return chart.update_annotations(font={"size": 12})


def _grouped(numbers: Numbers, keys: Sequence[str]) -> dict[str, Numbers]:
    """The rows by their name, which joins the values of ``keys``."""
    found: dict[str, Numbers] = {}
    for row in numbers:
        name = SEPARATOR.join(str(row[key]) for key in keys if row.get(key) not in (None, ""))
        found.setdefault(plain(name, 48), []).append(row)
    return found


def _looks(numbers: Numbers, keys: Sequence[str]) -> dict[str, tuple[str, str, str]]:
    """(colour, symbol, dash) of each name."""
    colours = by_method({name: str(rows[0].get("method", "")) for name, rows in _grouped(numbers, keys).items()})
    looks = zip(colours.values(), cycle(SYMBOLS), cycle(DASHES), strict=False)
    return dict(zip(colours, looks, strict=True))


def _column(rows: Numbers, key: str) -> list[Any]:
    return [row[key] for row in rows]


def _values(rows: Numbers, name: str, *, x: str, y: str, title: str, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """A trace's values with their error bars; what else a row has is shown on hover."""
    return {
        "x": _column(rows, x), "y": _column(rows, y), "name": name, "error_y": _spread(rows, y),
        "customdata": [_details(row, (x, y, *left_out)) for row in rows],
        "hovertemplate": f"{name}<br>{title} %{{x}}: %{{y:.3~f}}<br>%{{customdata}}<extra></extra>",
    }  # fmt: skip


def _spread(rows: Numbers, y: str) -> dict[str, Any] | None:
    """Error bars: 95% intervals, or the standard deviation over seeds where there are none."""
    if any(row.get("low") is not None for row in rows):
        bounds_of = _interval
    elif any(row.get("sd") for row in rows):
        bounds_of = _deviation
    else:
        return None
    bars_of = style.bars((row[y], *bounds_of(row, row[y])) for row in rows)
    return {**bars_of, "color": MUTED}


def _interval(row: Mapping[str, Any], value: float) -> tuple[float, float]:
    """A row's interval; without one its value twice, a bar of no length."""
    if row.get("low") is None:
        return value, value
    return row["low"], row["high"]


def _deviation(row: Mapping[str, Any], value: float) -> tuple[float, float]:
    sd = row.get("sd") or 0.0
    return value - sd, value + sd


def _details(row: Mapping[str, Any], shown: Sequence[str]) -> str:
    parts = []
    if row.get("low") is not None:
        parts.append(f"95% {interval((row['low'], row['high']))}")

    for key, value in row.items():
        if key not in (*shown, "low", "high") and value not in (None, ""):
            parts.append(f"{key.replace('_', ' ')} {_text(value)}")

    return plain(", ".join(parts), 200)


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def points(numbers: Numbers, *, x: str, y: str, name: Sequence[str], titles: tuple[str, str]) -> go.Figure:
    """A point for each row, named by ``name`` in the legend; the rest of the row on hover."""
    chart = figure(x=titles[0], y=titles[1], height=400)
    looks = _looks(numbers, name)
    for title, rows in _grouped(numbers, name).items():
        colour, symbol, _ = looks[title]
        chart.add_scatter(
            **_values(rows, title, x=x, y=y, title=titles[0]), mode="markers+text", textposition="top center",
            text=[written(row.get("per_doc") or None, "×{}".format) for row in rows],
            marker={"size": 10, "symbol": symbol, "color": colour},
        )  # fmt: skip
    return chart


def matrix(numbers: Numbers, *, column: str = "benchmark", signed_values: bool = False, note: str = "") -> go.Figure:
    """A table of numbers in colour: blue is more, orange less; two decimals. ``note`` names a second value in cells;
    intervals of differences stand in cells of up to three columns, all others are shown on hover."""
    cells = {(str(row["arm"]), str(row[column])): row for row in numbers}
    rows = list(dict.fromkeys(map(itemgetter(0), cells)))
    columns = list(dict.fromkeys(map(itemgetter(1), cells)))

    written: Callable[[float], str] = "{:.2f}".format
    scale, middle = [[0.0, "#ffffff"], [1.0, PALETTE[4]]], None
    if signed_values:
        written = signed
        scale, middle = [[0.0, LOSS], [0.5, "#ffffff"], [1.0, GAIN]], 0

    def text(found: Mapping[str, Any]) -> str:
        shown = written(found["ndcg"])
        if signed_values and len(columns) <= 3 and found.get("low") is not None:
            return f"{shown} ({interval((found['low'], found['high']), sign=True)})"
        if found.get(note) is None:
            return shown
        return f"{shown} ({signed(found[note], 1)}%)"

    shape = (len(rows), len(columns))
    values = np.full(shape, None)
    texts, details = np.full(shape, "", dtype=object), np.full(shape, "", dtype=object)
    for (arm, title), row in cells.items():
        at = rows.index(arm), columns.index(title)
        values[at], texts[at], details[at] = row["ndcg"], text(row), _details(row, ("arm", column, "ndcg"))

    chart = figure(x="", y="", height=110 + 30 * len(rows), legend=False)
    chart.add_heatmap(
        z=values.tolist(), text=texts.tolist(), customdata=details.tolist(),
        x=[plain(name, 32) for name in columns], y=[plain(name, 60) for name in rows],
        colorscale=scale, zmid=middle, showscale=False, xgap=1, ygap=1, hoverongaps=False, texttemplate="%{text}",
        textfont={"color": "#111111"}, hovertemplate="%{y}<br>%{x}: %{text}<br>%{customdata}<extra></extra>",
    )  # fmt: skip
    chart.update_yaxes(autorange="reversed", showgrid=False)
    chart.update_xaxes(side="top", showgrid=False)
    return chart


def bars(numbers: Numbers, *, x: str, y: str, title: str, name: Sequence[str] = (), below: str = "") -> go.Figure:
    """Bars of ``y`` at each ``x``, in groups by ``name``, with their numbers; ``below`` names the axis."""
    chart = figure(x=below, y=title, height=340, legend=bool(name))
    for i, (group, rows) in enumerate(_grouped(numbers, name).items()):
        values = _values(rows, group, x=x, y=y, title=below)
        values["x"] = [plain(str(at), 40) for at in values["x"]]
        colour = {"color": PALETTE[i % len(PALETTE)]}
        chart.add_bar(**values, marker=colour, text=list(map(_text, values["y"])), textposition="auto")
    return chart.update_xaxes(type="category")


def ends(numbers: Numbers, *, x: str, low: str, high: str, title: str) -> go.Figure:
    """The least and the most of each ``x`` as two bars."""
    shown = [{x: row[x], "at": at, "value": row[at]} for at, row in product((low, high), numbers)]
    return bars(shown, x=x, y="value", name=("at",), title=title)


# One function per figure; those that are a shape with its names stand in the table below.

QDOC, NDCG, POINTS = "queries per document", "NDCG@10 (%)", "difference in NDCG@10 (points)"
RATIO = "paraphrase ratio (CE), lower is more diverse"
BY_METHOD = ("retriever", "method")


def documents_against_diversity(numbers: Numbers) -> go.Figure:
    """Documents on a reversed logarithmic axis: to the right fewer documents with more queries each."""
    drawn = [row for row in numbers if row["documents"]]
    titles = ("documents, fewer to the right", NDCG)
    chart = lines(drawn, x="documents", y="ndcg", line=BY_METHOD, panel="benchmark", titles=titles)
    chart.update_xaxes(type="log", autorange="reversed")
    panels = list(dict.fromkeys(_column(drawn, "benchmark")))

    for row in numbers:
        if not row["documents"] and row["benchmark"] in panels:
            row_of, column = divmod(panels.index(row["benchmark"]), PER_ROW)
            name = {"text": plain(condition_name(row["retriever"], row["method"]), 40), "font": {"color": MUTED}}
            dashed = {"color": MUTED, "dash": "dash", "width": 1}
            chart.add_hline(y=row["ndcg"], line=dashed, annotation=name, row=row_of + 1, col=column + 1)

    return chart


def documents_by_qdoc(numbers: Numbers) -> go.Figure:
    return matrix([{**row, "column": f"Q/Doc {row['per_doc']}"} for row in numbers], column="column")


def gain_over_cw(numbers: Numbers) -> go.Figure:
    """The scatter with its line and band; with fewer than three datasets of different CW the points alone."""
    shared = set.intersection(*map(set, numbers))
    axis = next(filter(shared.__contains__, AXES))
    if axis == "cw" and _distinct(numbers, "cw") >= 3 and _distinct(numbers, "dataset") >= 3:
        fields = itemgetter("retriever", "kind", "per_doc", "dataset", "cw", "points")
        data = list(starmap(Difference, map(fields, numbers)))
        return difference_against_cw(data, threshold(data))

    titles = (AXES[axis], POINTS)
    chart = points(numbers, x=axis, y="points", name=("retriever", "comparison"), titles=titles)
    chart.add_hline(y=0, line={"color": MUTED, "dash": "dash", "width": 1})
    return chart


def _distinct(numbers: Numbers, key: str) -> int:
    return len(set(_column(numbers, key)))


def correlations(numbers: Numbers) -> go.Figure:
    shown = [{**row, "condition": f"{row['comparison']}, Q/Doc {row['per_doc']}"} for row in numbers]
    return bars(shown, x="condition", y="r", name=("retriever",), title="Pearson's r of gain and CW")


def diverse_against_paraphrase(numbers: Numbers) -> go.Figure:
    several = _distinct(numbers, "generator") > 1
    shown = []
    for row in numbers:
        details = []
        if several:
            details.append(row["generator"])
        if row["equal_pairs"]:
            details.append(EQUAL_PAIRS)
        shown.append({**row, "arm": condition_name(row["retriever"], DIVERSE, row["per_doc"], *details)})
    return matrix(shown, signed_values=True)


def scaling(report: StudyReport, benchmark: str, unit: str = "document") -> go.Figure:
    """A study's NDCG@10 on one benchmark by Q/Doc, one line per way of training, ± the standard deviation over seeds; a
    dashed line, with its name, for each way without a training."""
    kinds = {source.label: source.kind for source in report.sources}
    measured = [row for row in report.rows if benchmark in row.scores]
    numbers = []
    for row in sorted(measured, key=lambda row: row.condition.per_doc):
        if row.condition.per_doc:
            way = row.condition._replace(per_doc=0, rate=None)
            numbers.append({
                "way": way.name, "method": kinds.get(way.source, ""), "per_doc": str(row.condition.per_doc),
                "ndcg": row.scores[benchmark], "sd": row.spread.get(benchmark), "pairs": row.pairs,
                "seeds": row.n_seeds,
            })  # fmt: skip

    chart = lines(numbers, x="per_doc", y="ndcg", line=("way",), titles=(f"queries per {unit} (Q/Doc)", NDCG))
    for row in measured:
        if not row.condition.per_doc:
            name = {"text": plain(row.name, 40), "font": {"color": MUTED}}
            chart.add_hline(y=row.scores[benchmark], line={"color": MUTED, "dash": "dash", "width": 1}, annotation=name)

    return chart.update_xaxes(type="category")


def learning_rates(numbers: Numbers) -> go.Figure:
    chart = lines(numbers, x="rate", y="dev", line=("retriever",), titles=("learning rate", f"dev {NDCG}"))
    return chart.update_xaxes(type="log")


def who_is_right(numbers: Numbers) -> go.Figure:
    shown = [row for row in numbers if row["what"] != "queries"]
    values = _column(shown, "value")
    chart = figure(x="queries", y="", height=90 + 52 * len(shown), legend=False)
    chart.add_bar(
        x=values, y=["<br>".join(wrap(plain(row["what"], 200), 34)) for row in shown],
        orientation="h", marker={"color": list(map(by_sign, values))},
        text=[f"{row['value']:,.0f}{written(row['percent'], ' ({:.1f}%)'.format)}" for row in shown],
        textposition="auto", hovertemplate="%{y}: %{x:,}<extra></extra>",
    )  # fmt: skip
    return chart.update_yaxes(autorange="reversed")


TEST, MEASURE = "A test with diverse and paraphrase queries at several Q/Doc", "Model-based measures of the query sets"
LINE = "The band is the 95% interval of the line through the dataset means; it takes three of different CW."
FACTS = "Facts of the judged queries, not estimates: they have no interval."

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("qdoc", "NDCG@10 over Q/Doc", ("tab:multihop_scaling", "tab:scaling_full", "tab:query_scaling"),
               of.ndcg_over_qdoc,
               partial(lines, x="per_doc", y="ndcg", line=BY_METHOD, panel="benchmark", titles=(QDOC, NDCG)),
               "A test with two values of Q/Doc"),
        Figure("cw", "Gain over content words", ("tab:content_words", "tab:cw_threshold"), of.gain_over_cw,
               gain_over_cw, f"{TEST}, out of domain", "outside", LINE),
        Figure("correlation", "Correlation with content words", ("tab:content_words",), of.correlations, correlations,
               "Tests on three benchmarks of different content words", "outside",
               "Bars: Fisher's 95% interval of r over datasets; with three datasets there is none."),
        Figure("positive", "How often a dataset gains", ("tab:cw_threshold",), of.positives,
               partial(bars, x="dataset", y="rate", title="conditions that gain (%)"), f"{TEST}, out of domain",
               "outside", "Conditions on one dataset depend on each other, so their share has no interval."),
        Figure("paraphrase", "Diverse minus paraphrase",
               ("tab:multihop_diversity", "tab:diversity_ablation", "tab:single_query_ablation",
                "tab:mistral_generator", "tab:qwen_retriever"), of.diverse_against_paraphrase,
               diverse_against_paraphrase, TEST),
        Figure("retrievers", "Gain by retriever", ("tab:retriever_comparison",), of.gain_by_retriever,
               partial(bars, x="retriever", y="points", title="mean diverse minus paraphrase (points)"), TEST,
               uncertainty="The mean over datasets has no interval; each dataset has one in Diverse minus paraphrase."),
        Figure("best", "Best Q/Doc", ("fig:qdoc_distribution",), of.best_qdoc,
               partial(bars, x="per_doc", y="n_datasets", name=("retriever",), title="datasets on which it is best",
                       below=QDOC), "A test with two values of Q/Doc",
               uncertainty="A count of datasets has no interval: the best of a dataset may be best by chance."),
        Figure("methods", "Every method on every benchmark", ("tab:main_results", "tab:multihop_full"),
               of.methods_by_benchmark, matrix, "An evaluation", "evaluation"),
        Figure("documents", "Documents against diversity",
               ("fig:cost_efficiency_multihop", "fig:cost_efficiency_full", "fig:cost_efficiency_full_retromae",
                "tab:cost_efficiency_full"), of.documents_against_diversity, documents_against_diversity,
               "A study that holds the pairs equal"),
        Figure("grid", "Documents by queries, with cost", ("tab:cost_efficiency_full", "fig:cost_efficiency_multihop"),
               of.documents_by_qdoc, documents_by_qdoc, "A study with several numbers of documents"),
        Figure("measures", "Q-D measures over Q/Doc", ("tab:qd_full", "fig:diversity_ablation_qd"),
               of.measures_over_qdoc,
               partial(lines, x="per_doc", y="value", line=("method",), panel="measure", titles=(QDOC, "")), MEASURE,
               "metrics", "Bars: 95% bootstrap intervals over the documents of each set.", of_scores=False),
        Figure("tradeoff", "Quality against diversity", ("fig:qd_tradeoff",), of.quality_against_diversity,
               partial(points, x="ce", y="dist_sim", name=("method",),
                       titles=(RATIO, "Dist-Sim, higher is closer to people")),
               f"{MEASURE}, with human queries beside them", "metrics beside people",
               "The intervals of both measures stand in Q-D measures over Q/Doc.", of_scores=False),
        Figure("ce", "NDCG@10 over the paraphrase ratio", ("fig:diversity_multihop",), of.ndcg_over_ce,
               partial(points, x="ce", y="ndcg", name=("retriever", "method", "benchmark"), titles=(RATIO, NDCG)),
               f"{MEASURE} that were trained on", "metrics"),
        Figure("errors", "Who is right at rank 1", ("tab:error_analysis",), of.who_is_right, who_is_right,
               "Two arms evaluated on one benchmark"),
        Figure("weights", "Weighted minus equal weights",
               ("tab:cw_weighting", "tab:cw_weighting_full", "tab:reasonembed", "tab:reasonembed_full"),
               of.weights_by_benchmark, partial(matrix, signed_values=True), "A study with equal and with CW weights",
               "weights"),
        Figure("matrix", "Trained on, evaluated on", ("tab:miracl_results",), of.train_by_evaluate,
               partial(matrix, note="change"), "A training, evaluated",
               uncertainty="The intervals of these scores stand in Every method on every benchmark."),
        Figure("rates", "Learning rates", ("tab:lr_sensitivity",), of.learning_rates, learning_rates,
               "A study with several learning rates and a dev split", "rates",
               "Bars: ± the standard deviation over seeds. Dev scores are kept as means, so they have no interval."),
        Figure("datasets", "Benchmarks", ("tab:dataset_stats",), of.datasets,
               partial(bars, x="dataset", y="cw", title="mean content words (CW)"), "A benchmark", "",
               "Bars: 95% bootstrap intervals of the mean CW over queries.", of_scores=False),
        Figure("hops", "Documents that a query needs", ("tab:multihop_difficulty",), of.hops,
               partial(ends, x="dataset", low="least", high="most", title="documents that a query needs"),
               "A benchmark", "", FACTS, of_scores=False),
        Figure("languages", "Content words by language", ("tab:multilingual",), of.cw_of_languages,
               partial(ends, x="language", low="cw_min", high="cw_max", title="content words of a query (CW)"),
               "A benchmark", "", FACTS, of_scores=False),
    )
}  # fmt: skip
