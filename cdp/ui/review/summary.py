"""What a query set is worth at a glance: the share of usable queries, and what makes the others unusable."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import review
from cdp.services.queries import QuerySet
from cdp.services.review import QueryTable, Usability
from cdp.ui.shell import frame
from cdp.ui.shell.text import count, md


def show(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> None:
    """The sentence, the reasons, and where the set is from."""
    usability = review.usability(workspace, query_set, table)
    st.markdown(f"#### {share(usability)} of {count(usability.n, 'query', 'queries')} are usable")
    reasons(usability)
    _made_from(workspace, query_set)
    with st.container(horizontal=True):
        frame.navigation.link("quality_diversity", "Measure this set", sets=[query_set.id])
        frame.navigation.link("launch", "Train on this set", query_set=query_set.id)


def share(usability: Usability) -> str:
    """``97.4%``; never 100% where some are not usable."""
    if usability.usable == usability.n:
        return "100%"
    return f"{min(0.999, usability.share):.1%}"


def reasons(usability: Usability) -> None:
    """What makes the others unusable, the most frequent reason first, and what was looked at."""
    listed = sorted(usability.reasons.items(), key=lambda item: -item[1])
    parts = [f"{reason}: {n:,}" for reason, n in listed]
    parts.append(f"round-trip rank by {found_by(*usability.by)}" if usability.by else "round-trip rank not measured")
    st.caption(md(" · ".join(parts)), help=frame.definition("usable"))


def found_by(*names: str) -> str:
    """Who looked for the documents: ``BM25 and minilm``."""
    return " and ".join("BM25" if name == "bm25" else name for name in names)


def _made_from(workspace: Workspace, query_set: QuerySet) -> None:
    """The set that this one was made from, with what was left out or rewritten."""
    parent = str(query_set.parameters.get("made_from") or "")
    if not parent:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f":material/account_tree: {md(review.origin(query_set))}", width="content")
        frame.navigation.link("review", "Open that set", query_set=parent)
