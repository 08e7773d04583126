"""One document and the cards of its queries. The selected card has the keys, and its passage is highlighted."""

from __future__ import annotations

import re

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from cdp.base.workspace import Workspace
from cdp.query_sets.nonsense import REASONS
from cdp.services import review
from cdp.services.queries import Passage, QuerySet
from cdp.services.review import ReviewedDocument, ReviewedQuery
from cdp.ui.review.summary import found_by
from cdp.ui.shell import access, frame
from cdp.ui.shell.text import count, md

SELECTED, EDITED = "review_selected", "review_edited"
LONGEST_SHOWN = 20_000
"""Characters of a document that are drawn."""

HEIGHT = 560
VERDICTS = (
    ("accept", "Accept", ":material/check:", "A", "green", "accepted"),
    ("edit", "Edit", ":material/edit:", "E", "blue", "edited"),
    ("reject", "Reject", ":material/close:", "X", "red", "rejected"),
)
HOW = {
    "recorded": "Highlighted: the passage that the generator recorded for the selected query.",
    "verbatim": "Highlighted: the selected query stands in the document word for word.",
    "overlap": "Highlighted: the sentence that shares most content words with the selected query. The generator "
    "recorded no passage.",
}


def begin() -> None:
    """Another document: no query of it is selected yet."""
    st.session_state.pop(SELECTED, None)
    st.session_state.pop(EDITED, None)


def draw(workspace: Workspace, query_set: QuerySet, shown: ReviewedDocument, mask: NDArray[np.bool_]) -> None:
    """The document left, its queries right. Queries that the filter does not mean are shown quietly, to compare."""
    ids = [query.id for query in shown.queries]
    selected = st.session_state.get(SELECTED)
    if selected not in ids:
        open_queries = [q.id for q in shown.queries if not q.decision and mask[q.row]]
        selected = next(iter(open_queries or ids), "")
    current = next((query for query in shown.queries if query.id == selected), None)
    left, right = st.columns(2, gap="medium")
    with left:
        _document(shown, current.passage if current else None)
    with right:
        _keys(ids, selected)
        for query in shown.queries:
            _card(workspace, query_set, query, selected=query.id == selected, meant=bool(mask[query.row]))


def _document(shown: ReviewedDocument, passage: Passage | None) -> None:
    if shown.document is None:
        st.info(f"The corpus has no document {md(shown.id, 80)} any more.", icon=":material/info:")
        return
    text = shown.document.text
    st.markdown(f"**{md(shown.document.title or shown.id, 160)}**")
    with st.container(height=HEIGHT if len(text) > 2500 else "content", border=True):
        st.markdown(highlighted(text[:LONGEST_SHOWN], passage))
        if len(text) > LONGEST_SHOWN:
            st.caption(f"The other {len(text) - LONGEST_SHOWN:,} characters are not shown.")
    st.caption(HOW[passage.how] if passage else "No sentence shares a content word with the selected query.")


def highlighted(text: str, passage: Passage | None) -> str:
    """A document as Markdown in which every character shows as it is, with one passage on a coloured ground."""
    if passage is None or passage.start >= len(text):
        parts = [(text, False)]
    else:
        start, end = passage.start, min(passage.end, len(text))
        parts = [(text[:start], False), (text[start:end], True), (text[end:], False)]
    paragraphs: list[list[str]] = [[]]
    for part, marked in parts:
        for at, line in enumerate(part.split("\n")):
            if at:
                paragraphs.append([])
            if shown := md(line):
                paragraphs[-1].append(f":yellow-background[{shown}]" if marked else shown)
    return "\n\n".join(" ".join(pieces) for pieces in paragraphs if pieces)


def _keys(ids: list[str], selected: str) -> None:
    """The keys that move between queries; one line that names all keys."""
    at = ids.index(selected) if selected in ids else 0
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, key, shortcut, to in (("Up", "go_up", "K", at - 1), ("Down", "go_down", "J", at + 1)):
            inside = 0 <= to < len(ids)
            st.button(
                label, key=key, shortcut=shortcut, type="tertiary", disabled=not inside, on_click=_select,
                args=(ids[to] if inside else selected,),
            )  # fmt: skip
        st.caption(f"Query {at + 1} of {len(ids)}", width="content")


def _select(query_id: str) -> None:
    st.session_state[SELECTED] = query_id
    st.session_state.pop(EDITED, None)


def _card(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery, *, selected: bool, meant: bool) -> None:
    with st.container(border=True, key=f"card_{'selected' if selected else 'other'}_{query.id}"):
        marker = ":material/arrow_right: " if selected else ""
        text = md(query.text) or "*(empty)*"
        st.markdown(f"{marker}**{text}**" if selected else text if meant else f":gray[{text}]")
        if query.text != query.original:
            st.caption(f"Written as: {md(query.original)}")
        _facts(query)
        if selected and st.session_state.get(EDITED) == query.id:
            _edit(workspace, query_set, query)
            return
        with st.container(horizontal=True):
            for verdict, label, icon, key, _, _ in VERDICTS:
                access.button(
                    label, icon=icon, key=f"{verdict}_{query.id}", shortcut=key if selected else None,
                    type="primary" if query.decision == verdict else "secondary",
                    on_click=_press, args=(workspace, query_set, query, verdict),
                )  # fmt: skip
            if not selected:
                st.button("Select", key=f"select_{query.id}", type="tertiary", on_click=_select, args=(query.id,))


UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words, where what stands between spaces is no word."""


def _length(query: ReviewedQuery) -> str:
    if UNSPACED.search(query.text):
        return count(len(query.text), "character")
    return count(query.words, "word")


def _facts(query: ReviewedQuery) -> None:
    """CW, format, ranks, and what is wrong with it."""
    ranks = [
        f"{found_by(by)} rank {rank}" if rank else f"not found by {found_by(by)}" for by, rank in query.ranks.items()
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(md(" · ".join([f"CW {query.cw}", _length(query), query.format, *ranks])), width="content")
        for verdict, _, icon, _, colour, word in VERDICTS:
            if query.decision == verdict:
                st.badge(word, icon=icon, color=colour)
        if query.duplicate:
            st.badge("duplicate", icon=":material/content_copy:", color="orange")
        for reason in query.reasons:
            st.badge(REASONS[reason], icon=":material/warning:", color="orange")


def _press(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery, verdict: str) -> None:
    """A decision, or the second press that takes it back; the next query is selected. An edit opens the field first."""
    if verdict == "edit":
        st.session_state[SELECTED] = st.session_state[EDITED] = query.id
        return
    with frame.guarded():
        review.decide(workspace, query_set.id, [query.id], "clear" if query.decision == verdict else verdict)
        st.session_state.pop(SELECTED, None)


def _edit(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery) -> None:
    st.text_area("The query", value=query.text, key=f"text_{query.id}", height=80, max_chars=2000)
    with st.container(horizontal=True):
        access.button(
            "Save", key=f"save_{query.id}", type="primary", icon=":material/save:", on_click=_save,
            args=(workspace, query_set, query),
        )  # fmt: skip
        st.button("Cancel", key=f"cancel_{query.id}", on_click=_select, args=(query.id,))


def _save(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery) -> None:
    with frame.guarded():
        text = str(st.session_state.get(f"text_{query.id}", ""))
        review.decide(workspace, query_set.id, [query.id], "edit", text=text)
        begin()
