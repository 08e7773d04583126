"""Home: the answer for the project on screen or the one next step, what there is, and the project's name."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import corpora, jobs, projects, queries, results
from cdp.services.projects import Project
from cdp.ui.decide import answer as decide_answer
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import md, moment, number


def begin(workspace: Workspace) -> None:
    """The first step in an empty workspace: documents of one's own, or the demo."""
    frame.next_step(
        "documents", "Add your documents", "upload files or a folder, or enter a path on this server.", "next_step"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("New here? The demo collection has documents, queries and a benchmark.", width="content")
        forms.demo_button(workspace, "home_demo")


def contents(workspace: Workspace) -> None:
    """How much there is of each kind, and the latest results."""
    scope = state.scope(workspace)
    measured = results.list_evaluations(workspace, scope)
    trained = scope.keep("job", jobs.list_jobs(workspace, kinds=["training"]))
    with st.grid(4, min_column_width=150):
        for term, label, n in (
            ("corpus", "Corpora", len(scope.keep("corpus", corpora.list_corpora(workspace)))),
            ("query_set", "Query sets", len(scope.keep("query_set", queries.list_query_sets(workspace)))),
            ("retriever", "Trained retrievers", sum(job.has_model for job in trained)),
            ("ndcg", "Results", len(measured)),
        ):
            st.metric(label, number(n), border=True, help=frame.definition(term))
    rows = sorted(results.list_rows(workspace, measured), key=lambda row: row.created, reverse=True)[:6]
    if not rows:
        return
    st.subheader("Latest results", anchor=False)
    tables.show(
        {
            "NDCG@10 (%)": [row.ndcg for row in rows],  # first: what one sees on a phone
            "Retriever": [row.retriever for row in rows],
            "Benchmark": [row.place for row in rows],
            "Queries": [row.n_queries for row in rows],
            "Evaluated": [moment(row.created) for row in rows],
        },
        alt="The latest evaluation results",
        config={"NDCG@10 (%)": st.column_config.NumberColumn(format="%.2f")},
    )
    frame.link("compare", "Compare retrievers")


def answer(workspace: Workspace, mine: list[str]) -> None:
    """What was measured for one of these corpora, or the way to measure it."""
    kept = state.kept("corpus")
    decide_answer.home_line(workspace, kept if kept in mine else mine[0])


def project_section(workspace: Workspace) -> None:
    """A popover that renames or removes the project. Nothing where all projects are shown."""
    current = state.current_project(workspace)
    if current is None:
        return
    with st.popover("Rename or remove", icon=":material/edit_note:", type="tertiary", key="project_open"):
        _edit(workspace, current)
        if not current.implied:
            _delete(workspace, current)


def _edit(workspace: Workspace, current: Project) -> None:
    name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
    if forms.button("Save", key="project_save", icon=":material/save:"):
        with frame.guarded():
            if name.strip() != current.name:
                projects.rename(workspace, current.id, name)
            st.rerun()


def _delete(workspace: Workspace, current: Project) -> None:
    st.caption("Removing the project removes nothing else: its documents, benchmarks, queries and results stay.")
    sure = st.checkbox(f"Yes, remove the project {md(current.name, 60)}", key=f"project_sure_{current.id}")
    if forms.button("Remove project", key="project_delete", icon=":material/delete:", disabled=not sure):
        with frame.guarded():
            projects.delete(workspace, current.id)
            forms.remember(f"The project {current.name} is removed.", ["What belonged to it is still here."])
            st.query_params.clear()
            st.rerun()
