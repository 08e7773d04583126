"""Diverse against paraphrase for one document; queries for the whole corpus; the query sets there are."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import corpora, queries
from cdp.ui import jobs as job_views
from cdp.ui.decide import answer as decide_answer
from cdp.ui.queries import preview, writing
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("queries")

with frame.guarded():
    forms.flash()
    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        frame.empty("No documents yet", "Queries are written for documents. Add a corpus first.")
        frame.page_button("corpus", "Add a corpus", "to_corpus")
    else:
        corpus = state.choose("Corpus", {m.id: m.name for m in manifests}, "corpus", what="corpus")
        manifest = next(m for m in manifests if m.id == corpus)
        decide_answer.test_summary(workspace, manifest.id)
        sets = queries.list_query_sets(workspace, corpus=manifest.id)
        cloned = job_views.clone_asked()
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
                writing.generate(workspace, manifest, sets)
                stored_sets.add(workspace, manifest)
        if listed.open:
            with listed, frame.guarded():
                stored_sets.browse(workspace, manifest, sets)
