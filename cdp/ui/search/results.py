"""What each retriever retrieved, side by side; on a phone one below the other. Documents are text, never markup."""

from __future__ import annotations

from collections.abc import Collection as Names
from collections.abc import Sequence
from html import escape

import streamlit as st

from cdp.base.config import IndexConfig
from cdp.base.workspace import Workspace
from cdp.services import jobs, judged, queries, search
from cdp.services.judged import Judgment
from cdp.services.projects import Members
from cdp.services.search import Answer, Collection, Hit
from cdp.ui.jobs import live
from cdp.ui.search import choices
from cdp.ui.shell import access, navigation, state
from cdp.ui.shell.text import count, cut, duration, md


def show(workspace: Workspace, members: Members, collection: Collection, retrievers: Sequence[str], query: str) -> None:
    """Search, and draw the answers side by side."""
    with st.spinner("Searching. The first search loads the models, which takes some seconds.", show_time=True):
        searched = search.search(workspace, query, retrievers, collection.id)
    judgments = judged.judgments(
        workspace, searched.collection, searched.query, lambda name: members.has("benchmark", name)
    )
    for judgment in judgments:
        relevant = count(len(judgment.relevant), "relevant document")
        st.caption(f":material/fact_check: A query of {md(judgment.benchmark)} with {relevant}, marked below.")
    corpus = "" if collection.benchmark else collection.id
    sets = [q.id for q in queries.list_query_sets(workspace, corpus=corpus) if q.n_queries] if corpus else []
    first = next((answer.title for answer in searched.answers if answer.hits), "")
    with st.grid(len(searched.answers), min_column_width=280):
        for number, answer in enumerate(searched.answers):
            with st.container(key=f"answer_{number}"):
                trained = _training_set(workspace, answer.retriever, sets)
                _answer(workspace, searched.collection, answer, judgments, corpus, trained, first)
    choices.command_of(collection, retrievers, searched.query)


def _training_set(workspace: Workspace, retriever: str, sets: Sequence[str]) -> str:
    """The query set of this corpus whose queries a result leads to: the one that the retriever was trained on, else
    the one that was looked at last, else the newest."""
    job = next((job for job in jobs.list_jobs(workspace, ["training"]) if job.id == retriever), None)
    wanted = (str(job.config.get("query_set", "")) if job else "", state.kept("query_set") or "", *sets)
    return next((name for name in wanted if name in sets), "")


def _answer(
    workspace: Workspace,
    collection: Collection,
    answer: Answer,
    judgments: Sequence[Judgment],
    corpus: str,
    query_set: str,
    first: str,
) -> None:
    st.subheader(md(answer.title, 60), anchor=False)
    if answer.problem is not None:
        _problem(workspace, collection, answer)
        return
    compared = "" if answer.title == first else f" · ▲▼ against {md(first, 40)}"
    st.caption(f"{1000 * answer.search_s:.0f} ms{compared}")
    if not answer.hits:
        st.markdown("No document shares a word with the query.")
    for hit in answer.hits:
        with st.container(border=True, gap="small"):
            _hit(hit, judgments, corpus, query_set, moved=bool(compared))


def _hit(hit: Hit, judgments: Sequence[Judgment], corpus: str, query_set: str, *, moved: bool) -> None:
    title = cut(" ".join((hit.title or hit.id).split()), 100) or "Untitled"
    facts = [f"**{hit.rank}**", *([_move(hit)] if moved else []), *_badge(hit.id, judgments)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(" ".join(facts), width="content")
        if corpus:
            navigation.link("corpus", md(title), icon=":material/description:", corpus=corpus, document=hit.id)
        else:
            st.markdown(f"**{md(title)}**", width="content")
    st.html(f"<p class='snippet'>{marked(search.snippet(hit.text, hit.words))}</p>")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if query_set:
            navigation.link(
                "review", "Training queries", icon=":material/edit_note:", query_set=query_set, document=hit.id
            )
        if not corpus:
            with st.popover("Whole document", type="tertiary"):
                st.text(hit.text)
        st.caption(f"score {hit.score:.3f}", width="content")


def _move(hit: Hit) -> str:
    """Where the first retriever has the same document."""
    if hit.before is None:
        return ":violet-badge[new]"
    if hit.before == hit.rank:
        return ":gray[=]"
    steps = hit.before - hit.rank
    return f":green[▲ {steps}]" if steps > 0 else f":red[▼ {-steps}]"


def _badge(document: str, judgments: Sequence[Judgment]) -> list[str]:
    """Relevant, judged and not relevant, or nothing where nobody judged the document."""
    if any(document in judgment.relevant for judgment in judgments):
        return [":green-badge[:material/check: relevant]"]
    if any(document in judgment.grades for judgment in judgments):
        return [":gray-badge[judged, not relevant]"]
    return []


def marked(pieces: Names[tuple[str, bool]]) -> str:
    """HTML that shows the pieces as they are, every character escaped, those that match marked."""
    return "".join(f"<mark>{escape(piece)}</mark>" if matches else escape(piece) for piece, matches in pieces)


def _problem(workspace: Workspace, collection: Collection, answer: Answer) -> None:
    """What kept a retriever from answering; where its index is missing, the way to it."""
    assert answer.problem is not None
    if answer.index_s is None:
        st.warning(md(answer.problem.hint) or "Choose another retriever.", title=md(answer.problem.message))
        return
    job = search.indexing(workspace, answer.retriever, collection.id)
    st.info(
        f"That takes about {duration(answer.index_s)} on this machine. You can go on meanwhile.",
        title=md(answer.problem.message),
    )
    if job is not None:
        live.live(_progress, True, workspace, answer.retriever, collection.id)
    elif access.button(
        "Index the documents", key=f"index_{answer.retriever}", icon=":material/database:", type="primary"
    ):
        settings = {"retriever": answer.retriever, "collection": collection.id}
        search.start_index(workspace, IndexConfig.from_dict(settings))
        st.rerun()


def _progress(workspace: Workspace, retriever: str, collection: str) -> None:
    job = search.indexing(workspace, retriever, collection)
    if job is None:
        st.rerun()
    assert job is not None
    st.progress(job.fraction, text=md(live.doing(job)))
    navigation.link("jobs", "Watch", job=job.id)
