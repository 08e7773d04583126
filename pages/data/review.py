"""A query set, document by document: which queries are usable, decisions about single ones, filters before training."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import queries, review
from cdp.ui.quality_diversity import measuring
from cdp.ui.queries import incomplete
from cdp.ui.review import filters, summary, workbench
from cdp.ui.shell import frame, imports, project, state

workspace = Workspace.default()
frame.head("review")

with frame.guarded():
    imports.flash()
    sets = [q for q in project.scope(workspace).keep("query_set", queries.list_query_sets(workspace)) if q.n_queries]
    if not sets:
        frame.empty("No query sets yet", "Write queries for a corpus or import some, then review them here.")
        frame.navigation.button("queries", "Write queries", "to_queries")
    else:
        chosen = state.choose("Query set", incomplete.names(workspace, sets), "query_set", what="query set")
        query_set = next(q for q in sets if q.id == chosen)
        incomplete.notes(workspace, [query_set.id])
        table = review.table(workspace, query_set)
        if table is None:
            measuring.wait(workspace, [query_set], "")
        elif not len(table):
            st.caption("No queries have been written yet.")
        else:
            summary.show(workspace, query_set, table)
            workbench.show(workspace, query_set, table)
            filters.show(workspace, query_set)
