"""The tab "Review": query cards beside their document, keys, usable share, filter form, round-trip button."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import starmap
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from cdp.base.config import BM25, FilterConfig, RoundTripConfig
from cdp.base.text import SEPARATOR
from cdp.base.workspace import Workspace
from cdp.complexity import content_words
from cdp.query_sets import usable
from cdp.query_sets.nonsense import QueryTable
from cdp.query_sets.store import QueryScores
from cdp.query_sets.usable import ReviewedDocument, ReviewedQuery
from cdp.services import commands, jobs, review
from cdp.services.queries import QuerySet
from cdp.ui import jobs as job_views
from cdp.ui.shell import forms, frame, state, tables, workbench
from cdp.ui.shell.tables import count, md, moment
from cdp.ui.shell.workbench import UNDO, AnswerKey


def summary(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> None:
    """How many are usable, the reasons, what was looked at, and the set that this one was made from."""
    found = usable.usability(workspace, query_set, table)
    share = "100%"
    if found.usable < found.n:
        share = f"{min(0.999, found.share):.1%}"

    st.markdown(f"#### {share} of {count(found.n, 'pair')} are usable")
    parts = [f"{reason}: {n:,}" for reason, n in Counter(found.reasons).most_common()]
    if found.by:
        parts.append(f"Round-trip rank by {found_by(*found.by)}")
    else:
        parts.append("Round-trip rank not measured")

    st.caption(md(SEPARATOR.join(parts)), help=frame.DEFINITIONS["usable"])
    with st.container(horizontal=True, vertical_alignment="center"):
        if parent := str(query_set.parameters.get("made_from") or ""):
            st.caption(f":material/account_tree: {md(usable.origin(query_set))}", width="content")
            frame.link("queries", "Open that set", query_set=parent, tab="review")
        frame.link("queries", "Measure this set", sets=[query_set.id], tab="quality")
        frame.link("launch", "Train on this set", query_set=query_set.id)


def found_by(*names: str) -> str:
    """Who looked for the documents: ``BM25 and minilm``."""
    return " and ".join({BM25: "BM25"}.get(name, name) for name in names)


SELECTED, EDITED = "review_selected", "review_edited"
VERDICTS = (
    AnswerKey("accept", "Accept", "A", ":material/check:"),
    AnswerKey("edit", "Edit", "E", ":material/edit:"),
    AnswerKey("reject", "Reject", "X", ":material/close:"),
)
ICONS = {choice.word: choice.icon for choice in VERDICTS}
COLOURS = {"accept": "green", "edit": "blue", "reject": "red"}


def _by() -> str:
    """Who decides; empty where no name was given."""
    return str(st.session_state.get(workbench.BY) or "")


def begin() -> None:
    """Another document: no query of it is selected yet."""
    st.session_state.pop(SELECTED, None)
    st.session_state.pop(EDITED, None)


def draw(workspace: Workspace, query_set: QuerySet, shown: ReviewedDocument, mask: NDArray[np.bool_]) -> None:
    """Draw the document left, its queries right. Queries that the filter leaves out are grey, to compare."""
    by_id = {query.id: query for query in shown.queries}
    selected = st.session_state.get(SELECTED)
    if selected not in by_id:
        undecided = [q.id for q in shown.queries if not q.decision and mask[q.row]]
        selected = next(iter(undecided or by_id), "")

    left, right = st.columns([2, 3], gap="medium")
    with left:
        _document(shown, by_id.get(selected), query_set.language or "en")

    with right:
        if by_id:
            ids = list(by_id)
            _steps(ids, ids.index(selected), "Query", "Up Down", "KJ", _select, type="tertiary")
        for query in shown.queries:
            _card(workspace, query_set, query, selected=query.id == selected, meant=bool(mask[query.row]))


def _document(shown: ReviewedDocument, current: ReviewedQuery | None, language: str) -> None:
    if shown.document is None:
        st.info(f"The corpus has no document {md(shown.id, 80)} any more.", icon=":material/info:")
        return

    words: list[str] = []
    if current is not None:
        words = sorted(content_words(current.text, language))

    workbench.text(shown.document.title or shown.id, shown.document.text, words)
    for other in shown.together:
        with st.expander(f"Also needs: {md(other.title or other.id, 120)}", icon=":material/join:"):
            workbench.text("", other.text, words)


def _steps(ids: list[str], at: int, what: str, names: str, keys: str, go: Callable[[str], None], **style: Any) -> None:
    """Draw two buttons with keys that move to the neighbours of ``ids[at]``, and its position."""
    back, on = names.split()
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, shortcut, to in ((back, keys[0], at - 1), (on, keys[1], at + 1)):
            disabled = not 0 <= to < len(ids)
            st.button(
                label, key=f"go_{label.lower()}", shortcut=shortcut, disabled=disabled, on_click=go,
                args=(ids[to % len(ids)],), **style,
            )  # fmt: skip
        st.caption(f"{what} {at + 1:,} of {len(ids):,}", width="content")


def _select(query_id: str) -> None:
    st.session_state[SELECTED] = query_id
    st.session_state.pop(EDITED, None)


def _card(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery, *, selected: bool, meant: bool) -> None:
    text = md(query.text) or "*(empty)*"
    which = "other"
    if selected:
        which, text = "selected", f":material/arrow_right: **{text}**"
    elif not meant:
        text = f":gray[{text}]"

    with st.container(border=True, key=f"card_{which}_{query.id}"):
        st.markdown(text)

        if query.text != query.original:
            st.caption(f"Written as: {md(query.original)}")

        editing = selected and st.session_state.get(EDITED) == query.id
        with st.container(horizontal=True, vertical_alignment="center"):
            _facts(query)
            if not editing:
                press = partial(_press, workspace, query_set, query)
                workbench.answers(VERDICTS, query.id, press, chosen=query.decision, keys=selected)
                if selected:
                    workbench.answers([UNDO], "review", press, quiet=True)
            if not selected:
                st.button("Select", key=f"select_{query.id}", type="tertiary", on_click=_select, args=(query.id,))

        if editing:
            _edit(workspace, query_set, query)


def _facts(query: ReviewedQuery) -> None:
    facts = [f"CW {query.cw}"]
    for by, rank in query.ranks.items():
        if rank:
            facts.append(f"{found_by(by)} rank {rank}")
        else:
            facts.append(f"not found by {found_by(by)}")

    st.caption(md(SEPARATOR.join(facts)), width="content")
    if query.decision:
        st.badge(DECIDED[query.decision], icon=ICONS[query.decision], color=COLOURS[query.decision])
    if query.reason:
        st.badge(query.reason, icon=":material/warning:", color="orange")


def _press(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery, verdict: str) -> None:
    """A decision, or the second press that takes it back; the next query is selected. An edit opens the field first."""
    if verdict == UNDO.word:
        if taken_back := review.undo(workspace, query_set.id, _by()):
            state.write(DOCUMENT, taken_back.rpartition("-")[0])
            _select(taken_back)
        return
    if verdict == "edit":
        st.session_state[SELECTED] = st.session_state[EDITED] = query.id
        return
    if query.decision == verdict:
        verdict = "clear"
    review.decide(workspace, query_set.id, [query.id], verdict, by=_by())
    st.session_state.pop(SELECTED, None)


def _edit(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery) -> None:
    st.text_area("The query", value=query.text, key=f"text_{query.id}", height=80, max_chars=2000)
    with st.container(horizontal=True):
        forms.button(
            "Save", key=f"save_{query.id}", type="primary", icon=":material/save:", on_click=_save,
            args=(workspace, query_set, query),
        )  # fmt: skip
        st.button("Cancel", key=f"cancel_{query.id}", on_click=_select, args=(query.id,))


def _save(workspace: Workspace, query_set: QuerySet, query: ReviewedQuery) -> None:
    with frame.guarded():
        text = str(st.session_state.get(f"text_{query.id}", ""))
        review.decide(workspace, query_set.id, [query.id], "edit", text=text, by=_by())
        begin()


DOCUMENT = "document"
DECIDED = {"accept": "accepted", "edit": "edited", "reject": "rejected"}


@st.fragment
def bench(workspace: Workspace, query_set: QuerySet, table: QueryTable) -> None:
    """One document beside its queries, and what the decisions leave: a fragment, so a key draws nothing else again."""
    with frame.guarded():
        with st.container(horizontal=True, vertical_alignment="bottom"):
            shown = {"": "all", usable.UNDECIDED: "undecided", **DECIDED, usable.UNUSABLE: "unusable"}
            show = forms.segments("Show", shown, key=f"review_{query_set.id}_show")
            workbench.who()
        mask = usable.chosen(workspace, query_set, table, show)
        index = _current(query_set, table, np.unique(table.document[mask]).tolist())
        if index is not None:
            draw(workspace, query_set, usable.document(workspace, query_set, table, index), mask)
        _result(workspace, query_set, len(table))


def _current(query_set: QuerySet, table: QueryTable, documents: list[int]) -> int | None:
    """Return the document on screen: the one that the address names, else the first with a query that matches."""
    if not documents:
        st.info("No pair matches.", icon=":material/filter_alt_off:")
        return None

    linked = st.query_params.get(DOCUMENT)
    there = np.flatnonzero(table.document_ids == (linked or state.kept(DOCUMENT) or "")).tolist()

    current = int(there[0]) if there else None
    if linked and current is None:
        st.caption(f":material/info: The document {md(linked, 80)} of the link has no queries in this set.")

    if current not in documents:
        # The next one that matches: after a decision the document may no longer be among them.
        at = int(np.searchsorted(documents, -1 if current is None else current)) % len(documents)
        current = documents[at]

    at = documents.index(current)
    names = table.document_ids
    state.keep(DOCUMENT, str(names[current]))
    _steps([str(names[document]) for document in documents], at, "Document", "Previous Next", "PN", _go)

    return current


def _go(name: str) -> None:
    state.write(DOCUMENT, name)
    begin()


def _result(workspace: Workspace, query_set: QuerySet, n: int) -> None:
    """What was decided so far, and the set that it leaves."""
    made = usable.decisions(workspace, query_set)
    if not len(made):
        return

    words = zip(DECIDED.values(), (made.accepted, made.edited, made.rejected), strict=True)
    said = [f"Decided: {len(made):,} of {n:,}", *(f"{len(names):,} {word}" for word, names in words)]
    workbench.progress(len(made), n, SEPARATOR.join(said))

    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        only = st.toggle("Only accepted and edited", key=f"only_{query_set.id}")
        if forms.button("Create reviewed set", type="primary", icon=":material/fact_check:", key="review_make"):
            derived = review.reviewed(workspace, query_set.id, only_accepted=only)
            notes = [f"{derived.dropped:,} left out, {derived.rewritten:,} rewritten. The first set is unchanged."]
            new = derived.query_set
            forms.remember(f"{new.name}: {count(new.n_queries, 'pair')}.", notes)
            state.write("query_set", new.id)
            st.rerun()

    forms.command(
        commands.line("queries", "review", query_set.id, "create", only_accepted=only),
        key="command-queries-review-create",
    )


SHOWN = (1, 3, 10, 100)
KEEP = ("round_trip_rank", "by", "cross_encoder", "at_least", "usable", "name")


def filters(workspace: Workspace, query_set: QuerySet) -> None:
    """The section below the workbench."""
    st.subheader("Round trip", anchor=False, help=frame.DEFINITIONS["round_trip"])
    job_views.running_note(workspace, job_views.active_on(workspace, [query_set.id], "round-trip", "filter"))
    _ranks(workspace, query_set)
    st.subheader("Filter before training", anchor=False)
    st.caption("Makes a new query set without the queries that fail a test. This set stays as it is.")
    with frame.guarded():
        _filter(workspace, query_set)


def _ranks(workspace: Workspace, query_set: QuerySet) -> None:
    """How many queries find their document, by each of those who looked; and the button for one more."""
    scores = usable.round_trips(workspace, query_set)
    if scores:
        tables.show(
            tables.by_title(starmap(_found, scores.items())),
            alt="Share of queries that find the document they were written for, by rank",
        )

    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.text_input(
            "Search with",
            value=BM25 if BM25 not in scores else "static-minilm",  # the next one that is quick
            key=f"round_trip_by_{query_set.id}",
            help=md(FilterConfig.settings()["by"].help),
            width=320,
        )

        if forms.button("Measure round-trip rank", icon=":material/sync_alt:", key="round_trip_start"):
            with frame.guarded():
                jobs.start(workspace, "round-trip", RoundTripConfig(query_set=query_set.id, by=by.strip()))
                st.rerun()

    forms.command(commands.line("queries", "round-trip", query_set.id, by=by.strip(), wait=True))


def _found(name: str, scores: QueryScores) -> dict[str, str]:
    """A row of the table of ranks: the share of queries that find their document, by rank."""
    row = {"Found by": found_by(name)}
    for k in SHOWN:
        within = (scores.values > 0) & (scores.values <= k)
        row[f"Within {k}"] = f"{within.mean():.1%}"
    return {**row, "Measured": moment(scores.created)}


def _filter(workspace: Workspace, query_set: QuerySet) -> None:
    given = forms.fields(FilterConfig, key=f"filter_{query_set.id}", leave_out=("query_set",), columns=3)
    pressed = forms.button("Create filtered set", icon=":material/filter_alt:", key="filter_start")
    words = {name: given[name] for name in KEEP if name in given}
    forms.command(commands.line("queries", "filter", query_set.id, **words, wait=True))
    if pressed:
        config = FilterConfig.from_dict({**given, "query_set": query_set.id})
        frame.go("jobs", job=jobs.start(workspace, "filter", config))
    made = usable.made_from(workspace, query_set)
    if made:
        st.caption(f"Made from this set: {count(len(made), 'query set')}.")
        for other in made[:10]:
            title = f"{md(other.name, 60)} ({count(other.n_queries, 'pair')})"
            frame.link("queries", title, query_set=other.id, tab="review")
