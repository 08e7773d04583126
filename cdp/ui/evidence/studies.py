"""The tab "Your studies": a study's findings and report, curve by Q/Doc, or how far it is."""

from __future__ import annotations

import re
from html import unescape as html_unescape

import streamlit as st

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.charts import holds as figures
from cdp.services import commands, queries, studies
from cdp.studies.report import StudyReport
from cdp.studies.text import progress_text, to_markdown
from cdp.studies.text import tables as tables_of
from cdp.ui.shell import charts, forms, frame, state, tables
from cdp.ui.shell.tables import md, moment

# Marks of Markdown in the cells of a report's tables.
_MARKS = re.compile(r"\*\*|\\([\\`*\[\]!])")


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
    scaling(report, queries.unit(workspace, {source.corpus for source in report.sources}))

    for title, (head, rows, note) in tables_of(report).items():
        with st.expander(title, expanded=title == "NDCG@10", icon=":material/table_rows:"):
            columns = {_plain(name): [_plain(row[i]) for row in rows] for i, name in enumerate(head)}
            tables.show(columns, alt=title, width={head[0]: 275}, pinned=head[0])
            if note:
                st.caption(md(note))

    forms.download("Report as Markdown", to_markdown(report), f"{report.id}.md", key="study_md")
    forms.command(commands.line("study", "report", report.id))


def _plain(cell: str) -> str:
    return html_unescape(_MARKS.sub(lambda mark: mark[1] or "", cell))


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
        if report.config.criteria:
            st.caption("What would count as support, written before the run:")
            st.markdown(md(report.config.criteria))


def scaling(report: StudyReport, unit: str) -> None:
    """NDCG@10 on one benchmark by queries per ``unit`` of the corpora."""
    if any(row.pairs for row in report.rows):
        benchmark = forms.pick("Benchmark", [b.name for b in report.benchmarks], key="study_benchmark")
        charts.show(
            figures.scaling(report, benchmark, unit),
            key="study_scaling",
            alt=f"NDCG@10 on {benchmark} by queries per {unit} for each way of training",
            caption="Mean over seeds, ± their standard deviation. Dashed: without training, each by its name.",
        )
