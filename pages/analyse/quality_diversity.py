"""How different the queries of a document are, and how close to human ones: query sets side by side."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.ui.quality_diversity import measures
from cdp.ui.quality_diversity import prompt_tuning as tuning
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import frame, state

workspace = Workspace.default()
frame.head("quality_diversity")

with frame.guarded():
    own_sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    query_sets = [q for q in own_sets if q.n_queries]
    if not query_sets:
        frame.empty("No query sets yet", "Write queries for a corpus or import some, then measure them here.")
        frame.page_button("queries", "Write queries", "to_queries")
    else:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container():
                chosen = state.choose_many(
                    "Query sets",
                    stored_sets.set_names(workspace, query_sets),
                    "sets",
                    default=measures.first_choice(query_sets),
                    most=8,
                )
            with st.container(width=280):
                human = measures.choose_human(query_sets)
        by_id = {q.id: q for q in query_sets}
        picked = [by_id[key] for key in chosen]
        if not picked:
            st.caption("Choose at least one query set.")
        else:
            stored_sets.incomplete_notes(workspace, [*chosen, human])
            measures.usability(workspace, picked)
            measured = measures.quick(workspace, picked, human)
            results = measures.newest(workspace, picked)
            measures.answer(workspace, picked, measured)
            measures.table(workspace, picked, measured, results)
            measures.differences(workspace, picked, measured, results)
            measures.trade_off_chart(picked, measured, results)
            measures.curves(picked, measured, results)
            measures.model_based(workspace, picked, results, human)
    tuning.section(workspace, query_sets)
    if query_sets:
        frame.next_step(
            "complexity",
            "See what helps on your data",
            "whether diverse queries help is a matter of your task: Decide has what was measured, or measures it.",
            "measures_next",
        )
