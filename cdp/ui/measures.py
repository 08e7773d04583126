"""Q-D measures of query sets side by side: the quick ones at once, the model-based ones by a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.charts.distributions import cw_histogram
from cdp.charts.quality_diversity import MeasuredSet, by_queries_per_document, trade_off
from cdp.config import MetricsConfig
from cdp.services import commands, jobs, metrics
from cdp.services.metrics import QuickMetrics
from cdp.services.queries import QuerySet
from cdp.ui import access, charts, clone, command, forms, frame, state, tables
from cdp.ui import jobs as job_views
from cdp.ui.text import md
from cdp.workspace import Workspace

Value = dict[str, Any]


def first_choice(known: Sequence[QuerySet]) -> list[str]:
    """What is compared at first: the newest diverse and the newest paraphrase set of one corpus, else the newest."""
    made = [q for q in known if q.kind != "human"]
    for first in made:
        pair = {
            method: next((q.id for q in made if q.corpus_id == first.corpus_id and q.method == method), None)
            for method in ("diverse", "paraphrase")
        }
        if all(pair.values()):
            return [key for key in pair.values() if key]
    return [q.id for q in made[:1]] or [q.id for q in known[:1]]


def choose_human(known: Sequence[QuerySet]) -> str:
    """The human query set that Len-Sim and Dist-Sim compare with; empty for none."""
    human = {q.id: q.name for q in known if q.kind == "human"}
    return (
        state.choose(
            "Human queries",
            human,
            "human",
            what="query set",
            optional=True,
            placeholder="none" if human else "none in the workspace",
            help="Human queries for the same documents. Len-Sim and Dist-Sim say how close the synthetic ones come.",
        )
        or ""
    )


def quick(workspace: Workspace, picked: Sequence[QuerySet], human: str) -> dict[str, QuickMetrics]:
    """The measures that need no model, by query set; each set's are kept on disk until it changes."""
    found = {}
    for query_set in picked:
        with frame.guarded(), st.spinner("Measuring", show_time=True):
            found[query_set.id] = metrics.quick(workspace, query_set.id, human=human)
    return found


def value_of(measured: QuickMetrics, name: str, scope: str = "document") -> Value | None:
    """The value record of one measure at the full Q/Doc; None where it is not defined."""
    for value in measured.measures:
        if value["name"] == name and value["scope"] == scope and value["value"] is not None:
            return value
    return None


def answer(picked: Sequence[QuerySet], measured: dict[str, QuickMetrics]) -> None:
    """Which set repeats itself least, in one sentence."""
    scored = [(q, value_of(measured[q.id], "self_bleu")) for q in picked if q.id in measured]
    ranked = sorted(((v["value"], q) for q, v in scored if v), key=lambda pair: pair[0])
    if len(ranked) < 2:
        return
    (best, first), (worst, last) = ranked[0], ranked[-1]
    st.markdown(
        f"#### {md(first.name)} is the most diverse\n"
        f"Self-BLEU {best:.3f} against {worst:.3f} for {md(last.name)}: its queries share fewer words with each other."
    )


def with_interval(value: Value | None, digits: int = 3) -> str:
    """``0.123 [0.110, 0.136]``, a dash where there is no value."""
    if value is None:
        return "–"
    shown = f"{value['value']:.{digits}f}"
    if value.get("interval"):
        low, high = value["interval"]
        shown += f"  [{low:.{digits}f}, {high:.{digits}f}]"
    return shown


def table(picked: Sequence[QuerySet], measured: dict[str, QuickMetrics]) -> None:
    """One row per set: Self-BLEU, Len-Sim, CW, each with its interval."""
    rows = [(q, measured[q.id]) for q in picked if q.id in measured]
    if not rows:
        return
    about = metrics.measures()
    tables.show(
        {
            "Query set": [q.name for q, _ in rows],
            "Q/Doc": [q.per_doc for q, _ in rows],
            "Self-BLEU ↓": [with_interval(value_of(m, "self_bleu")) for _, m in rows],
            "Len-Sim ↑": [with_interval(value_of(m, "len_sim")) for _, m in rows],
            "Mean CW": [with_interval(value_of(m, "cw") or _cw(m), 2) for _, m in rows],
            "Documents": [(value_of(m, "self_bleu") or {}).get("n_documents") for _, m in rows],
        },
        alt="Measures of the chosen query sets with 95% intervals",
        config={
            "Self-BLEU ↓": st.column_config.TextColumn(help=about["self_bleu"].definition),
            "Len-Sim ↑": st.column_config.TextColumn(help=about["len_sim"].definition),
            "Mean CW": st.column_config.TextColumn(help=frame.definition("cw")),
            "Q/Doc": st.column_config.NumberColumn(help=frame.definition("q_doc")),
        },
    )
    tokenizer = next((v["tokenizer"] for _, m in rows if (v := value_of(m, "self_bleu"))), "")
    smoothing = next((v["smoothing"] for _, m in rows if (v := value_of(m, "self_bleu"))), "")
    parts = ["In brackets: 95% intervals over documents. ↓ lower is more diverse, ↑ higher is closer to human."]
    if tokenizer:
        parts.append(f"Self-BLEU: {tokenizer}{', smoothing ' + smoothing if smoothing else ''}.")
    st.caption(md(" ".join(parts)))


def _cw(measured: QuickMetrics) -> Value:
    return {"value": measured.cw.mean, "interval": measured.cw.interval}


def curves(picked: Sequence[QuerySet], measured: dict[str, QuickMetrics]) -> None:
    """A measure against Q/Doc, and the distribution of content words."""
    rows = [(q, measured[q.id]) for q in picked if q.id in measured]
    names = state.labels({q.id: q.name for q, _ in rows})
    if not rows:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        found = {names[q.id]: m.by_per_doc["self_bleu"] for q, m in rows if m.by_per_doc.get("self_bleu")}
        if found:
            st.markdown("**Self-BLEU against queries per document**")
            charts.show(
                by_queries_per_document(found, measure="Self-BLEU"),
                key="self_bleu_by_m",
                alt="Self-BLEU of each query set at each number of queries per document",
                caption="The first M queries of every document. A rising line: further queries repeat earlier ones.",
            )
    with right:
        st.markdown("**Content words per query**")
        charts.show(
            cw_histogram({names[q.id]: m.cw.histogram for q, m in rows}),
            key="cw_of_sets",
            alt="Distribution of content words of each query set",
            caption="Dashed: the published lines at 7 and 10.",
        )


def model_based(
    workspace: Workspace, picked: Sequence[QuerySet], measured: dict[str, QuickMetrics], human: str
) -> None:
    """Dist-Sim and the paraphrase ratio: what finished jobs found, what runs, and the button that starts more."""
    st.subheader("Measured by models", anchor=False, help=frame.definition("paraphrase_ratio"))
    found = [(q, row) for q in picked for row in metrics.results(workspace, q.id)[:1]]
    if found:
        _results_table(found)
        _trade_off(found, measured)
    ids = {q.id for q in picked}
    running = [v for v in jobs.running(workspace) if v.kind == "metrics" and v.config.get("query_set") in ids]
    if running:
        job_views.live(job_views.running_list, True, workspace, job_views.states(jobs.running(workspace)))
    if not found and not running:
        st.caption(
            "The paraphrase ratio needs a model that compares pairs of queries; Dist-Sim needs an encoder and human "
            "queries. Both run in the background."
        )
    first, suffix = clone.first(workspace, "metrics")
    with st.expander("Settings", bool(first), icon=":material/tune:", key=f"metrics_settings{suffix}"):
        settings = forms.fields(MetricsConfig, key=f"metrics{suffix}", leave_out=("query_set", "human"), values=first)
    with frame.guarded():
        configs = [MetricsConfig.from_dict({**settings, "query_set": q.id, "human": human}) for q in picked]
        busy = {v.config.get("query_set") for v in running}
        wanted = [c for c in configs if c.query_set not in busy]
        label = "Measure again" if found else "Measure with models"
        if access.button(label, icon=":material/play_arrow:", key="metrics_start", disabled=not wanted):
            for config in wanted:
                metrics.start(workspace, config)
            st.rerun()
        command.show(*(commands.metrics(config) for config in configs))


def _results_table(found: Sequence[tuple[QuerySet, Value]]) -> None:
    about = metrics.measures()
    rows = [(q, value) for q, row in found for value in row["measures"] if value.get("value") is not None]
    tables.show(
        {
            "Query set": [q.name for q, _ in rows],
            "Measure": [about[v["name"]].title if v["name"] in about else v["name"] for _, v in rows],
            "Value": [with_interval(v) for _, v in rows],
            "Model": [v.get("model", "") for _, v in rows],
            "Q/Doc": [v.get("per_doc") for _, v in rows],
            "Documents": [v.get("n_documents") for _, v in rows],
        },
        alt="Model-based measures with the model that gave them",
    )
    stand_in = [v for _, v in rows if "bi_encoder" in v["name"]]
    if stand_in:
        st.caption(
            "The cross-encoder could not be loaded here, so a bi-encoder stands in for it, under its own name: its "
            "ratios are comparable with each other, not with published ones."
        )


def _trade_off(found: Sequence[tuple[QuerySet, Value]], measured: dict[str, QuickMetrics]) -> None:
    """Quality (Dist-Sim) against diversity where human queries are there; else the two measures of diversity."""
    points = []
    quality = False
    for query_set, row in found:
        values = {v["name"]: v for v in row["measures"] if v.get("value") is not None}
        ratio = next((v for name, v in values.items() if name.startswith("paraphrase_ratio")), None)
        other = values.get("dist_sim")
        quality = quality or other is not None
        if other is None and query_set.id in measured:
            other = value_of(measured[query_set.id], "self_bleu")
        if ratio and other:
            low, high = other.get("interval") or (None, None)
            points.append(
                MeasuredSet(
                    query_set.name, query_set.method or query_set.kind, ratio["value"], other["value"], low, high
                )
            )
    if len(points) > 1:
        charts.show(
            trade_off(
                points,
                x="paraphrase ratio (lower: more diverse)",
                y="Dist-Sim (higher: closer to human)" if quality else "Self-BLEU (lower: more diverse)",
            ),
            key="trade_off",
            alt="Each query set's paraphrase ratio against "
            + ("its similarity to human queries" if quality else "its Self-BLEU"),
            caption="Best is the upper left corner." if quality else "Most diverse is the lower left corner.",
        )
