"""What is in the workspace, what runs, what came out last, and what comes next."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import results
from cdp.services.workspace import overview
from cdp.ui.home import backup, guide
from cdp.ui.jobs import live as jobs
from cdp.ui.shell import addresses, frame, imports, navigation, tables
from cdp.ui.shell.text import moment, number

workspace = Workspace.default()
frame.head("overview")
addresses.notice()

with frame.guarded():
    imports.flash()
    found = overview.summary(workspace)
    guide.next_step(found.next_step)
    if found.n_corpora or found.n_results:
        with st.grid(4, min_column_width=150):
            st.metric("Corpora", number(found.n_corpora), border=True, help=frame.definition("corpus"))
            st.metric("Query sets", number(found.n_query_sets), border=True, help=frame.definition("query_set"))
            st.metric("Trained retrievers", number(found.n_trained), border=True, help=frame.definition("retriever"))
            st.metric("Results", number(found.n_results), border=True, help=frame.definition("ndcg"))

    if found.running:
        st.subheader("Running now", anchor=False)
        jobs.live(jobs.running_list, True, workspace, jobs.states(found.running))

    if found.latest:
        st.subheader("Latest results", anchor=False)
        tables.show(
            {
                "NDCG@10 (%)": [row["ndcg@10"] for row in found.latest],  # first: what one sees on a phone
                "Retriever": [row["retriever"] for row in found.latest],
                "Benchmark": [
                    results.benchmark_label(row["benchmark"], row["split"], row["protocol"]) for row in found.latest
                ],
                "Queries": [row["n_queries"] for row in found.latest],
                "Evaluated": [moment(str(row["created"])) for row in found.latest],
            },
            alt="The latest evaluation results",
            config={"NDCG@10 (%)": st.column_config.NumberColumn(format="%.2f")},
        )
        navigation.link("compare", "Compare retrievers")

    guide.first_run(workspace, found)
    backup.section(workspace)
