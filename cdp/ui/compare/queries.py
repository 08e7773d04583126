"""What stands behind a difference, one part at a time: queries, first places, settings, training curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import results
from cdp.services.results import ComparedRow, Comparison
from cdp.ui.compare import errors as compare_errors
from cdp.ui.compare import runs as compare_runs
from cdp.ui.compare.comparison import compared, largest
from cdp.ui.shell import frame, state, tables
from cdp.ui.shell.text import count, points

SHOWN_QUERIES = 10
QUERIES, FIRST, SETTINGS, TRAINING = "Per query", "Rank 1", "Different settings", "Training"
VIEW = "compare_view"


def behind(workspace: Workspace, comparison: Comparison, chosen: Sequence[str], palette: Mapping[str, str]) -> None:
    """The parts that there are, as tabs; what is not open is not worked out."""
    rows = [row for row in compared(comparison) if row.baseline_evaluation_id]
    trained = compare_runs.measured(workspace, comparison)
    parts: dict[str, Callable[[], None]] = {}
    if rows:
        parts[QUERIES] = lambda: by_query(workspace, comparison, choose(rows))
        parts[FIRST] = lambda: first_places(workspace, comparison, choose(rows))
    if comparison.settings:
        parts[SETTINGS] = lambda: compare_runs.settings(comparison, chosen, palette)
    if trained:
        parts[TRAINING] = lambda: compare_runs.curves(workspace, comparison, chosen, palette, trained)
    if not parts:
        return
    if st.session_state.get(VIEW) not in parts:
        named = rows and st.query_params.get("query")
        st.session_state[VIEW] = FIRST if named else next(iter(parts))
    tabs = st.tabs(list(parts), on_change="rerun", key=VIEW)
    for tab, draw in zip(tabs, parts.values(), strict=True):
        if tab.open:
            with tab, frame.guarded():
                draw()


def choose(rows: Sequence[ComparedRow]) -> ComparedRow:
    """One retriever on one benchmark; at first the one that the answer is about."""
    first = largest(rows)
    named = {row.evaluation_id: row for row in (first, *rows)}
    picked = state.choose(
        "Retriever and benchmark",
        {key: f"{row.retriever} on {row.place}" for key, row in named.items()},
        "per_query",
        what="evaluation",
    )
    return named.get(picked or "", first)


def show_queries() -> None:
    """Before the tabs are drawn: a difference was chosen, so a part that is about it is opened."""
    if st.session_state.get(VIEW) not in (None, QUERIES, FIRST):
        st.session_state[VIEW] = QUERIES


def by_query(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> None:
    """The queries that one retriever wins and loses most clearly, on one benchmark."""
    queries = results.per_query(workspace, comparison, row)
    lost = [q for q in queries if q.difference < 0][:SHOWN_QUERIES]
    won = [q for q in reversed(queries) if q.difference > 0][:SHOWN_QUERIES]
    left, right = st.columns(2, gap="medium")
    for column, title, listed in ((left, "Largest gains", won), (right, "Largest losses", lost)):
        with column:
            st.markdown(f"**{title}**")
            if not listed:
                st.caption("None.")
                continue
            tables.show(
                {
                    "Difference": [points(q.difference) for q in listed],
                    "Baseline → this": [f"{q.baseline:.0f} → {q.other:.0f}" for q in listed],
                    "Query": [q.text or q.query_id for q in listed],
                },
                alt=f"{title}: queries with NDCG@10 under both retrievers",
                config={
                    "Difference": st.column_config.TextColumn(width=85),
                    "Baseline → this": st.column_config.TextColumn(
                        width=115, help="NDCG@10 of the baseline and of this retriever."
                    ),
                    "Query": st.column_config.TextColumn(width="large"),
                },
            )
    st.caption(
        f"NDCG@10 per query in percent. {count(row.wins or 0, 'query', 'queries')} better, {row.losses or 0} worse, "
        f"{row.ties or 0} the same."
    )
    if not _averaged(row):
        compare_errors.files(workspace, comparison, row)


def first_places(workspace: Workspace, comparison: Comparison, row: ComparedRow) -> None:
    """What each of the two put first."""
    if _averaged(row):
        st.caption("These runs are averaged over seeds. Show each run (Test and seeds) to see its rank-1 results.")
    else:
        compare_errors.first_places(workspace, comparison, row)


def _averaged(row: ComparedRow) -> bool:
    return "+" in row.evaluation_id or "+" in (row.baseline_evaluation_id or "")
