"""Q-D measures of sets side by side: which repeats itself least, curve, model-based button, pairs behind a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from cdp.base.config import MetricsConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts.evidence import by_queries_per_document
from cdp.charts.style import by_method
from cdp.metrics import MEASURES
from cdp.metrics.query_set import QuickMeasures
from cdp.query_sets import usable
from cdp.services import commands, completeness, jobs, metrics, queries
from cdp.services.queries import QuerySet
from cdp.ui import jobs as job_views
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import count, md

Value = dict[str, Any]
Measured = tuple[QuerySet, QuickMeasures]

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
    human = usable.references(query_sets)
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


def answer(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """Which set repeats itself least, in one sentence, at the largest Q/Doc that all of them have.

    Where the documents that the two ends share do not tell them apart, that is the answer.
    """
    curves = [measured.by_per_doc for _, measured in rows]
    depth = max(set.intersection(*map(set, curves)), default=0) if len(rows) > 1 else 0
    if not depth:
        return

    ranked = sorted(zip((curve[depth] for curve in curves), rows, strict=True), key=lambda pair: pair[0])

    (best, (first, of_first)), *_, (worst, (last, of_last)) = ranked
    if math.isclose(best, worst, abs_tol=0.0005):
        st.markdown(f"#### These sets are equally diverse\nSelf-BLEU is {best:.3f} for all of them.")
        return

    unit = queries.unit(workspace, (first.corpus_id, last.corpus_id))
    figures = f"Self-BLEU {best:.3f} against {worst:.3f} for {md(last.name)}, both at {depth} queries per {unit}"

    shared = None
    with suppress(CdpError):  # no document in common
        shared = metrics.paired(workspace, of_first, of_last)

    if shared is not None and shared.interval[0] <= 0 <= shared.interval[1]:
        st.markdown(
            f"#### None of these sets is clearly the most diverse\n{md(first.name)} has {figures}; over the "
            f"{count(shared.n_documents, unit)} that both have, the difference is within chance."
        )
        return

    st.markdown(f"#### {md(first.name)} is the most diverse by Self-BLEU\n{figures}: its queries share fewer words.")


def with_interval(value: Value | None, digits: int = 3) -> str:
    """``0.123 [0.110, 0.136]``, a dash where there is no value."""
    if value is None:
        return "–"
    shown = f"{value['value']:.{digits}f}"
    if value.get("interval"):
        low, high = value["interval"]
        shown += f"  [{low:.{digits}f}, {high:.{digits}f}]"
    return shown


def table(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """One row per set, one column per measure that one of them has, each with its interval."""
    if not rows:
        return

    found = [metrics.fitting(workspace, measured) for _, measured in rows]
    shown = {
        f"{measure.title} {ARROWS.get(measure.better, '')}".rstrip(): measure
        for measure in MEASURES.values()
        if any(measure.name in values for values in found) or measure.name == "self_bleu"
    }

    tables.show(
        {
            "Query set": [stored_sets.set_name(workspace, q) for q, _ in rows],
            "Q/Doc": [q.per_doc for q, _ in rows],
            **{title: [with_interval(v.get(measure.name)) for v in found] for title, measure in shown.items()},
            "Documents": [values.get("cw", {}).get("n_documents") for values in found],
        },
        alt="Measures of the chosen query sets with 95% intervals",
        about={**{title: md(measure.help) for title, measure in shown.items()}, "Q/Doc": frame.DEFINITIONS["q_doc"]},
    )

    parts = [
        "Brackets: 95% intervals over documents. Arrows show the better direction: more diverse, or closer to human "
        "queries.",
        *usable.q_doc_notes(workspace, [q for q, _ in rows]),
    ]

    parts += [f"{q.name}: {count(m.n_empty, 'document')} without queries left out." for q, m in rows if m.n_empty]
    parts += [
        f"{q.name}: {count(m.n_failed, 'document')} could not be measured; the first, {m.failed[0]['id']}: "
        f"{m.failed[0]['reason']}"
        for q, m in rows
        if m.n_failed
    ]

    parts += dict.fromkeys(_with_model(value) for values in found for value in values.values() if value["model"])
    st.caption(md(" ".join(parts)))


def _with_model(value: Value) -> str:
    """``CE by MODEL, threshold 0.5, of 500 of 3,000 documents.``"""
    n = f"{value['n_documents']:,}" + (f" of {value['sampled_from']:,}" if value["sampled_from"] else "")
    threshold = "" if value["threshold"] is None else f", threshold {value['threshold']:g}"
    stand_in = "; not comparable with published ratios" if "bi_encoder" in value["name"] else ""
    return f"{MEASURES[value['name']].title} by {value['model']}{threshold}, of {n} documents{stand_in}."


def curve(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """Self-BLEU against Q/Doc."""
    unit = queries.unit(workspace, {q.corpus_id for q, _ in rows})
    names = state.labels({q.id: q.name for q, _ in rows})
    lines = {names[q.id]: m.by_per_doc for q, m in rows if m.by_per_doc}
    if lines:
        charts.show(
            by_queries_per_document(lines, by_method({names[q.id]: q.method or q.kind for q, _ in rows}), unit),
            key="by_m",
            alt=f"Self-BLEU of each query set at each number of queries per {unit}",
            caption=f"Computed on the first M queries of every {unit}. A rising line means that later queries repeat "
            "earlier ones.",
        )
    elif rows:
        st.info(f"Each {unit} has only one query; Self-BLEU and CE need at least two.", icon=":material/info:")


def model_based(workspace: Workspace, rows: Sequence[Measured], human: str) -> None:
    """What runs, and the button that measures Dist-Sim, the paraphrase ratio and embedding diversity."""
    st.subheader("Measure with models", anchor=False, help=frame.DEFINITIONS["paraphrase_ratio"])
    picked = [query_set for query_set, _ in rows]
    ids = {q.id for q in picked}
    measured = any(v["job_id"] for _, m in rows for v in metrics.fitting(workspace, m).values())
    running = [v for v in jobs.list_active(workspace) if v.kind == "metrics" and v.config.get("query_set") in ids]
    job_views.running_note(workspace, running)

    if not measured and not running:
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
        label = "Measure again" if measured else "Measure with models"
        if forms.button(label, icon=":material/play_arrow:", key="metrics_start", disabled=not wanted):
            for config in wanted:
                jobs.start(workspace, "metrics", config)
            st.rerun()

        one = partial(commands.line, "metrics", without=("query_set",), wait=True)
        forms.command(*(one(config.query_set, config=config) for config in configs))
