"""Which pairs of a query set a training takes: Q/Doc, or a fixed number split into documents and Q/Doc."""

from __future__ import annotations

from typing import Any

import streamlit as st

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.services import training
from cdp.ui.shell import forms, frame
from cdp.ui.shell.text import count, md

LIMIT, FIXED = "limit", "fixed"
MOST = 10**9


def choose(workspace: Workspace, query_set: str, first: dict[str, Any], key: str) -> dict[str, int]:
    """The settings ``per_doc`` and ``max_documents`` as they were chosen; those left empty are not in it."""
    way = forms.segments(
        "Pairs",
        {LIMIT: "First queries of each document", FIXED: "Fixed number of pairs"},
        key=f"{key}_pairs_way",
        help="With a fixed number of pairs you can compare many documents with one query each against few "
        "documents with many queries.",
    )
    return _fixed(workspace, query_set, key) if way == FIXED else _limits(first, key)


def _limits(first: dict[str, Any], key: str) -> dict[str, int]:
    with st.container(horizontal=True):
        limits = {
            "per_doc": forms.widget(TrainingConfig, "per_doc", key=key, label="Q/Doc", value=first.get("per_doc")),
            "max_documents": forms.widget(
                TrainingConfig, "max_documents", key=key, label="Maximum documents", value=first.get("max_documents")
            ),
        }
    return {name: int(value) for name, value in limits.items() if value is not None}


def _fixed(workspace: Workspace, query_set: str, key: str) -> dict[str, int]:
    try:
        total, begin = training.pairs_to_split(workspace, query_set)
    except CdpError as error:
        frame.show_error(error)
        return {}
    with st.container(horizontal=True):
        pairs = st.number_input(
            "Number of pairs",
            min_value=2,
            max_value=MOST,
            value=begin,
            step=100,
            key=f"{key}_pairs_{query_set}",
            help="The paper compares 8,000 and 80,000 pairs.",
            persist_state="session",
        )
        splits = training.possible_splits(workspace, query_set, int(pairs))
        possible = {split.per_doc: split for split in splits if not split.problem}
        chosen = st.selectbox(
            "Documents × Q/Doc",
            list(possible),
            format_func=lambda per_doc: str(possible[per_doc]),
            key=f"{key}_pairs_split",
            placeholder="no valid split",
            disabled=not possible,
        )
    impossible = [split for split in splits if split.problem]
    if impossible:
        title = f"{count(len(impossible), 'split')} not possible" if possible else "Why no split is possible"
        with st.expander(title, not possible, type="compact", key=f"{key}_impossible"):
            st.markdown("\n".join(f"- **{split}**: {md(split.problem)}." for split in impossible))
    if chosen is None:
        st.warning(
            f"No split of this query set gives {pairs:,} pairs, so all {count(total, 'query', 'queries')} are used."
        )
        return {}
    return {"per_doc": chosen, "max_documents": possible[chosen].documents}
