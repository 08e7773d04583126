"""One query, and what up to three retrievers retrieve for it, side by side."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import search
from cdp.ui import search as page
from cdp.ui.shell import frame, state

workspace = Workspace.default()
frame.head("search")

with frame.guarded():
    members = state.scope(workspace)
    collections = [
        c
        for c in search.list_collections(workspace)
        if members.has("benchmark" if c.benchmark else "corpus", c.benchmark or c.id)
    ]
    if not collections:
        text = "There is nothing to search. Add a corpus first."
        frame.empty("No documents yet", text, "documents", "Add a corpus")
    else:
        query = page.query()
        left, right = st.columns([2, 3], gap="medium")
        with left:
            collection = page.collection(collections)
        with right:
            retrievers = page.retrievers(workspace, members)
        if query and retrievers:
            page.show(workspace, collection, retrievers, query)
        elif retrievers:
            st.caption("Type a query and press Enter.")
        else:
            st.caption("Choose up to three retrievers.")
