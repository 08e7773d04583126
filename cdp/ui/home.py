"""Home: the answer, or next step of an empty workspace; counts, latest results, renaming and removing the project."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.results import board, naming
from cdp.services import corpora, projects, queries
from cdp.ui import flow
from cdp.ui.decide import answer as decide_answer
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import md, moment, number


def begin(workspace: Workspace) -> None:
    """The first step in an empty workspace: documents of one's own, or the demo."""
    flow.documents(workspace)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("New here? The demo collection has documents, queries and a benchmark.", width="content")
        forms.demo_button(workspace, "home_demo")


def contents(workspace: Workspace) -> None:
    """How much there is of each kind, and the latest results."""
    scope = state.scope(workspace)
    measured = board.list_evaluations(workspace, scope)
    trained = scope.keep("job", naming.trained(workspace))
    n_corpora = len(scope.keep("corpus", corpora.list_corpora(workspace)))
    n_sets = len(scope.keep("query_set", queries.list_query_sets(workspace)))
    tables.cards(
        ("Corpora", number(n_corpora), frame.DEFINITIONS["corpus"]),
        ("Query sets", number(n_sets), frame.DEFINITIONS["query_set"]),
        ("Trained retrievers", number(sum(job.has_model for job in trained)), frame.DEFINITIONS["retriever"]),
        ("Results", number(len(measured)), frame.DEFINITIONS["ndcg"]),
    )

    rows = sorted(board.list_rows(workspace, measured), key=attrgetter("created"), reverse=True)[:6]
    if not rows:
        return

    st.subheader("Latest results", anchor=False)
    tables.show(
        tables.by_title(map(_result, rows)),
        alt="The latest evaluation results",
        digits={"NDCG@10 (%)": 2},
    )

    frame.link("compare", "Compare retrievers")


def _result(row: board.ResultRow) -> dict[str, Any]:
    """A row of the table of results."""
    return {
        "NDCG@10 (%)": row.ndcg,  # first: what one sees on a phone
        "Retriever": row.retriever,
        "Benchmark": row.place,
        "Queries": row.n_queries,
        "Read with": ", ".join(badge.word for badge in row.badges) or None,
        "Evaluated": moment(row.created),
    }


def answer(workspace: Workspace, mine: list[str]) -> None:
    """What was measured for one of these corpora, or the way to measure it."""
    kept = state.kept("corpus")
    corpus = kept if kept in mine else mine[0]
    measured = decide_answer.home_line(workspace, corpus)
    flow.panel(workspace, corpus, opened=not measured)


def project_section(workspace: Workspace) -> None:
    """Rename or remove the project on screen. Nothing where all projects are shown."""
    current = state.scope(workspace).project
    if current is None:
        return

    with st.container(horizontal=True):
        with st.popover("Rename this project", icon=":material/edit_note:", type="tertiary", key="project_open"):
            name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
            if forms.button("Save", key="project_save", icon=":material/save:"):
                with frame.guarded():
                    if name.strip() != current.name:
                        projects.rename(workspace, current.id, name)
                    st.rerun()

        if not current.implied:
            forms.deletion(
                "Remove this project", f"Remove the project **{md(current.name, 60)}**?",
                "Its documents, benchmarks, queries and results are kept.",
                partial(projects.delete, workspace, current.id), key="project",
                told=f"The project {current.name} is removed.",
            )  # fmt: skip
