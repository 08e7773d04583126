"""How different the queries of a document are, and how close to human ones: query sets side by side."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.ui.quality_diversity import measures, usable
from cdp.ui.quality_diversity import models as measure_models
from cdp.ui.quality_diversity import pairs as measure_pairs
from cdp.ui.quality_diversity import prompt_tuning as tuning
from cdp.ui.quality_diversity import spread as measure_spread
from cdp.ui.queries import incomplete
from cdp.ui.shell import frame, project, state

workspace = Workspace.default()
frame.head("quality_diversity")

with frame.guarded():
    own_sets = project.keep(workspace, "query_set", queries.list_query_sets(workspace))
    query_sets = [q for q in own_sets if q.n_queries]
    if not query_sets:
        frame.empty("No query sets yet", "Write queries for a corpus or import some, then measure them here.")
        frame.navigation.button("queries", "Write queries", "to_queries")
    else:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container():
                chosen = state.choose_many(
                    "Query sets",
                    incomplete.names(workspace, query_sets),
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
            incomplete.notes(workspace, [*chosen, human])
            usable.show(workspace, picked)
            measured = measures.quick(workspace, picked, human)
            results = measure_models.newest(workspace, picked)
            measures.answer(workspace, picked, measured)
            measures.table(workspace, picked, measured, results)
            measure_spread.show(workspace, picked)
            measures.differences(workspace, picked, measured, results)
            measure_models.trade_off_chart(picked, measured, results)
            measures.curves(picked, measured, results)
            measure_models.model_based(workspace, picked, results, human)
            measure_pairs.explore(workspace, picked, measured, results)
    tuning.section(workspace, query_sets)
    if query_sets:
        frame.next_step(
            "complexity",
            "See what helps on your data",
            "whether diverse queries help is a matter of your task: Decide has what was measured, or measures it.",
            "measures_next",
        )
