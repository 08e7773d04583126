"""Queries that a benchmark judges among those to train on: what they are, and the yes that marks what follows."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import leakage
from cdp.services.leakage import Leak
from cdp.ui.shell import access, frame, navigation
from cdp.ui.shell.text import md


def consent(leaks: Sequence[Leak], key: str) -> bool:
    """Say what leaks, and ask for the yes; False until it is given. True where there is nothing to say."""
    if not leaks:
        return True
    for leak in leaks:
        st.error(f"**Test leakage.** {md(leak.sentence)}", icon=":material/gpp_maybe:")
    return st.checkbox(
        f"Train anyway. {leakage.FOLLOWS}",
        key="_".join([key, *(f"{leak.source}_{leak.benchmark}_{leak.split}" for leak in leaks)]),
        help="Choose another query set or benchmark instead: a score on queries seen in training says nothing "
        "about unseen queries.",
    )


def offer_copy(workspace: Workspace, leaks: Sequence[Leak], query_set: str) -> None:
    """A button that goes on with a copy of the set without the judged queries, where a copy would cure it."""
    benchmark_splits = [(leak.benchmark, leak.split) for leak in leaks if leak.queries and leak.query_set == query_set]
    if not benchmark_splits:
        return
    if access.button(
        "Train on a copy without these queries",
        icon=":material/content_copy:",
        key="leave_out_judged",
        help="The query set itself stays as it is. Nothing in the copy is judged there: its results carry no mark.",
    ):
        with frame.guarded():
            copy, _ = leakage.leave_out(workspace, query_set, benchmark_splits)
            navigation.go("launch", query_set=copy.id)
