"""Q-D measures of sets side by side: which repeats itself least, curve, model-based button, pairs behind a number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

import streamlit as st

from cdp.base.config import MetricsConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.charts import holds
from cdp.metrics import MEASURES, Measure
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
    """Return the sets to compare at first: the newest diverse and paraphrase set of one corpus, else the newest."""
    synthetic = [q for q in query_sets if q.kind == "synthetic"]
    newest: dict[tuple[str, str | None], str] = {}
    for query_set in synthetic:
        newest.setdefault((query_set.corpus_id, query_set.method), query_set.id)

    for corpus, _ in newest:
        diverse, paraphrase = newest.get((corpus, "diverse")), newest.get((corpus, "paraphrase"))
        if diverse and paraphrase:
            return [diverse, paraphrase]

    return [q.id for q in [*synthetic, *query_sets][:1]]


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

    No set is named where the paired interval of the two extremes, over the documents that both have, includes zero.
    """
    if len(rows) < 2:
        return

    depths = [set(measured.by_per_doc) for _, measured in rows]
    depth = max(set.intersection(*depths), default=0)
    if not depth:
        return

    ranked = sorted(rows, key=lambda row: row[1].by_per_doc[depth])
    (first, of_first), *_, (last, of_last) = ranked
    best, worst = of_first.by_per_doc[depth], of_last.by_per_doc[depth]
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


def with_interval(value: Value | None) -> str:
    """``0.123 [0.110, 0.136]``, a dash where there is no value."""
    if value is None:
        return "–"
    shown = f"{value['value']:.3f}"
    if value.get("interval"):
        low, high = value["interval"]
        shown += f"  [{low:.3f}, {high:.3f}]"
    return shown


def table(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """One row per set, one column per measure that one of them has, each with its interval."""
    if not rows:
        return

    found = [metrics.fitting(workspace, measured) for _, measured in rows]
    names = {"self_bleu"}.union(*found)
    shown = [measure for measure in MEASURES.values() if measure.name in names]

    about = {_title(measure): md(measure.help) for measure in shown}
    lines = []
    for (query_set, _), values in zip(rows, found, strict=True):
        line = {"Query set": stored_sets.set_name(workspace, query_set), "Q/Doc": query_set.per_doc}
        for measure in shown:
            line[_title(measure)] = with_interval(values.get(measure.name))
        lines.append({**line, "Documents": values.get("cw", {}).get("n_documents")})

    tables.show(
        tables.by_title(lines),
        alt="Measures of the chosen query sets with 95% intervals",
        about={**about, "Q/Doc": frame.DEFINITIONS["q_doc"]},
    )
    _notes(workspace, rows, found)


def _title(measure: Measure) -> str:
    return f"{measure.title} {ARROWS.get(measure.better, '')}".rstrip()


def _notes(workspace: Workspace, rows: Sequence[Measured], found: Iterable[Mapping[str, Value]]) -> None:
    """Draw the notes on the table: brackets and arrows, documents left out, and the models that measured."""
    notes = [
        "Brackets: 95% intervals over documents. Arrows show the better direction: more diverse, or closer to human "
        "queries.",
        *usable.q_doc_notes(workspace, [q for q, _ in rows]),
    ]

    for query_set, measured in rows:
        if measured.n_empty:
            notes.append(f"{query_set.name}: {count(measured.n_empty, 'document')} without queries left out.")
        if measured.n_failed:
            first = measured.failed[0]
            failed = f"{query_set.name}: {count(measured.n_failed, 'document')} could not be measured"
            notes.append(f"{failed}; the first, {first['id']}: {first['reason']}")

    by_model = [value for values in found for value in values.values() if value["model"]]
    notes += dict.fromkeys(map(_with_model, by_model))
    st.caption(md(" ".join(notes)))


def _with_model(value: Value) -> str:
    """``CE by MODEL, threshold 0.5, of 500 of 3,000 documents.``"""
    n = f"{value['n_documents']:,}"
    threshold, stand_in = "", ""
    if value["sampled_from"]:
        n += f" of {value['sampled_from']:,}"
    if value["threshold"] is not None:
        threshold = f", threshold {value['threshold']:g}"
    if "bi_encoder" in value["name"]:
        stand_in = "; not comparable with published ratios"

    return f"{MEASURES[value['name']].title} by {value['model']}{threshold}, of {n} documents{stand_in}."


def curve(workspace: Workspace, rows: Sequence[Measured]) -> None:
    """Self-BLEU against Q/Doc."""
    unit = queries.unit(workspace, {q.corpus_id for q, _ in rows})
    names = state.labels({q.id: q.name for q, _ in rows})
    numbers: list[dict[str, Any]] = []
    for query_set, measured in rows:
        about = {"set": names[query_set.id], "method": query_set.method or query_set.kind}
        numbers += ({**about, "per_doc": m, "self_bleu": value} for m, value in measured.by_per_doc.items())

    if numbers:
        titles = (f"queries per {unit} (Q/Doc)", "Self-BLEU")
        charts.show(
            holds.lines(numbers, x="per_doc", y="self_bleu", line=("set",), titles=titles).update_xaxes(dtick=1),
            key="by_m",
            alt=f"Self-BLEU of each query set at each number of queries per {unit}",
            caption=f"Computed on the first M queries of every {unit}. A rising line means that later queries repeat "
            "earlier ones.",
        )
    elif rows:
        st.info(f"Each {unit} has only one query; Self-BLEU and CE need at least two.", icon=":material/info:")


def model_based(workspace: Workspace, rows: Sequence[Measured], human: str) -> None:
    """Draw the running measurements, and the button for Dist-Sim, the paraphrase ratio and embedding diversity."""
    st.subheader("Measure with models", anchor=False, help=frame.DEFINITIONS["paraphrase_ratio"])
    picked = [query_set.id for query_set, _ in rows]
    known = chain.from_iterable(metrics.fitting(workspace, of_set).values() for _, of_set in rows)
    measured = any(value["job_id"] for value in known)
    running = job_views.active_on(workspace, picked, "metrics")
    job_views.running_note(workspace, running)

    if not measured and not running:
        st.caption(
            "The paraphrase ratio needs a cross-encoder that compares pairs of queries; Dist-Sim needs an encoder "
            "and human queries. Both run in the background."
        )

    with st.expander("Settings", icon=":material/tune:", key="metrics_settings"):
        settings = forms.fields(MetricsConfig, key="metrics", leave_out=("query_set", "human"))

    with frame.guarded():
        configs = [MetricsConfig.from_dict({**settings, "query_set": name, "human": human}) for name in picked]
        busy = {view.config.get("query_set") for view in running}
        wanted = [config for config in configs if config.query_set not in busy]
        label = "Measure again" if measured else "Measure with models"
        if forms.button(label, icon=":material/play_arrow:", key="metrics_start", disabled=not wanted):
            for config in wanted:
                jobs.start(workspace, "metrics", config)
            st.rerun()

        one = partial(commands.line, "metrics", without=("query_set",), wait=True)
        forms.command(*(one(config.query_set, config=config) for config in configs))
