"""What stands behind a number: the documents of a query set, and the pairs of queries of the one that is clicked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import metrics
from cdp.services.metrics import QuickMetrics, ScoredQueries
from cdp.services.queries import QuerySet
from cdp.ui.shell import forms, frame, tables
from cdp.ui.shell.text import md

Value = dict[str, Any]


def explore(
    workspace: Workspace,
    picked: Sequence[QuerySet],
    measured: Mapping[str, QuickMetrics],
    results: Mapping[str, Value],
) -> None:
    """Documents by their values; a click on one shows its queries and pairs."""
    rows = {q.id: q.name for q in picked if q.id in measured}
    if not rows:
        return
    st.subheader("Documents behind the numbers", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = forms.segments("Query set", {key: md(name, 60) for key, name in rows.items()}, key="pairs_set")
        result = results.get(chosen)
        by = "self_bleu"
        if result is not None:
            by = forms.segments("Sort by", {"ce": "CE", "self_bleu": "Self-BLEU"}, key="pairs_by")
    with frame.guarded():
        documents = metrics.list_documents(workspace, measured[chosen], result, by=by)
        columns: dict[str, Sequence[Any]] = {
            "Document": [d.document_id for d in documents],
            "Self-BLEU": [d.self_bleu for d in documents],
            "CE": [d.ce for d in documents],
            "Mean CW": [d.cw for d in documents],
        }
        if result is None:
            del columns["CE"]
        digits = tables.decimals("Self-BLEU", "CE", digits=3) | tables.decimals("Mean CW", digits=1)
        digits["Document"] = st.column_config.TextColumn(width=130 if result is None else 80)
        left, right = st.columns([2, 3], gap="medium")
        with left:
            st.caption("The most repetitive documents first. Choose a row to see its queries.")
            row = tables.pick_row(
                columns, alt="Documents with their measures", key=f"pairs_{chosen}_{by}", config=digits, height=360
            )
        with right:
            document = documents[row or 0]
            _one(document.document_id, metrics.document_queries(workspace, chosen, document.document_id, result))


def _one(document_id: str, document_queries: ScoredQueries) -> None:
    """The queries of one document with their BLEU, and its pairs where a model scored them."""
    st.markdown(f"**{md(document_id, 80)}**")
    if document_queries.pairs:
        threshold = document_queries.threshold or 0.0
        above = sum(score > threshold for score, _, _ in document_queries.pairs)
        st.caption(
            f"{above} of {len(document_queries.pairs)} pairs score above {threshold:g} and count as paraphrases: "
            f"a share of {above / len(document_queries.pairs):.2f}."
        )
        tables.show(
            {
                "Score": [score for score, _, _ in document_queries.pairs],
                "Paraphrase": [score > threshold for score, _, _ in document_queries.pairs],
                "Query": [a for _, a, _ in document_queries.pairs],
                "Other query": [b for _, _, b in document_queries.pairs],
            },
            alt=f"Scored pairs of queries of {document_id}, the most similar first",
            config={
                "Score": st.column_config.NumberColumn(format="%.3f", width=60),
                "Paraphrase": st.column_config.CheckboxColumn(width=80),
                "Query": st.column_config.TextColumn(width=230),
                "Other query": st.column_config.TextColumn(width=230),
            },
            height=200,
        )
    tables.show(
        {"BLEU": document_queries.bleu, "Query": document_queries.queries},
        alt=f"Queries of {document_id}, each with its BLEU against the others",
        config={
            "BLEU": st.column_config.NumberColumn(
                format="%.3f",
                width=60,
                help="How much of this query the other queries of the document repeat; their mean is the document's "
                "Self-BLEU.",
            ),
            "Query": st.column_config.TextColumn(width="large"),
        },
        height=160 if document_queries.pairs else 360 if len(document_queries.queries) > 9 else None,
    )
    if len(document_queries.queries) < 2:
        st.caption("This document has one query only, so there is no pair to compare.")
