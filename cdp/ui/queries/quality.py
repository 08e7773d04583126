"""Q-D measures of query sets side by side: usable queries, quick and model-based measures, pairs behind a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from cdp.base.config import MetricsConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace, slug
from cdp.charts.quality_diversity import MeasuredSet, by_queries_per_document, cw_histogram, trade_off
from cdp.charts.style import by_method
from cdp.metrics import MEASURES
from cdp.services import commands, completeness, corpora, jobs, metrics, queries
from cdp.services.metrics import QuickMetrics
from cdp.services.queries import QuerySet
from cdp.ui import jobs as job_views
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import count, interval, md, points

Value = dict[str, Any]
Measured = tuple[QuerySet, QuickMetrics]

# Which way a measure is better.
ARROWS = {"higher": "↑", "lower": "↓"}


def first_choice(query_sets: Sequence[QuerySet]) -> list[str]:
    """What is compared at first: the newest diverse and the newest paraphrase set of one corpus, else the newest."""
    synthetic = [q for q in query_sets if q.kind == "synthetic"]
    for first in synthetic:
        pair = {
            method: next((q.id for q in synthetic if q.corpus_id == first.corpus_id and q.method == method), None)
            for method in ("diverse", "paraphrase")
        }
        if all(pair.values()):
            return [key for key in pair.values() if key]
    return [q.id for q in synthetic[:1]] or [q.id for q in query_sets[:1]]


def choose_human(query_sets: Sequence[QuerySet]) -> str:
    """The human query set that Len-Sim and Dist-Sim compare with; empty for none."""
    human = queries.references(query_sets)
    chosen = state.choose(
        "Human queries", human, "human", what="query set", optional=True,
        placeholder="none" if human else "none in the workspace",
        help="Human queries for the same documents. Len-Sim and Dist-Sim measure how close the synthetic queries are "
        "to them.",
    )  # fmt: skip
    if any(q.id == chosen and q.kind == "unknown" for q in query_sets):
        st.caption(
            "It is not recorded who wrote these queries, so Len-Sim and Dist-Sim may not measure closeness to human "
            "queries."
        )
    return chosen or ""


def quick(workspace: Workspace, picked: Sequence[QuerySet], human: str) -> list[Measured]:
    """The measures that need no model; sets that are still being written are named and left out."""
    rows: list[Measured] = []
    for query_set in picked:
        if completeness.check(workspace, query_set).active:
            st.caption(f"{md(query_set.name)} is still being written. It will be measured when it is finished.")
            continue
        with frame.guarded(), st.spinner("Measuring"):
            rows.append((query_set, metrics.quick(workspace, query_set.id, human=human)))
    return rows


def value_of(measured: QuickMetrics, name: str, scope: str = "document") -> Value | None:
    """The value record of one measure at the full Q/Doc; None where it is not defined."""
    for value in measured.measures:
        if value["name"] == name and value["scope"] == scope and value["value"] is not None:
            return value
    return None


def answer(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """Which set repeats itself least, in one sentence, at the largest Q/Doc that all of them have.

    Where the documents that the two ends share do not tell them apart, that is the answer.
    """
    curves = [measured.by_per_doc.get("self_bleu", {}) for _, measured in rows]
    depth = max(set.intersection(*map(set, curves)), default=0) if len(rows) > 1 else 0
    if not depth:
        return
    ranked = sorted(zip((curve[depth] for curve in curves), rows, strict=True), key=lambda pair: pair[0])
    (best, (first, of_first)), *_, (worst, (last, of_last)) = ranked
    if math.isclose(best, worst, abs_tol=0.0005):
        st.markdown(f"#### These sets are equally diverse\nSelf-BLEU is {best:.3f} for all of them.")
        return
    figures = f"Self-BLEU {best:.3f} against {worst:.3f} for {md(last.name)}, both at {depth} queries per document"
    shared = None
    with suppress(CdpError):  # no document in common
        shared = metrics.paired(workspace, of_first, of_last)
    if shared is not None and shared.interval[0] <= 0 <= shared.interval[1]:
        st.markdown(
            f"#### None of these sets is clearly the most diverse\n{md(first.name)} has {figures}; over the "
            f"{count(shared.n_documents, 'document')} that both have, the difference is within chance."
        )
        return
    st.markdown(f"#### {md(first.name)} is the most diverse by Self-BLEU\n{figures}: its queries share fewer words.")


def _paired(workspace: Workspace, rows: Sequence[Measured]) -> list[str]:
    """The differences in Self-BLEU from the first set on the documents that both have: what tells sets apart whose
    intervals overlap."""
    shown = [""]
    for query_set, measured in rows[1:]:
        try:
            found = metrics.paired(workspace, rows[0][1], measured)
        except CdpError as error:
            shown.append("")
            st.caption(f"{md(query_set.name)} against {md(rows[0][0].name)}: {md(error.message)}")
        else:
            shown.append(f"{points(found.mean, 3)}  [{interval(found.interval, 3, sign=True)}]")
    return shown


def with_interval(value: Value | None, digits: int = 3) -> str:
    """``0.123 [0.110, 0.136]``, a dash where there is no value."""
    if value is None:
        return "–"
    shown = f"{value['value']:.{digits}f}"
    if value.get("interval"):
        low, high = value["interval"]
        shown += f"  [{low:.{digits}f}, {high:.{digits}f}]"
    return shown


def table(workspace: Workspace, rows: Sequence[Measured], results: Mapping[str, Value]) -> None:
    """One row per set: Self-BLEU, Len-Sim, CW, each with its interval, and embedding diversity where a job gave it."""
    if not rows:
        return
    embedded = [metrics.values(m, results.get(q.id)).get("embedding_diversity") for q, m in rows]
    lengths = [value_of(m, "len_sim") for _, m in rows]
    others = {
        f"{measure.title} {ARROWS.get(measure.better, '')}".rstrip(): measure
        for measure in MEASURES.values()
        if measure.of_document
    }
    apart = _paired(workspace, rows)
    tables.show(
        {
            "Query set": [stored_sets.set_name(workspace, q) for q, _ in rows],
            "Q/Doc": [q.per_doc for q, _ in rows],
            "Self-BLEU ↓": [with_interval(value_of(m, "self_bleu")) for _, m in rows],
            **({f"Self-BLEU − {rows[0][0].name}": apart} if any(apart) else {}),
            "Embedding diversity ↑": [with_interval(value) if value else "not measured" for value in embedded],
            **({"Len-Sim ↑": [with_interval(v) for v in lengths]} if any(lengths) else {}),
            **{title: [with_interval(value_of(m, other.name)) for _, m in rows] for title, other in others.items()},
            "Corpus Self-BLEU": [with_interval(value_of(m, "self_bleu", "corpus")) for _, m in rows],
            "Mean CW": [
                with_interval(value_of(m, "cw") or {"value": m.cw.mean, "interval": m.cw.interval}, 2) for _, m in rows
            ],
            "Documents": [(value_of(m, "cw") or {}).get("n_documents") for _, m in rows],
        },
        alt="Measures of the chosen query sets with 95% intervals",
        about={
            "Self-BLEU ↓": MEASURES["self_bleu"].help,
            "Embedding diversity ↑": MEASURES["embedding_diversity"].help,
            "Len-Sim ↑": MEASURES["len_sim"].help,
            **{title: md(other.help) for title, other in others.items()},
            "Corpus Self-BLEU": "Self-BLEU between queries of different documents, in groups of ten: how similar the "
            "queries of the whole set are. Also defined for one query per document.",
            "Mean CW": frame.DEFINITIONS["cw"],
            "Q/Doc": frame.DEFINITIONS["q_doc"],
        },
    )
    parts = [
        "Brackets: 95% intervals over documents; of a difference over those that both sets have. Arrows show the "
        "better direction: more diverse, or for Len-Sim closer to human queries.",
        *corpora.q_doc_notes(workspace, [q for q, _ in rows]),
    ]
    parts += [f"{q.name}: {count(m.n_empty, 'document')} without queries left out." for q, m in rows if m.n_empty]
    parts += [
        f"{q.name}: {count(m.n_failed, 'document')} could not be measured; the first, {m.failed[0]['id']}: "
        f"{m.failed[0]['reason']}"
        for q, m in rows
        if m.n_failed
    ]
    st.caption(md(" ".join(parts)))


def curves(rows: Sequence[Measured], model_values: Mapping[str, Value]) -> None:
    """Self-BLEU and, where it was measured, CE against Q/Doc, and the distribution of content words."""
    if not rows:
        return
    names = state.labels({q.id: q.name for q, _ in rows})
    palette = by_method({names[q.id]: q.method or q.kind for q, _ in rows})
    bleu = {names[q.id]: m.by_per_doc["self_bleu"] for q, m in rows if m.by_per_doc.get("self_bleu")}
    ratios: dict[str, dict[str, dict[int, float]]] = {}
    for q, _ in rows:
        if q.id in model_values and (curve := metrics.ce_by_per_doc(model_values[q.id])):
            title = MEASURES[model_values[q.id]["scorer"]["measure"]].title
            ratios.setdefault(title, {})[names[q.id]] = curve
    shown = [("Self-BLEU", bleu)] if bleu else []
    shown += list(ratios.items())
    if shown:
        st.subheader("By queries per document", anchor=False, help=frame.DEFINITIONS["q_doc"])
        for column, (title, lines) in zip(st.columns(len(shown), gap="medium"), shown, strict=True):
            with column:
                if len(shown) > 1:
                    st.markdown(f"**{md(title)}**")
                charts.show(
                    by_queries_per_document(lines, measure=title, palette=palette),
                    key=f"by_m_{slug(title)}",
                    alt=f"{title} of each query set at each number of queries per document",
                    caption="Computed on the first M queries of every document. A rising line means that later "
                    "queries repeat earlier ones.",
                )
    else:
        st.info(
            "Each document has only one query; Self-BLEU and CE need at least two. Corpus Self-BLEU in the table "
            "above compares queries of different documents.",
            icon=":material/info:",
        )
    st.subheader("Content words per query", anchor=False, help=frame.DEFINITIONS["cw"])
    charts.show(
        cw_histogram({names[q.id]: m.cw.histogram for q, m in rows}, palette),
        key="cw_of_sets",
        alt="Distribution of content words of each query set",
        caption="Dashed lines: the published thresholds 7 and 10.",
    )


DIVERSITY = {"ce": "CE", "self_bleu": "Self-BLEU"}
QUALITY = {"dist_sim": "Dist-Sim", "len_sim": "Len-Sim"}
ENDS = {
    "ce": "lower: more diverse",
    "self_bleu": "lower: more diverse",
    "dist_sim": "higher: closer to human",
    "len_sim": "higher: closer to human",
}


def newest(workspace: Workspace, picked: Sequence[QuerySet]) -> dict[str, Value]:
    """The newest result of a metric job by query set, for those that have one."""
    return {q.id: rows[0] for q in picked if (rows := metrics.results(workspace, q.id))}


def model_based(workspace: Workspace, picked: Sequence[QuerySet], results: Mapping[str, Value], human: str) -> None:
    """Dist-Sim and the paraphrase ratio: what finished jobs found, what runs, and the button that starts more."""
    st.subheader("Measured with models", anchor=False, help=frame.DEFINITIONS["paraphrase_ratio"])
    found = [_with_model(q, value) for q in picked for value in results.get(q.id, {}).get("measures", ())]
    frame.remarks(filter(None, found))
    ids = {q.id for q in picked}
    running = [v for v in jobs.list_active(workspace) if v.kind == "metrics" and v.config.get("query_set") in ids]
    job_views.running_note(workspace, running)
    if not found and not running:
        st.caption(
            "The paraphrase ratio needs a cross-encoder that compares pairs of queries; Dist-Sim needs an encoder "
            "and human queries. Both run in the background."
        )
    with st.expander("Settings", icon=":material/tune:", key="metrics_settings"):
        settings = forms.fields(MetricsConfig, key="metrics", leave_out=("query_set", "human"))
    with frame.guarded():
        configs = [MetricsConfig.from_dict({**settings, "query_set": q.id, "human": human}) for q in picked]
        busy = {v.config.get("query_set") for v in running}
        wanted = [c for c in configs if c.query_set not in busy]
        label = "Measure again" if found else "Measure with models"
        if forms.button(label, icon=":material/play_arrow:", key="metrics_start", disabled=not wanted):
            for config in wanted:
                metrics.start(workspace, config)
            st.rerun()
        lines = (
            commands.line("metrics", config.query_set, config=config, without=("query_set",), wait=True)
            for config in configs
        )
        forms.command(*lines)


def _with_model(query_set: QuerySet, value: Value) -> str:
    """``name: Paraphrase ratio 0.21 [0.19, 0.23] (model, 500 of 3,000 documents)``; empty without a value."""
    if value.get("value") is None:
        return ""
    title = MEASURES[value["name"]].title if value["name"] in MEASURES else value["name"]
    n = f"{value.get('n_documents', 0):,}" + (f" of {value['sampled_from']:,}" if value.get("sampled_from") else "")
    about = [str(value.get("model") or ""), f"{n} documents"]
    if value.get("threshold") is not None:
        about.insert(1, f"threshold {value['threshold']:g}")
    if "bi_encoder" in value["name"]:
        about.append("no cross-encoder could be loaded: not comparable with published ratios")
    return f"{query_set.name}: {title} {with_interval(value)} ({', '.join(filter(None, about))})"


def trade_off_chart(rows: Sequence[Measured], results: Mapping[str, Value]) -> None:
    """Quality against diversity; both diversity measures without human queries."""
    values = [(q, metrics.values(measured, results.get(q.id))) for q, measured in rows]
    names = {name for _, by_measure in values for name in by_measure}
    xs = [name for name in DIVERSITY if name in names]
    ys = [name for name in (*QUALITY, "self_bleu") if name in names and name not in xs[:1]]
    if not xs or not ys:
        return
    st.subheader("Quality against diversity", anchor=False, help=frame.DEFINITIONS["q_d"])
    x, y = xs[0], ys[0]
    points = [
        MeasuredSet(q.name, q.method or q.kind, found[x]["value"], found[y]["value"], found[x].get("interval"),
                    found[y].get("interval"))
        for q, found in values
        if x in found and y in found
    ]  # fmt: skip
    stand_in = any("ce" in found and found["ce"]["name"] != "paraphrase_ratio" for _, found in values)
    caption = (
        "The lower left corner is the most diverse. Dotted lines at 0.5: the targets of prompt tuning."
        if y == "self_bleu"
        else "The upper left corner is best: close to human queries and diverse."
    )
    if stand_in:
        caption += " CE was computed with a bi-encoder, so its axis is not comparable with the paper's."
    charts.show(
        trade_off(points, x=_title(x), y=_title(y), lines=y == "self_bleu"),
        key="trade_off",
        alt=f"{_title(y)} against {_title(x)} for {len(points)} query sets",
        caption=caption,
    )


def _title(name: str) -> str:
    return f"{(DIVERSITY | QUALITY)[name]} ({ENDS[name]})"
