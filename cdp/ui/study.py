"""Studies on the screen: a plan from a form or a file, its cost, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.charts import study as figures
from cdp.charts.evidence import difference_against_cw
from cdp.charts.study_report import html
from cdp.errors import InputError
from cdp.services import commands, corpora, queries, studies, training
from cdp.services import evaluation as benchmarks_service
from cdp.services.studies import Gain, StudyConfig, StudyPlan, StudyReport
from cdp.ui import charts, command, forms, frame, navigation, state, tables
from cdp.ui.text import cut, md, moment, p_value, points
from cdp.workspace import Workspace

LISTS = ("benchmarks", "query_sets", "corpus", "methods", "weightings", "retrievers")
"""Fields that are chosen from what is there instead of typed."""

OWN = "Your own"


def asked_plan() -> str:
    """The ready-made plan that a link asks for (``?plan=cw-weighting``); empty without one."""
    asked = st.query_params.get("plan", "")
    return asked if asked in {plan.name for plan in studies.ready_made()} else ""


def choose_plan(workspace: Workspace) -> StudyConfig | None:
    """A ready-made plan as a start, then the form; None while something is missing."""
    ready = {plan.name: plan for plan in studies.ready_made()}
    asked = asked_plan()
    start = st.selectbox(
        "Start from",
        [OWN, *ready],
        index=[OWN, *ready].index(asked) if asked else 0,
        format_func=lambda name: ready[name].title if name in ready else OWN,
        key="study_start",
        persist_state="session",
        help="A ready-made plan fills the form; everything can be changed.",
    )
    first: dict[str, Any] = {}
    if start in ready:
        st.caption(md(ready[start].about))
        first = studies.read_plan(start).to_dict()
    key = f"study_{start}"
    found = _from_lists(workspace, first, key)
    found |= forms.fields(StudyConfig, key=key, leave_out=LISTS, values=first)
    if not found.get("benchmarks") or not (found.get("query_sets") or found.get("methods")):
        st.caption("Choose benchmarks, and query sets or methods to train on.")
        return None
    return StudyConfig.from_dict({name: value for name, value in found.items() if value is not None})


def _from_lists(workspace: Workspace, first: dict[str, Any], key: str) -> dict[str, Any]:
    """The fields that name what is in the workspace."""
    places = [f"{info.name}:{split}" for info in benchmarks_service.benchmarks(workspace) for split in info.splits]
    sets = {q.id: q.name for q in queries.every(workspace) if q.n_queries}
    by_name = {name: set_id for set_id, name in sets.items()}
    corpus_names = {c.id: c.name for c in corpora.every(workspace)}
    corpus_ids = {name: corpus_id for corpus_id, name in corpus_names.items()}
    wanted = _split(first.get("query_sets"))
    _say_missing("benchmarks", _split(first.get("benchmarks")), places)
    _say_missing("query sets", wanted, [*sets, *by_name])
    methods = [m.name for m in queries.methods()]
    with st.grid(2, min_column_width=260):
        chosen: dict[str, Any] = {
            "benchmarks": _many("Benchmarks", {p: p for p in places}, _split(first.get("benchmarks")), f"{key}_b"),
            "query_sets": _many("Query sets", sets, [by_name.get(n, n) for n in wanted], f"{key}_q"),
            "methods": _many("Methods", {m: m for m in methods}, _split(first.get("methods")), f"{key}_m"),
            "retrievers": _many(
                "Retrievers",
                {r.id: r.title for r in training.retrievers(workspace)},
                _split(first.get("retrievers")) or ["static-minilm"],
                f"{key}_r",
            ),
            "weightings": _many(
                "Weightings",
                {w: w for w in studies.weightings()},
                _split(first.get("weightings")) or ["none"],
                f"{key}_w",
            ),
        }
        if chosen["methods"] and corpus_names:
            begin = corpus_ids.get(str(first.get("corpus", "")), "")
            chosen["corpus"] = st.selectbox(
                "Corpus",
                list(corpus_names),
                index=list(corpus_names).index(begin) if begin else 0,
                format_func=lambda c: corpus_names[c],
                key=f"{key}_c",
                persist_state="session",
                help=md("The documents that the methods write queries for; what is written already is taken."),
            )
    return {name: value if isinstance(value, str) else ", ".join(value) for name, value in chosen.items()}


def _many(label: str, items: dict[str, str], first: Sequence[str], key: str) -> list[str]:
    names = state.labels(items)
    return st.multiselect(
        label,
        list(names),
        default=[item for item in first if item in names],
        format_func=lambda item: names.get(item, item),
        key=key,
        placeholder="Choose one or several",
        persist_state="session",
    )


def _split(text: Any) -> list[str]:
    return [part.strip() for part in str(text or "").split(",") if part.strip()]


def _say_missing(what: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """A ready-made plan may name things that are not in this workspace."""
    absent = [name for name in wanted if name not in there]
    if absent:
        st.caption(f":material/info: Not in this workspace, so left out: {what} {md(', '.join(absent))}.")


def summary(workspace: Workspace, config: StudyConfig) -> None:
    """What it comes to, what to know before, and the button."""
    plan = studies.plan(workspace, config)
    st.subheader("What it comes to", anchor=False)
    with st.container(horizontal=True):
        st.metric("Trainings", len(plan.conditions), width="content")
        st.metric("Evaluations", plan.to_dict()["evaluations"], width="content")
        time = "unknown" if plan.seconds is None else studies.minutes(plan.seconds)
        st.metric("Time", time, width="content", help="From earlier runs on this machine where there are any.")
        if plan.generations:
            requests = sum(g.requests for g in plan.generations)
            st.metric("LLM requests first", f"{requests:,}", width="content")
    _pairs(plan)
    for note in plan.notes:
        st.caption(f":material/info: {md(note)}")
    if st.button("Start the study", type="primary", icon=":material/play_arrow:", key="study_start_button"):
        begun = studies.run(workspace, config)
        navigation.go("study", study=begun.job_id)
    command.show(commands.line("study", "run", "plan.yaml", wait=True))
    st.download_button(
        "Download the plan (YAML)",
        studies.to_yaml(config),
        file_name="plan.yaml",
        mime="application/yaml",
        icon=":material/download:",
        on_click="ignore",
        key="study_yaml",
    )


def _pairs(plan: StudyPlan) -> None:
    """How many training pairs each Q/Doc gives."""
    once = list({(c.source, c.per_doc): c for c in plan.conditions}.values())
    tables.show(
        {
            "Queries": [c.source for c in once],
            "Q/Doc": [c.per_doc for c in once],
            "Pairs": [plan.pairs[str(c)] for c in once],
        },
        alt="Training pairs at each Q/Doc",
    )


def choose_study(workspace: Workspace) -> str | None:
    """One of the studies of this workspace."""
    names = {job.id: f"{job.name} · {job.state} · {moment(job.created)}" for job in studies.every(workspace)}
    return state.choose("Study", names, "study", what="study") if names else None


def shown(workspace: Workspace, study: str) -> None:
    """A study's report, or how far it is."""
    try:
        report = studies.report(workspace, study)
    except InputError as error:
        st.caption(md(str(error)))
        navigation.link("jobs", "See its job", job=study)
        return
    if report.finished < report.planned:
        st.progress(report.finished / max(1, report.planned), text=md(studies.progress_text(report)))
        navigation.link("jobs", "Follow it on the page Jobs", job=study)
    findings(report)
    scores(report)
    comparisons(report)
    relation(report)
    cost(report)
    export(report)


def findings(report: StudyReport) -> None:
    """What was found and what cannot be told, before any table."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("What was found", anchor=False)
        for text in report.findings:
            st.markdown(f"- {md(text)}")
        if not report.findings:
            st.caption("Nothing yet: a comparison needs both of its sides.")
    with right:
        st.subheader("What it cannot tell", anchor=False)
        for text in report.limits:
            st.markdown(f"- {md(text)}")


def scores(report: StudyReport) -> None:
    """NDCG@10 of every way of training, mean over seeds."""
    if not report.rows:
        return
    st.subheader("NDCG@10", anchor=False, help=frame.definition("ndcg"))
    names = [b.name for b in report.benchmarks]
    tables.show(
        {
            "Training": [row.name for row in report.rows],
            "Pairs": [f"{row.pairs:,}" if row.pairs else "–" for row in report.rows],
            **{f"{b.name} (CW {b.cw:.1f})": [row.scores.get(b.name) for row in report.rows] for b in report.benchmarks},
            "Mean": [row.average for row in report.rows],
            "Spread over seeds": [
                f"± {max(row.spread.values()):.2f} at most" if row.spread else "–" for row in report.rows
            ],
            "Seeds": [str(row.n_seeds) if row.pairs else "–" for row in report.rows],
        },
        alt="NDCG@10 in percent of each way of training on each benchmark",
        config={
            **{f"{b.name} (CW {b.cw:.1f})": st.column_config.NumberColumn(format="%.2f") for b in report.benchmarks},
            "Mean": st.column_config.NumberColumn(format="%.2f"),
            "Training": st.column_config.TextColumn(width="large", pinned=True),
        },
    )
    if any(row.pairs for row in report.rows):
        benchmark = st.selectbox("Benchmark", names, key="study_benchmark", persist_state="session")
        charts.show(
            figures.scaling(report, benchmark),
            key="study_scaling",
            alt=f"NDCG@10 on {benchmark} by queries per document for each way of training",
            caption="Mean over seeds, ± their standard deviation; dashed: before training.",
        )


def comparisons(report: StudyReport) -> None:
    """Differences with interval, p and spread over seeds, one kind at a time."""
    kinds = {kind: title for kind, title in studies.TITLES.items() if report.of(kind)}
    if not kinds:
        return
    st.subheader("Differences", anchor=False, help=frame.definition("p"))
    kind = st.segmented_control(
        "Comparison",
        list(kinds),
        format_func=lambda k: kinds[k],
        default=studies.SCALING if studies.SCALING in kinds else next(iter(kinds)),
        required=True,
        key="study_comparison",
        label_visibility="collapsed",
    )
    found = report.of(kind or next(iter(kinds)))
    tables.show(
        {
            "Condition": [cut(g.condition, 60) for g in found],
            "Q/Doc": [g.per_doc for g in found],
            "Benchmark": [g.benchmark for g in found],
            "CW": [g.cw for g in found],
            "Points": [points(g.points) + (" *" if g.significant else "") for g in found],
            "95% interval": [f"{points(g.low)} to {points(g.high)}" for g in found],
            "p, corrected": [p_value(g.p_holm) for g in found],
            "Spread over seeds": [None if g.seed_sd is None else g.seed_sd for g in found],
            "Seeds": [g.n_seeds for g in found],
            "Queries": [g.n_queries for g in found],
        },
        alt="Differences in NDCG@10 points with intervals and p values",
        config={
            "CW": st.column_config.NumberColumn(format="%.2f"),
            "Spread over seeds": st.column_config.NumberColumn(format="%.2f", help="Standard deviation, in points."),
        },
    )
    st.caption(
        "\\* p below 0.05 (paired t-test over the queries, Holm-corrected over the benchmarks of a condition), and all "
        "seeds of one sign."
    )
    with st.expander("As a chart", icon=":material/show_chart:"):
        charts.show(figures.gains(found), key="study_gains", alt=_listed(found))


def _listed(found: Sequence[Gain]) -> str:
    return "; ".join(f"{g.condition} Q/Doc {g.per_doc} on {g.benchmark}: {points(g.points)}" for g in found)


def relation(report: StudyReport) -> None:
    """The study's own correlation with CW and threshold, beside the published ones."""
    st.subheader("Relation to content words", anchor=False, help=frame.definition("cw"))
    if report.differences:
        charts.show(
            difference_against_cw(report.differences, report.threshold, band=True),
            key="study_relation",
            alt=f"{len(report.differences)} differences of this study against the content words of its benchmarks",
            caption="Each difference of this study at its benchmark's CW; shaded: the published advice.",
        )
    if report.threshold is None:
        st.caption(md(report.no_threshold))
    else:
        rows = studies.threshold_rows(report)
        tables.show(
            {"": [r[0] for r in rows], "This study": [r[1] for r in rows], "Published": [r[2] for r in rows]},
            alt="This study's threshold beside the published one",
        )
    if report.correlations:
        found = report.correlations
        tables.show(
            {
                "Condition": [cut(c.retriever, 60) for c in found],
                "Comparison": [studies.TITLES.get(c.comparison, c.comparison) for c in found],
                "Q/Doc": [c.per_doc for c in found],
                "r": [c.r for c in found],
                "p": [p_value(c.p) for c in found],
                "Spearman": [c.rho for c in found],
                "Benchmarks": [c.n_datasets for c in found],
            },
            alt="Correlation between content words and the difference, per condition of this study",
            config={
                "r": st.column_config.NumberColumn(format="%+.2f"),
                "Spearman": st.column_config.NumberColumn(format="%+.2f"),
            },
        )


def cost(report: StudyReport) -> None:
    """What each way of training costs and brings."""
    if not any(row.pairs and row.average is not None for row in report.rows):
        return
    st.subheader("Cost and gain", anchor=False)
    charts.show(
        figures.cost_efficiency(report),
        key="study_cost",
        alt="Mean NDCG@10 against the number of training queries for each way of training",
        caption="Mean NDCG@10 over all benchmarks by training queries.",
    )


def export(report: StudyReport) -> None:
    """The report as a file, and the commands that give the same."""
    with st.container(horizontal=True):
        st.download_button(
            "Report as HTML",
            lambda: html(report).encode("utf-8"),
            file_name=f"{report.id}.html",
            mime="text/html",
            icon=":material/download:",
            on_click="ignore",
            key="study_html",
        )
        st.download_button(
            "Report as Markdown",
            studies.to_markdown(report),
            file_name=f"{report.id}.md",
            mime="text/markdown",
            icon=":material/download:",
            on_click="ignore",
            key="study_md",
        )
    command.show(
        commands.line("study", "report", report.id),
        commands.line("study", "report", report.id, format="html", out="report.html"),
    )
