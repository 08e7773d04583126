"""Diverse against paraphrase for one document; queries for the whole corpus; the query sets there are."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import corpora, queries
from cdp.ui.complexity import trial
from cdp.ui.jobs import clone
from cdp.ui.queries import preview
from cdp.ui.queries import sets as query_sets
from cdp.ui.queries import whole_corpus as synthesis
from cdp.ui.shell import frame, imports, project, state

workspace = Workspace.default()
frame.head("queries")

with frame.guarded():
    imports.flash()
    manifests = project.keep(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        frame.empty("No documents yet", "Queries are written for documents. Add a corpus first.")
        frame.navigation.button("corpus", "Add a corpus", "to_corpus")
    else:
        corpus = state.choose("Corpus", {m.id: m.name for m in manifests}, "corpus", what="corpus")
        manifest = next(m for m in manifests if m.id == corpus)
        trial.summary(workspace, manifest.id)
        sets = queries.list_query_sets(workspace, corpus=manifest.id)
        cloned = clone.asked()
        one_document, whole, listed = st.tabs(
            ["One document", "Whole corpus", f"Query sets ({len(sets)})"],
            default="Whole corpus" if cloned else None,
            on_change="rerun",
            key="queries_view_clone" if cloned else "queries_view",
        )
        if one_document.open:
            with one_document, frame.guarded():
                preview.show(workspace, manifest, sets)
        if whole.open:
            with whole, frame.guarded():
                synthesis.generate(workspace, manifest, sets)
                query_sets.add(workspace, manifest)
        if listed.open:
            with listed, frame.guarded():
                query_sets.browse(workspace, manifest, sets)
