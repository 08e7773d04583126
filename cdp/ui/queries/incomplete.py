"""Query sets that are not whole: their names in lists, what they lack, the link to their job, the yes to training."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import completeness
from cdp.services.completeness import Completeness
from cdp.services.queries import QuerySet
from cdp.ui.shell import navigation
from cdp.ui.shell.text import md


def name(workspace: Workspace, query_set: QuerySet) -> str:
    """A query set's name, with what is wrong with it where it is not whole."""
    return completeness.check(workspace, query_set).name


def names(workspace: Workspace, query_sets: Iterable[QuerySet]) -> dict[str, str]:
    """The names of query sets by id, for a list to choose from."""
    return {q.id: name(workspace, q) for q in query_sets}


def notes(workspace: Workspace, query_sets: Iterable[str]) -> list[Completeness]:
    """Say of each of these sets (by id) what it lacks, with a link to its job; those that are not whole."""
    incomplete_sets = completeness.list_incomplete(workspace, query_sets)
    for item in incomplete_sets:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(md(item.beside_link), icon=":material/warning:")
            if item.job_state:
                navigation.link("jobs", "Open job", icon=":material/progress_activity:", job=item.job_id)
    return incomplete_sets


def consent(workspace: Workspace, query_sets: Iterable[str], key: str) -> tuple[list[Completeness], bool]:
    """(the sets that are not whole, whether training on them is agreed to): the notes, and one box that says yes."""
    incomplete_sets = notes(workspace, query_sets)
    if not incomplete_sets:
        return [], False
    what = "this incomplete set" if len(incomplete_sets) == 1 else "these incomplete sets"
    return incomplete_sets, st.checkbox(
        f"Train on {what}",
        key=f"{key}_{'_'.join(item.query_set.id for item in incomplete_sets)}",
        help="Incomplete query sets are used for training only if you tick this box.",
    )
