"""A document on the left, its queries on the right: accept, edit, reject, one by one or all that a filter chooses.

Everything here is one fragment: a key pressed draws this part anew and nothing else of the page.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, queries, review
from cdp.services.queries import QuerySet
from cdp.services.review import FORMATS, QueryChoice, QueryTable
from cdp.ui.review import cards
from cdp.ui.shell import access, command, forms, frame, imports, state
from cdp.ui.shell.text import count, md

DOCUMENT = "document"
DECIDED = {"": "all", "undecided": "undecided", "accept": "accepted", "edit": "edited", "reject": "rejected"}
NUMBERS = ("rank_above", "cw_from", "cw_to", "words_from", "words_to")
LABELS = {
    "rank_above": "Round-trip rank above",
    "cw_from": "CW from",
    "cw_to": "CW to",
    "words_from": "Words from",
    "words_to": "Words to",
}


def show(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> None:
    """The fragment, and below it what the decisions leave."""
    _workbench(workspace, query_set, table)


@st.fragment
def _workbench(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> None:
    with frame.guarded():
        choice = _choice(workspace, query_set)
        mask = review.chosen(workspace, query_set, table, choice)
        documents = np.unique(table.document[mask])
        _bulk(workspace, query_set, choice, int(mask.sum()), len(documents))
        index = _document(query_set, table, documents.tolist())
        if index is not None:
            cards.draw(workspace, query_set, review.document(workspace, query_set, table, index), mask)
        _result(workspace, query_set, len(table))


def _choice(workspace: Workspace, query_set: QuerySet) -> QueryChoice:
    """Which queries are looked at."""
    values: dict[str, object] = {}
    key = f"review_{query_set.id}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        values["decision"] = forms.segments("Show", DECIDED, key=f"{key}_decision")
    with st.expander("Filter", icon=":material/filter_alt:", key=f"{key}_filter"):
        with st.container(horizontal=True):
            for name, label in (("duplicate", "Duplicates"), ("flagged", "No query (refusal, prompt, JSON …)")):
                values[name] = st.toggle(label, key=f"{key}_{name}", persist_state="session")
        picked = st.pills("Format", list(FORMATS), selection_mode="multi", key=f"{key}_formats")
        values["formats"] = ",".join(picked)
        with st.grid(5, min_column_width=120):
            for name in NUMBERS:
                values[name] = forms.widget(QueryChoice, name, key=key, label=LABELS[name])
        ranked = list(queries.round_trips(workspace, query_set))
        if values["rank_above"] is not None and len(ranked) > 1:
            values["by"] = forms.segments("Round-trip rank by", ranked, key=f"{key}_by")
        elif ranked:
            values["by"] = ranked[0]
    return QueryChoice.from_dict(values)


def _bulk(workspace: Workspace, query_set: QuerySet, choice: QueryChoice, n: int, n_documents: int) -> None:
    """How many queries are meant, and one decision about all of them."""
    if not choice.text:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{count(n, 'query', 'queries')}** of {count(n_documents, 'document')} match.", width="content")
        if not n:
            return
        with st.popover(f"Decide about all {n:,}", icon=":material/done_all:", type="tertiary"):
            st.caption(
                "Decisions are kept beside the set and can be taken back; the queries stay as they were written."
            )
            for verdict, label in (("reject", "Reject"), ("accept", "Accept"), ("clear", "Take decisions back")):
                access.button(
                    f"{label}: {n:,}", key=f"bulk_{verdict}", on_click=_decide_all,
                    args=(workspace, query_set, choice, verdict),
                )  # fmt: skip
    given = {name: value for name, value in choice.to_dict().items() if value not in (None, "", False)}
    command.show(commands.line("queries", "review", query_set.id, "reject", **given))


def _decide_all(workspace: Workspace, query_set: QuerySet, choice: QueryChoice, verdict: str) -> None:
    with frame.guarded():
        review.decide_all(workspace, query_set.id, choice, verdict)
        cards.begin()


def _document(query_set: QuerySet, table: QueryTable, documents: list[int]) -> int | None:
    """Which document is looked at: the one that the address names, else the first with a query that is meant."""
    if not documents:
        st.info("No query matches. Change the filter to see others.", icon=":material/filter_alt_off:")
        return None
    linked = st.query_params.get(DOCUMENT)
    current = _index(table, linked or state.kept(DOCUMENT) or "")
    if linked and current is None:
        st.caption(f":material/info: The document {md(linked, 80)} of the link has no queries in this set.")
    if current not in documents:
        # The next one that is meant: after a decision the document may not be among them any more.
        at = int(np.searchsorted(documents, -1 if current is None else current)) % len(documents)
        current = documents[at]
    at = documents.index(current)
    names = table.document_ids
    state.keep(DOCUMENT, str(names[current]))
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, key, shortcut, to in (
            ("Previous", ":material/chevron_left:", "go_previous", "P", at - 1),
            ("Next", ":material/chevron_right:", "go_next", "N", at + 1),
        ):
            inside = 0 <= to < len(documents)
            st.button(
                label, icon=icon, key=key, shortcut=shortcut, disabled=not inside, on_click=_go,
                args=(str(names[documents[to]]) if inside else "",),
            )  # fmt: skip
        st.caption(f"Document {at + 1:,} of {len(documents):,}", width="content")
    return current


def _index(table: QueryTable, name: str) -> int | None:
    """Where a document stands in the set; None where it has no queries there."""
    there = np.flatnonzero(table.document_ids == name).tolist()
    return int(there[0]) if there else None


def _go(name: str) -> None:
    state.write(DOCUMENT, name)
    cards.begin()


def _result(workspace: Workspace, query_set: QuerySet, n: int) -> None:
    """What was decided so far, and the set that it leaves."""
    made = review.decisions(workspace, query_set)
    if made.stale:
        st.caption(f":material/info: {count(made.stale, 'line')} of decisions are about another content of this set.")
    if not len(made):
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            f"**Decided: {len(made):,} of {n:,}** · {len(made.accepted):,} accepted · {len(made.edited):,} edited · "
            f"{len(made.rejected):,} rejected",
            width="content",
        )
        only = st.toggle("Only accepted and edited", key=f"only_{query_set.id}")
        if access.button("Create reviewed set", type="primary", icon=":material/fact_check:", key="review_make"):
            derived = review.reviewed(workspace, query_set.id, only_accepted=only)
            notes = [f"{derived.dropped:,} left out, {derived.rewritten:,} rewritten. The first set is unchanged."]
            new = derived.query_set
            imports.remember(f"{new.name}: {count(new.n_queries, 'query', 'queries')}.", notes)
            state.write("query_set", new.id)
            st.rerun()
    command.show(
        commands.line("queries", "review", query_set.id, "create", only_accepted=only),
        key="command-queries-review-create",
    )
