"""A query set, document by document: which queries are usable, decisions about single ones, filters before training."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import queries, review
from cdp.ui import review as review_page
from cdp.ui.quality_diversity import measures
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("review")

with frame.guarded():
    forms.flash()
    sets = [q for q in state.scope(workspace).keep("query_set", queries.list_query_sets(workspace)) if q.n_queries]
    if not sets:
        frame.empty("No query sets yet", "Write queries for a corpus or import some, then review them here.")
        frame.page_button("queries", "Write queries", "to_queries")
    else:
        chosen = state.choose("Query set", stored_sets.set_names(workspace, sets), "query_set", what="query set")
        query_set = next(q for q in sets if q.id == chosen)
        stored_sets.incomplete_notes(workspace, [query_set.id])
        table = review.table(workspace, query_set)
        if table is None:
            measures.wait(workspace, [query_set], "")
        elif not len(table):
            st.caption("No queries have been written yet.")
        else:
            review_page.summary(workspace, query_set, table)
            review_page.workbench(workspace, query_set, table)
            review_page.filters(workspace, query_set)
