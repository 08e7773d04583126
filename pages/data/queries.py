"""Queries for one document and for all of them; a set's queries one by one; sets measured side by side."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.query_sets import usable
from cdp.services import corpora, queries
from cdp.ui.decide import answer as decide_answer
from cdp.ui.queries import quality, writing
from cdp.ui.queries import review as review_page
from cdp.ui.queries import sets as stored_sets
from cdp.ui.shell import forms, frame, state

WRITE, QUALITY = "write", "quality"


def write(workspace: Workspace) -> None:
    manifests = state.of_project(workspace, "corpus", corpora.list_corpora(workspace))
    if not manifests:
        text = "Queries are written for documents. Add some first."
        frame.empty("No documents yet", text, "documents", "Add documents")
        return

    corpus = state.choose("Corpus", looking.titles(manifests), "corpus", what="corpus")
    manifest = next(m for m in manifests if m.id == corpus)
    decide_answer.test_summary(workspace, manifest.id)
    sets = queries.list_query_sets(workspace, corpus=manifest.id)
    key = "generate"

    chosen = writing.choose_generator(workspace, sets, key)
    with frame.guarded():
        writing.preview(workspace, manifest, sets, chosen)
    with frame.guarded():
        writing.generate(workspace, manifest, sets, chosen, key)

    stored_sets.add(workspace, manifest)

    if sets:
        frame.next_step(
            "queries",
            "Measure your query sets",
            "one document proves little; measure the difference over the whole corpus.",
            "preview_next",
            tab=QUALITY,
        )


def read(workspace: Workspace) -> None:
    sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    if not sets:
        _no_sets("review")
        return

    chosen = state.choose("Query set", stored_sets.set_names(workspace, sets), "query_set", what="query set")
    query_set = next(q for q in sets if q.id == chosen)
    stored_sets.incomplete_notes(workspace, [query_set.id])
    stored_sets.facts(workspace, query_set)

    if query_set.n_queries:
        with st.spinner("Reading queries"):
            table = usable.table(workspace, query_set)
        review_page.summary(workspace, query_set, table)
        review_page.bench(workspace, query_set, table)
        review_page.filters(workspace, query_set)
    else:
        st.caption("No queries have been written yet.")

    writing.export(workspace, query_set)
    stored_sets.remove(workspace, query_set)


def _no_sets(what: str) -> None:
    text = f"Write queries for a corpus or import some, then {what} them here."
    frame.empty("No query sets yet", text, "queries", "Write queries", tab=WRITE)


def measure(workspace: Workspace) -> None:
    own_sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    query_sets = [q for q in own_sets if q.n_queries]
    if not query_sets:
        _no_sets("measure")
    else:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            with st.container():
                chosen = state.choose_many(
                    "Query sets",
                    stored_sets.set_names(workspace, query_sets),
                    "sets",
                    what="query set",
                    default=quality.first_choice(query_sets),
                    most=8,
                )

            with st.container(width=280):
                human = quality.choose_human(query_sets)

        by_id = {q.id: q for q in query_sets}

        picked = [by_id[key] for key in chosen]
        if not picked:
            st.caption("Choose at least one query set.")
        else:
            stored_sets.incomplete_notes(workspace, [*chosen, human])
            rows = quality.quick(workspace, picked, human)
            quality.answer(workspace, rows)
            quality.table(workspace, rows)
            quality.curve(workspace, rows)
            quality.model_based(workspace, rows, human)

    if query_sets:
        frame.next_step(
            "decide",
            "See what helps on your data",
            "whether diverse queries help is a matter of your task: Decide has what was measured, or measures it.",
            "measures_next",
        )


frame.head("queries")

with frame.guarded():
    forms.flash()
    frame.tabs(
        Workspace.default(),
        {
            WRITE: ("Preview and write", write),
            "review": ("Review", read),
            QUALITY: ("Quality and diversity", measure),
        },
    )
