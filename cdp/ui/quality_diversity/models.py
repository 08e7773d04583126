"""Q-D measures that need models: the jobs that take them, and quality against diversity as in the paper's Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.config import MetricsConfig
from cdp.base.workspace import Workspace
from cdp.charts.quality_diversity import MeasuredSet, ReferencePoint, trade_off
from cdp.metrics import MEASURES
from cdp.services import commands, jobs, metrics
from cdp.services.metrics import QuickMetrics, references
from cdp.services.queries import QuerySet
from cdp.ui.jobs import clone
from cdp.ui.jobs import live as job_views
from cdp.ui.quality_diversity.measures import with_interval
from cdp.ui.shell import access, charts, command, forms, frame, tables

Value = dict[str, Any]

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
    st.subheader("Measured with models", anchor=False, help=frame.definition("paraphrase_ratio"))
    measured_sets = [(q, results[q.id]) for q in picked if q.id in results]
    if measured_sets:
        _results_table(measured_sets)
    ids = {q.id for q in picked}
    running = [v for v in jobs.list_active(workspace) if v.kind == "metrics" and v.config.get("query_set") in ids]
    if running:
        job_views.live(job_views.running_list, True, workspace, job_views.states(jobs.list_active(workspace)))
    if not measured_sets and not running:
        st.caption(
            "The paraphrase ratio needs a cross-encoder that compares pairs of queries; Dist-Sim needs an encoder "
            "and human queries. Both run in the background."
        )
    first, suffix = clone.first(workspace, "metrics")
    with st.expander("Settings", bool(first), icon=":material/tune:", key=f"metrics_settings{suffix}"):
        settings = forms.fields(MetricsConfig, key=f"metrics{suffix}", leave_out=("query_set", "human"), values=first)
    with frame.guarded():
        configs = [MetricsConfig.from_dict({**settings, "query_set": q.id, "human": human}) for q in picked]
        busy = {v.config.get("query_set") for v in running}
        wanted = [c for c in configs if c.query_set not in busy]
        label = "Measure again" if measured_sets else "Measure with models"
        if access.button(label, icon=":material/play_arrow:", key="metrics_start", disabled=not wanted):
            for config in wanted:
                metrics.start(workspace, config)
            st.rerun()
        lines = (
            commands.line("metrics", config.query_set, config=config, without=("query_set",), wait=True)
            for config in configs
        )
        command.show(*lines)


def _results_table(measured_sets: Sequence[tuple[QuerySet, Value]]) -> None:
    about = MEASURES
    rows = [(q, value) for q, row in measured_sets for value in row["measures"] if value.get("value") is not None]
    tables.show(
        {
            "Query set": [q.name for q, _ in rows],
            "Measure": [about[v["name"]].title if v["name"] in about else v["name"] for _, v in rows],
            "Value": [with_interval(v) for _, v in rows],
            "Model": [v.get("model", "") for _, v in rows],
            "Threshold": ["–" if v.get("threshold") is None else f"{v['threshold']:g}" for _, v in rows],
            "Q/Doc": [v.get("per_doc") for _, v in rows],
            "Documents": [_documents(v) for _, v in rows],
        },
        alt="Measures computed with models, and the model of each",
    )
    stand_in = [v for _, v in rows if "bi_encoder" in v["name"]]
    if stand_in:
        st.caption(
            "The cross-encoder could not be loaded, so a bi-encoder was used instead, shown under its own name. Its "
            "ratios are comparable with each other, but not with published ones."
        )


def _documents(value: Value) -> str:
    """How many documents were measured, and of how many they are a sample."""
    n = f"{value.get('n_documents', 0):,}"
    return f"{n} of {value['sampled_from']:,}" if value.get("sampled_from") else n


def trade_off_chart(
    picked: Sequence[QuerySet], measured: Mapping[str, QuickMetrics], results: Mapping[str, Value]
) -> None:
    """Quality against diversity, with the published methods behind; both diversity measures without human queries."""
    values = {q.id: metrics.values(measured[q.id], results.get(q.id)) for q in picked if q.id in measured}
    measure_names = {name for by_measure in values.values() for name in by_measure}
    xs = [name for name in DIVERSITY if name in measure_names]
    ys = [name for name in (*QUALITY, "self_bleu") if name in measure_names]
    if not xs or not ys or (xs == ys == ["self_bleu"]):
        return
    st.subheader("Quality against diversity", anchor=False, help=frame.definition("q_d"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        x = _axis("Horizontal axis", xs, "trade_x")
        y = _axis("Vertical axis", [name for name in ys if name != x], "trade_y")
        published = st.toggle(
            "Show published methods",
            value=True,
            key="trade_published",
            persist_state="session",
            help="The values printed in the paper for its methods at each Q/Doc, in grey.",
        )
    if y is None or x is None:
        return
    points = [
        MeasuredSet(q.name, q.method or q.kind, by_measure[x]["value"], by_measure[y]["value"],
                    _interval(by_measure[x]), _interval(by_measure[y]))
        for q in picked
        if (by_measure := values.get(q.id, {})) and x in by_measure and y in by_measure
    ]  # fmt: skip
    behind = [
        ReferencePoint(r.method, r.per_doc, r.values[x], r.values[y])
        for r in references()
        if published and x in r.values and y in r.values
    ]
    stand_in = "ce" in (x, y) and any(v["ce"]["name"] != "paraphrase_ratio" for v in values.values() if "ce" in v)
    charts.show(
        trade_off(points, x=_title(x, stand_in), y=_title(y, stand_in), references=behind, lines=y == "self_bleu"),
        key="trade_off",
        alt=f"{_title(y, stand_in)} against {_title(x, stand_in)} for {len(points)} query sets"
        + (f" and {len({r.method for r in behind})} published methods" if behind else ""),
        caption=_caption(y, published=published, stand_in=stand_in),
    )


def _axis(label: str, names: Sequence[str], key: str) -> str | None:
    """Which measure an axis shows; nothing is asked where there is no choice."""
    if len(names) < 2:
        return names[0] if names else None
    titles = {**DIVERSITY, **QUALITY}
    return str(forms.segments(label, {name: titles[name] for name in names}, key=key))


def _title(name: str, stand_in: bool) -> str:
    measure = "CE by bi-encoder" if name == "ce" and stand_in else {**DIVERSITY, **QUALITY}[name]
    return f"{measure} ({ENDS[name]})"


def _interval(value: Value) -> tuple[float, float] | None:
    return tuple(value["interval"]) if value.get("interval") else None


def _caption(y: str, *, published: bool, stand_in: bool) -> str:
    parts = [
        "The lower left corner is the most diverse. Dotted lines at 0.5: the targets of prompt tuning."
        if y == "self_bleu"
        else "The upper left corner is best: close to human queries and diverse."
    ]
    if published:
        parts.append(
            "Grey: the paper's methods, one marker per Q/Doc, measured on its own documents; at Q/Doc 1 its CE and "
            "Self-BLEU compare queries of different documents."
        )
    if stand_in:
        parts.append("CE was computed with a bi-encoder, so its axis is not comparable with the paper's.")
    return " ".join(parts)
