"""Documents in, and a look at what was read."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora
from cdp.ui import documents
from cdp.ui.decide import answer as decide_answer
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("documents")

with frame.guarded():
    told = forms.flash()
    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        frame.empty("No documents yet", "Add files or a folder from your computer, or a path on this server.")
        documents.form(workspace)
    else:
        corpus = state.choose(
            "Corpus", looking.titles(manifests), "corpus", what="corpus", help=frame.DEFINITIONS["corpus"]
        )
        with st.expander("Add another corpus", icon=":material/add:", key=f"add_corpus{documents.turn()}"):
            documents.form(workspace)
        manifest = next(m for m in manifests if m.id == corpus)
        documents.linked(workspace, manifest)
        decide_answer.test_summary(workspace, manifest.id)
        documents.facts(manifest, told)
        documents.browse(workspace, manifest)
        documents.files(manifest)
        documents.rejected(manifest)
        documents.faults(workspace, manifest)
        frame.next_step(
            "queries",
            "See queries for these documents",
            "compare diverse and paraphrase queries for one document, then write them for all.",
            "corpus_next",
            corpus=manifest.id,
        )
        documents.remove(workspace, manifest)
