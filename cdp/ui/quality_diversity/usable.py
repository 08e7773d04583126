"""How many queries of each set are usable, and what makes the others unusable: before any measure of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.metrics import MEASURES
from cdp.services import queries, review
from cdp.services.queries import QuerySet
from cdp.services.review import Usability
from cdp.ui.queries import incomplete
from cdp.ui.review.summary import found_by, share
from cdp.ui.shell import frame, navigation, tables
from cdp.ui.shell.text import count, md


def show(workspace: Workspace, picked: Sequence[QuerySet]) -> None:
    """One row per set. Those whose queries were not read yet, which are large, are measured below and shown then."""
    rows: list[tuple[QuerySet, Usability]] = []
    for query_set in picked:
        with frame.guarded():
            table = review.table(workspace, query_set)
            if table is None:
                st.caption(
                    f":material/info: The single queries of {md(query_set.name)} are not read yet. **Review queries** "
                    "reads them."
                )
                navigation.link("review", "Review queries", query_set=query_set.id)
            elif len(table):
                rows.append((query_set, review.usability(workspace, query_set, table)))
    if not rows:
        return
    worst_set, worst = min(rows, key=lambda row: row[1].share)
    title = f"{share(worst)} of {count(worst.n, 'query', 'queries')} are usable"
    if len(rows) > 1:
        all_of_them = all(usability.usable == usability.n for _, usability in rows)
        title = "All queries are usable" if all_of_them else f"{md(worst_set.name)}: {title}"
    st.markdown(f"#### {title}", help=frame.definition("usable"))
    if len(rows) > 1 or worst.reasons:
        tables.show(
            {
                "Query set": [incomplete.name(workspace, q) for q, _ in rows],
                "Usable": [f"{share(u)} of {u.n:,}" for _, u in rows],
                "Not usable": [_reasons(usability) for _, usability in rows],
                MEASURES["round_trip"].title: [_round_trip(workspace, q) for q, _ in rows],
            },
            alt="Share of usable queries of each set, with what makes the others unusable",
            config={MEASURES["round_trip"].title: st.column_config.TextColumn(help=MEASURES["round_trip"].help)},
        )
    navigation.link("review", "Review queries", query_set=worst_set.id)


def _round_trip(workspace: Workspace, query_set: QuerySet) -> str:
    """``97.4% by BM25``, of each who looked for the documents."""
    ranks = queries.round_trips(workspace, query_set)
    shares = (f"{((s.values > 0) & (s.values <= 10)).mean():.1%} by {found_by(by)}" for by, s in ranks.items())
    return " · ".join(shares) or "not measured"


def _reasons(usability: Usability) -> str:
    return " · ".join(f"{reason}: {n:,}" for reason, n in usability.reasons.items()) or "–"
