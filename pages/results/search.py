"""One query, and what up to three retrievers retrieve for it, side by side."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora
from cdp.ui import search as page
from cdp.ui.shell import frame, state

workspace = Workspace.default()
frame.head("search")

with frame.guarded():
    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        text = "There is nothing to search yet. Add documents first."
        frame.empty("No documents yet", text, "documents", "Add documents")
    else:
        query = page.query()
        with st.grid(2, min_column_width=340):
            names = looking.titles(manifests)
            corpus = state.choose("Corpus", names, "corpus", what="corpus") or manifests[0].id
            with st.container():
                retrievers = page.retrievers(workspace, state.scope(workspace))
        if query and retrievers:
            page.show(workspace, corpus, retrievers, query)
        elif retrievers:
            page.example(workspace, corpus, retrievers)
        else:
            st.caption("Choose up to three retrievers.")
