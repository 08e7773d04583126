"""A study on the screen: what was found, what cannot be told, and the tables behind both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape as html_unescape

import streamlit as st

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.charts import study as figures
from cdp.charts.evidence import difference_against_cw
from cdp.charts.study import html
from cdp.services import commands, studies
from cdp.services.jobs import JobView
from cdp.services.studies import Gain, StudyReport
from cdp.ui.shell import charts, command, forms, frame, navigation, project, state, tables
from cdp.ui.shell.text import cut, md, moment, p_value, points

_ESCAPES = re.compile(r"\\([\\`*\[\]!])")


def listed(workspace: Workspace) -> list[JobView]:
    """The project's studies, the newest first."""
    return project.keep(workspace, "job", studies.list_studies(workspace))


def choose_study(workspace: Workspace) -> str | None:
    """One of the studies of this workspace."""
    names = {job.id: f"{job.name} · {job.state} · {moment(job.created)}" for job in listed(workspace)}
    return state.choose("Study", names, "study", what="study") if names else None


def shown(workspace: Workspace, study: str) -> None:
    """A study's report, or how far it is."""
    try:
        report = studies.report(workspace, study)
    except InputError as error:
        st.caption(md(str(error)))
        navigation.link("jobs", "Open its job", job=study)
        return
    if report.finished < report.planned:
        st.progress(report.finished / max(1, report.planned), text=md(studies.progress_text(report)))
        navigation.link("jobs", "Follow it on the Jobs page", job=study)
    findings(report)
    scores(report)
    comparisons(report)
    relation(report)
    cost(report)
    more(report)
    export(report)


def findings(report: StudyReport) -> None:
    """What was found and what cannot be told, before any table."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.subheader("Findings", anchor=False)
        for text in report.findings:
            st.markdown(f"- {md(text)}")
        if not report.findings:
            st.caption("No findings yet: a comparison needs results for both sides.")
    with right:
        st.subheader("Limits", anchor=False)
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
            "Documents": [f"{row.documents:,}" if row.pairs else "–" for row in report.rows],
            "Pairs": [f"{row.pairs:,}" if row.pairs else "–" for row in report.rows],
            "Steps": [f"{row.steps:,}" if row.steps else "–" for row in report.rows],
            **{f"{b.name} (CW {b.cw:.1f})": [row.scores.get(b.name) for row in report.rows] for b in report.benchmarks},
            "Mean": [row.average for row in report.rows],
            "Spread over seeds": [
                f"± {max(row.spread.values()):.2f} at most" if row.spread else "none" if row.n_seeds > 1 else "–"
                for row in report.rows
            ],
            "Seeds": [str(row.n_seeds) if row.pairs else "–" for row in report.rows],
        },
        alt="NDCG@10 in percent of each way of training on each benchmark",
        config={
            **{f"{b.name} (CW {b.cw:.1f})": st.column_config.NumberColumn(format="%.2f") for b in report.benchmarks},
            "Mean": st.column_config.NumberColumn(format="%.2f"),
            "Training": st.column_config.TextColumn(width=320, pinned=True),
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
    kind = forms.segments(
        "Comparison", kinds, default=studies.SCALING, key="study_comparison", hidden=True, persistent=False
    )
    gains = report.of(kind)
    tables.show(
        {
            "Condition": [cut(g.condition, 60) for g in gains],
            "Q/Doc": [g.per_doc for g in gains],
            "Benchmark": [g.benchmark for g in gains],
            "CW": [g.cw for g in gains],
            "Points": [points(g.points) + _mark(g) for g in gains],
            "95% interval": [f"{points(g.low)} to {points(g.high)}" for g in gains],
            "p, corrected": [p_value(g.p_holm) for g in gains],
            "Spread over seeds": [None if g.seed_sd is None else g.seed_sd for g in gains],
            "Seeds": [g.n_seeds for g in gains],
            "Queries": [g.n_queries for g in gains],
        },
        alt="Differences in NDCG@10 points with intervals and p values",
        config={
            "CW": st.column_config.NumberColumn(format="%.2f"),
            "Spread over seeds": st.column_config.NumberColumn(format="%.2f", help="Standard deviation, in points."),
        },
    )
    st.caption(
        "\\* p below 0.05 (variance over queries and seeds, Holm-corrected over the benchmarks of a condition), with "
        "the same sign for all seeds. (\\*) The same with one seed, or seeds that do not differ: a test over the "
        "queries only, which ignores training noise."
    )
    with st.expander("Show as chart", icon=":material/show_chart:"):
        charts.show(figures.gains(gains), key="study_gains", alt=_listed(gains))


def _mark(gain: Gain) -> str:
    """A star, in brackets where the test knows nothing of training noise."""
    return "" if not gain.significant else " (*)" if gain.seed_sd is None else " *"


def _listed(gains: Sequence[Gain]) -> str:
    return "; ".join(f"{g.condition} Q/Doc {g.per_doc} on {g.benchmark}: {points(g.points)}" for g in gains)


def relation(report: StudyReport) -> None:
    """The study's own correlation with CW and threshold, beside the published ones."""
    st.subheader("Relation to content words", anchor=False, help=frame.definition("cw"))
    if report.differences:
        charts.show(
            difference_against_cw(report.differences, report.threshold, band=True),
            key="study_relation",
            alt=f"{len(report.differences)} differences of this study against the content words of its benchmarks",
            caption="Each difference of this study at its benchmark's CW. Shaded: the published advice.",
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
        correlations = report.correlations
        tables.show(
            {
                "Condition": [cut(c.retriever, 60) for c in correlations],
                "Comparison": [studies.TITLES.get(c.comparison, c.comparison) for c in correlations],
                "Q/Doc": [c.per_doc for c in correlations],
                "r": [points(c.r) for c in correlations],
                "p": [p_value(c.p) for c in correlations],
                "Spearman's ρ": [points(c.rho) for c in correlations],
                "Benchmarks": [c.n_datasets for c in correlations],
            },
            alt="Correlation between content words and the difference, per condition of this study",
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


def more(report: StudyReport) -> None:
    """What else could explain a gain, the errors, the paper's cells and the pooled models: a table each, folded."""
    if report.config.criteria:
        with st.expander("What would count as support", icon=":material/gavel:"):
            st.caption("Written before the run.")
            st.markdown(md(report.config.criteria))
    for title, (head, rows, note) in studies.beside(report).items():
        with st.expander(title, icon=":material/table_rows:"):
            plain = [[plain_text(cell) for cell in row] for row in rows]
            tables.show({name: [row[i] for row in plain] for i, name in enumerate(head)}, alt=title,
                        config={head[0]: st.column_config.TextColumn(width=240)})  # fmt: skip
            if note:
                st.caption(md(note))


def plain_text(cell: str) -> str:
    """A cell of a Markdown table as it reads."""
    return html_unescape(_ESCAPES.sub(r"\1", cell))


def export(report: StudyReport) -> None:
    """The report as a file, and the commands that give the same."""
    with st.container(horizontal=True):
        forms.download("Report as HTML", lambda: html(report).encode("utf-8"), f"{report.id}.html", key="study_html")
        forms.download("Report as Markdown", studies.to_markdown(report), f"{report.id}.md", key="study_md")
    command.show(
        commands.line("study", "report", report.id),
        commands.line("study", "report", report.id, format="html", out="report.html"),
    )
