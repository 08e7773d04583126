"""Q-D measures of query sets side by side: what needs no model, and how sets differ document by document."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace, slug
from cdp.charts.decide import cw_histogram
from cdp.charts.quality_diversity import by_queries_per_document
from cdp.charts.style import by_method
from cdp.metrics import MEASURES
from cdp.services import metrics, queries
from cdp.services.metrics import PairedDifference, QuickMetrics
from cdp.services.queries import QuerySet
from cdp.ui.quality_diversity import measuring
from cdp.ui.queries import incomplete
from cdp.ui.shell import charts, frame, state, tables
from cdp.ui.shell.text import count, md

Value = dict[str, Any]

ARROWS = {"higher": "↑", "lower": "↓"}
"""Which way a measure is better."""


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
    chosen = (
        state.choose(
            "Human queries",
            human,
            "human",
            what="query set",
            optional=True,
            placeholder="none" if human else "none in the workspace",
            help="Human queries for the same documents. Len-Sim and Dist-Sim measure how close the synthetic "
            "queries are to them.",
        )
        or ""
    )
    if any(q.id == chosen and q.kind == "unknown" for q in query_sets):
        st.caption(
            "It is not recorded who wrote these queries, so Len-Sim and Dist-Sim may not measure closeness to human "
            "queries."
        )
    return chosen


def quick(workspace: Workspace, picked: Sequence[QuerySet], human: str) -> dict[str, QuickMetrics]:
    """The measures that need no model, by query set; sets that are still being measured are shown and left out."""
    metrics_by_set, missing = {}, []
    for query_set in picked:
        with frame.guarded():
            measured = metrics.quick_at_once(workspace, query_set.id, human=human)
            if measured is None:
                missing.append(query_set)
            else:
                metrics_by_set[query_set.id] = measured
    measuring.wait(workspace, missing, human)
    return metrics_by_set


def value_of(measured: QuickMetrics, name: str, scope: str = "document") -> Value | None:
    """The value record of one measure at the full Q/Doc; None where it is not defined."""
    for value in measured.measures:
        if value["name"] == name and value["scope"] == scope and value["value"] is not None:
            return value
    return None


def answer(workspace: Workspace, picked: Sequence[QuerySet], measured: dict[str, QuickMetrics]) -> None:
    """Which set repeats itself least, in one sentence, at the largest Q/Doc that all of them have.

    Where the documents that the two ends share do not tell them apart, that is the answer.
    """
    curves = {q.id: measured[q.id].by_per_doc.get("self_bleu", {}) for q in picked if q.id in measured}
    common = set.intersection(*(set(curve) for curve in curves.values())) if curves else set()
    depth = max(common, default=0)
    ranked = sorted(((curves[q.id][depth], q) for q in picked if depth and q.id in curves), key=lambda pair: pair[0])
    if len(ranked) < 2:
        return
    (best, first), (worst, last) = ranked[0], ranked[-1]
    if math.isclose(best, worst, abs_tol=0.0005):
        st.markdown(f"#### These sets are equally diverse\nSelf-BLEU is {best:.3f} for all of them.")
        return
    figures = f"Self-BLEU {best:.3f} against {worst:.3f} for {md(last.name)}, both at {depth} queries per document"
    shared = _shared(workspace, measured[first.id], measured[last.id])
    if shared is not None and shared.interval[0] <= 0 <= shared.interval[1]:
        st.markdown(
            f"#### None of these sets is clearly the most diverse\n{md(first.name)} has {figures}; over the "
            f"{count(shared.n_documents, 'document')} that both have, the difference is within chance."
        )
        return
    st.markdown(f"#### {md(first.name)} is the most diverse by Self-BLEU\n{figures}: its queries share fewer words.")


def _shared(workspace: Workspace, first: QuickMetrics, second: QuickMetrics) -> PairedDifference | None:
    """How two sets differ on the documents that both have; None where they share none."""
    try:
        return metrics.paired(workspace, first, second)
    except CdpError:
        return None


def differences(
    workspace: Workspace,
    picked: Sequence[QuerySet],
    measured: dict[str, QuickMetrics],
    model_values: Mapping[str, Value],
) -> None:
    """Every other set against the first, document by document: what tells sets apart whose intervals overlap.

    ``model_values`` holds the newest result of a metric job by query set.
    """
    rows = [q for q in picked if q.id in measured]
    if len(rows) < 2:
        return
    first, *others = rows
    lines: list[tuple[str, str, PairedDifference]] = []
    for other in others:
        try:
            lines.append(("Self-BLEU", other.name, metrics.paired(workspace, measured[first.id], measured[other.id])))
        except CdpError as error:
            st.caption(f"{md(other.name)} against {md(first.name)}: {md(error.message)}")
            continue
        if first.id in model_values and other.id in model_values:
            ratio = metrics.paired_models(model_values[first.id], model_values[other.id])
            if ratio is not None:
                name = MEASURES[model_values[first.id]["scorer"]["measure"]].title
                lines.append((name, other.name, ratio))
    if not lines:
        return
    st.markdown(f"**Difference from {md(first.name)} on the same documents**")
    tables.show(
        {
            "Query set": [name for _, name, _ in lines],
            "Measure": [measure for measure, _, _ in lines],
            "Difference": [signed(d.mean) for _, _, d in lines],
            "95% interval": [f"{signed(d.interval[0])} to {signed(d.interval[1])}" for _, _, d in lines],
            "Higher on": [f"{d.higher:.0%} of documents" for _, _, d in lines],
            "Documents": [d.n_documents for _, _, d in lines],
            "Verdict": [_verdict(d) for _, _, d in lines],
        },
        alt=f"Differences of each query set from {first.name} over the same documents, with 95% intervals",
    )


def signed(value: float) -> str:
    """``+0.189``, ``−0.012``."""
    return "0.000" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


def _verdict(difference: PairedDifference) -> str:
    low, high = difference.interval
    if low > 0:
        return "less diverse"
    return "more diverse" if high < 0 else "no clear difference"


def with_interval(value: Value | None, digits: int = 3) -> str:
    """``0.123 [0.110, 0.136]``, a dash where there is no value."""
    if value is None:
        return "–"
    shown = f"{value['value']:.{digits}f}"
    if value.get("interval"):
        low, high = value["interval"]
        shown += f"  [{low:.{digits}f}, {high:.{digits}f}]"
    return shown


def table(
    workspace: Workspace,
    picked: Sequence[QuerySet],
    measured: dict[str, QuickMetrics],
    results: Mapping[str, Value] | None = None,
) -> None:
    """One row per set: Self-BLEU, Len-Sim, CW, each with its interval, and embedding diversity where a job gave it."""
    rows = [(q, measured[q.id]) for q in picked if q.id in measured]
    if not rows:
        return
    embedded = [metrics.values(m, (results or {}).get(q.id)).get("embedding_diversity") for q, m in rows]
    lengths = [value_of(m, "len_sim") for _, m in rows]
    others = {
        f"{measure.title} {ARROWS.get(measure.better, '')}".rstrip(): measure
        for measure in MEASURES.values()
        if measure.of_document
    }
    tables.show(
        {
            "Query set": [incomplete.name(workspace, q) for q, _ in rows],
            "Q/Doc": [q.per_doc for q, _ in rows],
            "Self-BLEU ↓": [with_interval(value_of(m, "self_bleu")) for _, m in rows],
            "Embedding diversity ↑": [with_interval(value) if value else "not measured" for value in embedded],
            **({"Len-Sim ↑": [with_interval(v) for v in lengths]} if any(lengths) else {}),
            **{title: [with_interval(value_of(m, other.name)) for _, m in rows] for title, other in others.items()},
            "Corpus Self-BLEU": [with_interval(value_of(m, "self_bleu", "corpus")) for _, m in rows],
            "Mean CW": [with_interval(value_of(m, "cw") or _cw(m), 2) for _, m in rows],
            "Documents": [(value_of(m, "cw") or {}).get("n_documents") for _, m in rows],
        },
        alt="Measures of the chosen query sets with 95% intervals",
        config={
            "Self-BLEU ↓": st.column_config.TextColumn(help=MEASURES["self_bleu"].help),
            "Embedding diversity ↑": st.column_config.TextColumn(help=MEASURES["embedding_diversity"].help),
            "Len-Sim ↑": st.column_config.TextColumn(help=MEASURES["len_sim"].help),
            **{title: st.column_config.TextColumn(help=md(other.help)) for title, other in others.items()},
            "Corpus Self-BLEU": st.column_config.TextColumn(
                help="Self-BLEU between queries of different documents, in groups of ten: how similar the "
                "queries of the whole set are. Also defined for one query per document."
            ),
            "Mean CW": st.column_config.TextColumn(help=frame.definition("cw")),
            "Q/Doc": st.column_config.NumberColumn(help=frame.definition("q_doc")),
        },
    )
    parts = [
        "Brackets: 95% intervals over documents. Arrows show the better direction: more diverse, or for Len-Sim "
        "closer to human queries."
    ]
    parts += [f"{q.name}: {count(m.n_empty, 'document')} without queries left out." for q, m in rows if m.n_empty]
    parts += [
        f"{q.name}: {count(m.n_failed, 'document')} could not be measured; the first, {m.failed[0]['id']}: "
        f"{m.failed[0]['reason']}"
        for q, m in rows
        if m.n_failed
    ]
    st.caption(md(" ".join(parts)))
    _how_counted([m for _, m in rows])


def _how_counted(measured: Sequence[QuickMetrics]) -> None:
    """Tokenizers, smoothing and stopwords, folded away: what a number rests on."""
    bleu = {(v["tokenizer"], v.get("smoothing")) for m in measured if (v := value_of(m, "self_bleu"))}
    cw = {(m.language, v["tokenizer"], v.get("stopwords", "")) for m in measured if (v := value_of(m, "cw"))}
    lines = [f"Self-BLEU: {how}{f', smoothing {smoothing}' if smoothing else ''}." for how, smoothing in sorted(bleu)]
    lines += [f"CW ({language}): {how}; stopwords {stopwords}." for language, how, stopwords in sorted(cw)]
    if lines:
        with st.expander("How words were counted", icon=":material/translate:", type="compact"):
            st.markdown("\n".join(f"- {md(line)}" for line in lines))


def _cw(measured: QuickMetrics) -> Value:
    return {"value": measured.cw.mean, "interval": measured.cw.interval}


def curves(picked: Sequence[QuerySet], measured: dict[str, QuickMetrics], model_values: Mapping[str, Value]) -> None:
    """Self-BLEU and, where it was measured, CE against Q/Doc, and the distribution of content words."""
    rows = [(q, measured[q.id]) for q in picked if q.id in measured]
    names = state.labels({q.id: q.name for q, _ in rows})
    if not rows:
        return
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
        st.subheader("By queries per document", anchor=False, help=frame.definition("q_doc"))
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
    st.subheader("Content words per query", anchor=False, help=frame.definition("cw"))
    charts.show(
        cw_histogram({names[q.id]: m.cw.histogram for q, m in rows}, palette=palette),
        key="cw_of_sets",
        alt="Distribution of content words of each query set",
        caption="Dashed lines: the published thresholds 7 and 10.",
    )
