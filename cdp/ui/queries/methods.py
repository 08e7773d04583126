"""What a chosen method needs besides documents: the user's own prompt, the queries that it works from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from cdp.base.config import SynthesisConfig
from cdp.query_sets import QuerySet
from cdp.services import synthesis
from cdp.synthesis.methods import Method
from cdp.ui.shell import forms, paper_notes, tables
from cdp.ui.shell.text import md

OWN = "own"
OWN_TITLE = "Your own prompt"
EXAMPLE_PROMPT = """Write {M} search queries that this document answers, as a numbered list.

<document>
{document}
</document>

1."""
SETTINGS = ("prompt", "source", "ranker", "teachers")
"""The fields that are asked for here and in no general form."""


def titles(methods: Sequence[Method]) -> dict[str, str]:
    """Names and titles of the methods, with the user's own prompt last."""
    return {**{m.name: m.title for m in methods}, OWN: OWN_TITLE}


def extras(
    names: Sequence[str], methods: Sequence[Method], sets: list[QuerySet], key: str, first: Mapping[str, Any]
) -> dict[str, Any]:
    """Ask for what the chosen methods need; fields of SynthesisConfig. Says what must be said about a method."""
    chosen = [method for method in methods if method.name in names]
    values: dict[str, Any] = {}
    for note in dict.fromkeys(method.note for method in chosen if method.note):
        st.info(md(note), icon=":material/info:")
    if OWN in names:
        values["prompt"] = st.text_area(
            "Your prompt",
            value=first.get("prompt") or EXAMPLE_PROMPT,
            height=200,
            key=f"{key}_prompt",
            help="Use {document} where the document goes and {M} for the number of queries. The prompt is stored "
            "with the query set, under its hash.",
            persist_state="session",
        )
    if any(method.from_queries for method in chosen):
        complete = {q.id: q.name for q in sets if q.complete and q.method != "reasoning"}
        values["source"] = (
            st.selectbox(
                "Query set to reason over",
                list(complete),
                format_func=complete.__getitem__,
                key=f"{key}_source",
                persist_state="session",
            )
            or ""
        )
    for method in chosen:
        field = {"cropping": "ranker", "ranking": "teachers"}.get(method.generator)
        if field:
            values[field] = forms.widget(SynthesisConfig, field, key=key, value=first.get(field))
    return {name: value for name, value in values.items() if value}


def overview() -> None:
    """Every row of the paper's tables, and how to run it here."""
    with st.expander(
        "All methods, including the paper's baselines without synthetic queries", icon=":material/menu_book:"
    ):
        rows = synthesis.list_conditions()
        tables.show(
            {
                "Method": [row["title"] for row in rows],
                "Kind": [row["kind"] for row in rows],
                "What it does": [f"{row['help']} {row['note']}".strip() for row in rows],
            },
            alt="Synthesis methods",
        )
        paper_notes.beside("formats")
