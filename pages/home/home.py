"""What is in the workspace, what runs, what came out last, and what comes next."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import corpora, overview, results
from cdp.ui import home
from cdp.ui.decide import answer as decide_answer
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import moment, number

workspace = Workspace.default()
frame.head("home")

with frame.guarded():
    forms.flash()
    summary = overview.summary(workspace, scope=state.scope(workspace))
    home.project_section(workspace)
    mine = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if mine:
        decide_answer.home_line(workspace, mine[0].id)  # what people come for stands first
    home.next_step(summary.next_step)
    if summary.n_corpora or summary.n_results:
        with st.grid(4, min_column_width=150):
            st.metric("Corpora", number(summary.n_corpora), border=True, help=frame.definition("corpus"))
            st.metric("Query sets", number(summary.n_query_sets), border=True, help=frame.definition("query_set"))
            st.metric("Trained retrievers", number(summary.n_trained), border=True, help=frame.definition("retriever"))
            st.metric("Results", number(summary.n_results), border=True, help=frame.definition("ndcg"))

    if summary.latest:
        st.subheader("Latest results", anchor=False)
        tables.show(
            {
                "NDCG@10 (%)": [row["ndcg@10"] for row in summary.latest],  # first: what one sees on a phone
                "Retriever": [row["retriever"] for row in summary.latest],
                "Benchmark": [
                    results.benchmark_label(row["benchmark"], row["split"], row["protocol"]) for row in summary.latest
                ],
                "Queries": [row["n_queries"] for row in summary.latest],
                "Evaluated": [moment(str(row["created"])) for row in summary.latest],
            },
            alt="The latest evaluation results",
            config={"NDCG@10 (%)": st.column_config.NumberColumn(format="%.2f")},
        )
        frame.link("compare", "Compare retrievers")

    home.guide(workspace, summary)
