"""The queries behind a difference: what one retriever gains and loses on one benchmark."""

from __future__ import annotations

import streamlit as st

from cdp.services import results
from cdp.services.results import Comparison
from cdp.ui import compare_errors, state, tables
from cdp.ui.compare import compared
from cdp.ui.text import count, points
from cdp.workspace import Workspace

SHOWN_QUERIES = 10


def by_query(workspace: Workspace, found: Comparison) -> None:
    """The queries that one retriever wins and loses most clearly, on one benchmark."""
    rows = {f"{r.evaluation_id}": r for r in compared(found) if r.baseline_evaluation_id}
    if not rows:
        return
    st.subheader("Query by query", anchor=False)
    picked = state.choose(
        "Retriever and benchmark",
        {key: f"{row.retriever} on {row.place}" for key, row in rows.items()},
        "per_query",
        what="evaluation",
    )
    if picked is None:
        return
    row = rows[picked]
    queries = results.per_query(workspace, found, row)
    lost = [q for q in queries if q.difference < 0][:SHOWN_QUERIES]
    won = [q for q in reversed(queries) if q.difference > 0][:SHOWN_QUERIES]
    left, right = st.columns(2, gap="medium")
    for column, title, listed in ((left, "Most gained", won), (right, "Most lost", lost)):
        with column:
            st.markdown(f"**{title}**")
            if not listed:
                st.caption("None.")
                continue
            tables.show(
                {
                    "Difference": [points(q.difference) for q in listed],
                    "Before → after": [f"{q.baseline:.0f} → {q.other:.0f}" for q in listed],
                    "Query": [q.text or q.query_id for q in listed],
                },
                alt=f"{title}: queries with NDCG@10 under both retrievers",
                config={
                    "Difference": st.column_config.TextColumn(width=85),
                    "Before → after": st.column_config.TextColumn(
                        width=95, help="From the baseline to this retriever."
                    ),
                    "Query": st.column_config.TextColumn(width="large"),
                },
            )
    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )
    if "+" in row.evaluation_id or "+" in (row.baseline_evaluation_id or ""):
        st.caption("Averaged over seeds: choose single runs to see what each put first.")
        return
    compare_errors.first_places(workspace, found, row)
    compare_errors.files(workspace, found, row)
