"""The tab "Your studies": a study's report, or how far it is."""

from __future__ import annotations

import re
from html import unescape as html_unescape

import streamlit as st

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.charts import results as figures
from cdp.charts.evidence import difference_against_cw
from cdp.services import commands, studies
from cdp.services.studies import beside, progress_text, threshold_rows, to_markdown
from cdp.studies import StudyReport
from cdp.studies.gains import SCALING, TITLES
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import cut, interval, md, moment, p_value, points

_ESCAPES = re.compile(r"\\([\\`*\[\]!])")


def page(workspace: Workspace) -> None:
    """The tab: one of the project's studies, the newest first."""
    listed = state.of_project(workspace, "job", studies.list_studies(workspace))
    names = {job.id: f"{job.name} · {job.state} · {moment(job.created)}" for job in listed}
    study = state.choose("Study", names, "study", what="study") if names else None
    if study is None:
        text = "The test on Decide is a study of your documents. A plan file repeats the paper's experiment."
        frame.empty("No study yet", text, "decide", "Test it on my data", test="1")
        forms.command(commands.line("study", "list"), commands.line("study", "run", "plan.yaml", wait=True))
    else:
        _report(workspace, study)


def _report(workspace: Workspace, study: str) -> None:
    """A study's report, or how far it is."""
    try:
        report = studies.report(workspace, study)
    except InputError as error:
        st.caption(md(str(error)))
        frame.link("jobs", "Open its job", job=study)
        return
    if report.finished < report.planned:
        st.progress(report.finished / max(1, report.planned), text=md(progress_text(report)))
        frame.link("jobs", "Follow it on the Jobs page", job=study)
    findings(report)
    scores(report)
    comparisons(report)
    relation(report)
    more(report)
    forms.download("Report as Markdown", to_markdown(report), f"{report.id}.md", key="study_md")
    forms.command(commands.line("study", "report", report.id))


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
    st.subheader("NDCG@10", anchor=False, help=frame.DEFINITIONS["ndcg"])
    tables.show(
        {
            "Training": [row.name for row in report.rows],
            **{f"{b.name} (CW {b.cw:.1f})": [row.scores.get(b.name) for row in report.rows] for b in report.benchmarks},
            **({"Mean": [row.average for row in report.rows]} if len(report.benchmarks) > 1 else {}),
            "Documents": [f"{row.documents:,}" if row.pairs else "–" for row in report.rows],
            "Pairs": [f"{row.pairs:,}" if row.pairs else "–" for row in report.rows],
            "Steps": [f"{row.steps:,}" if row.steps else "–" for row in report.rows],
            "Spread over seeds": [
                f"± {max(row.spread.values()):.2f} at most" if row.spread else "none" if row.n_seeds > 1 else "–"
                for row in report.rows
            ],
            "Seeds": [str(row.n_seeds) if row.pairs else "–" for row in report.rows],
        },
        alt="NDCG@10 in percent of each way of training on each benchmark",
        digits={**{f"{b.name} (CW {b.cw:.1f})": 2 for b in report.benchmarks}, "Mean": 2},
        width={"Training": 275},
        pinned="Training",
    )
    if any(row.pairs for row in report.rows):
        benchmark = forms.pick("Benchmark", [b.name for b in report.benchmarks], key="study_benchmark")
        charts.show(
            figures.scaling(report, benchmark),
            key="study_scaling",
            alt=f"NDCG@10 on {benchmark} by queries per document for each way of training",
            caption="Mean over seeds, ± their standard deviation; dashed: before training.",
        )


def comparisons(report: StudyReport) -> None:
    """Differences with interval, p and spread over seeds, one kind at a time."""
    kinds = {kind: title for kind, title in TITLES.items() if report.of(kind)}
    if not kinds:
        return
    st.subheader("Differences", anchor=False, help=frame.DEFINITIONS["p"])
    kind = forms.segments("Comparison", kinds, default=SCALING, key="study_comparison", hidden=True, persistent=False)
    gains = report.of(kind)
    tables.show(
        {
            "Condition": [cut(g.condition, 60) for g in gains],
            "Q/Doc": [g.per_doc for g in gains],
            "Benchmark": [g.benchmark for g in gains],
            "CW": [g.cw for g in gains],
            # In brackets where the test knows nothing of training noise.
            "Points": [
                points(g.points) + ("" if not g.significant else " (*)" if g.seed_sd is None else " *") for g in gains
            ],
            "95% interval": [interval((g.low, g.high), sign=True) for g in gains],
            "p, corrected": [p_value(g.p_holm) for g in gains],
            "Spread over seeds": [g.seed_sd for g in gains],
            "Seeds": [g.n_seeds for g in gains],
            "Queries": [g.n_queries for g in gains],
        },
        alt="Differences in NDCG@10 points with intervals and p values",
        digits={"CW": 2, "Spread over seeds": 2},
        about={"Spread over seeds": "Standard deviation, in points."},
    )
    st.caption(
        "\\* p below 0.05 (variance over queries and seeds, Holm-corrected over the benchmarks of a condition), with "
        "the same sign for all seeds. (\\*) The same with one seed, or seeds that do not differ: a test over the "
        "queries only, which ignores training noise."
    )


def relation(report: StudyReport) -> None:
    """The study's own correlation with CW and threshold, beside the published ones."""
    if not (report.differences or report.threshold or report.correlations):
        return  # the limits say why
    st.subheader("Relation to content words", anchor=False, help=frame.DEFINITIONS["cw"])
    if report.differences:
        charts.show(
            difference_against_cw(report.differences, report.threshold),
            key="study_relation",
            alt=f"{len(report.differences)} differences of this study against the content words of its benchmarks",
            caption="Each difference of this study at its benchmark's CW. Shaded: the published advice.",
        )
    if report.threshold is None:
        st.caption(md(report.no_threshold))
    else:
        rows = threshold_rows(report)
        tables.show(
            {"": [r[0] for r in rows], "This study": [r[1] for r in rows], "Published": [r[2] for r in rows]},
            alt="This study's threshold beside the published one",
        )
    if report.correlations:
        correlations = report.correlations
        tables.show(
            {
                "Condition": [cut(c.retriever, 60) for c in correlations],
                "Comparison": [TITLES.get(c.comparison, c.comparison) for c in correlations],
                "Q/Doc": [c.per_doc for c in correlations],
                "r": [points(c.r) for c in correlations],
                "p": [p_value(c.p) for c in correlations],
                "Spearman's ρ": [points(c.rho) for c in correlations],
                "Benchmarks": [c.n_datasets for c in correlations],
            },
            alt="Correlation between content words and the difference, per condition of this study",
        )


def more(report: StudyReport) -> None:
    """What else could explain a gain, the errors, the paper's cells and the pooled models: a table each, folded."""
    if report.config.criteria:
        with st.expander("What would count as support", icon=":material/gavel:"):
            st.caption("Written before the run.")
            st.markdown(md(report.config.criteria))
    for title, (head, rows, note) in beside(report).items():
        with st.expander(title, icon=":material/table_rows:"):
            plain = [[html_unescape(_ESCAPES.sub(r"\1", cell)) for cell in row] for row in rows]
            tables.show(
                {name: [row[i] for row in plain] for i, name in enumerate(head)}, alt=title, width={head[0]: 240}
            )
            if note:
                st.caption(md(note))
