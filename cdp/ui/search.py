"""Try a query: query field, choice of retrievers (all in the address), hits side by side, on a phone one below the
other; index button. Documents are text, never markup."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import streamlit as st

from cdp.base import text
from cdp.base.config import IndexConfig
from cdp.base.workspace import Workspace
from cdp.retrievers import sending
from cdp.services import commands, jobs, search, trial
from cdp.services.projects import Members
from cdp.services.search import Hit, SearchAnswer
from cdp.ui import jobs as job_views
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import cut, html_marked, md

QUERY = "q"


def query() -> str:
    """Draw the query field; return the query that the address names. The menu's link carries the last one."""
    current = st.query_params.get(QUERY, "").strip()  # Back to the address without one empties the field
    if st.session_state.get("query_text", "").strip() != current:
        st.session_state["query_text"] = current
    st.text_input(
        "Query", key="query_text", placeholder="Type a query, as your users would", label_visibility="collapsed",
        icon=":material/search:", on_change=_chosen, args=("query_text",),
    )  # fmt: skip
    state.settle(QUERY, current or None)
    return current


def _chosen(key: str) -> None:
    state.write(QUERY, str(st.session_state[key] or "").strip() or None)


def retrievers(workspace: Workspace, members: Members) -> list[str]:
    """Draw the choice of up to three retrievers: at first BM25, an untrained one, and the newest trained one."""
    named = [*st.query_params.get_all("search_with"), *state.kept_many("search_with")]
    choices = [
        choice
        for choice in search.list_retrievers(workspace, named)
        if choice.kind != "job" or members.has("job", search.model_of(choice.id))
    ]

    titles = {c.id: c.title for c in choices}
    trained = (c.id for c in choices if c.kind == "job")
    default = ["bm25", "static-minilm", *islice(trained, 1)]
    chosen = state.choose_many(
        "Retrievers",
        titles,
        "search_with",
        what="retriever",
        default=default,
        most=search.MAX_RETRIEVERS,
        placeholder="Choose up to three",
        help="BM25 matches words. Untrained retrievers are as they were published; trained ones come from your jobs.",
    )
    with st.popover("Add a retriever behind an API", icon=":material/api:", type="tertiary"):
        st.text_input(
            "Model and address", key="search_api", placeholder="api:MODEL@http://localhost:8000/v1",
            help="An OpenAI-compatible embeddings endpoint. Nothing is sent before you see the price.",
            on_change=_add_api, args=(chosen,),
        )  # fmt: skip

    return chosen[: search.MAX_RETRIEVERS]


def _add_api(chosen: list[str]) -> None:
    name = str(st.session_state["search_api"]).strip()
    names = dict.fromkeys(filter(None, [*chosen, name]))
    state.write("search_with", list(names)[-search.MAX_RETRIEVERS :])


def example(workspace: Workspace, corpus: str, retrievers: Sequence[str]) -> None:
    """Before a query is typed: what to do, and the answers to one of the corpus's judged queries where it has some."""
    query = trial.example_query(workspace, corpus)
    if not query:
        st.caption("Type a query and press Enter.")
        return

    st.caption(
        f"Type a query and press Enter. Until then, a judged query of these documents: **{md(cut(query, 200))}**"
    )
    show(workspace, corpus, retrievers, query, unasked=True)


def show(workspace: Workspace, corpus: str, retrievers: Sequence[str], query: str, *, unasked: bool = False) -> None:
    """Search, and draw the answers side by side; ``unasked``, without those that have a problem."""
    with st.spinner("Searching. The first search loads the models, which takes some seconds.", show_time=True):
        searched = search.search(workspace, query, retrievers, corpus)
    answers = [answer for answer in searched.answers if answer.problem is None or not unasked]
    if not answers:
        return
    with st.grid(len(answers), min_column_width=280):
        for number, answer in enumerate(answers):
            with st.container(key=f"answer_{number}"):
                _answer(workspace, corpus, answer)
    forms.command(commands.line("search", cut(searched.query, 200), retriever=list(retrievers), corpus=corpus))


def _answer(workspace: Workspace, corpus: str, answer: SearchAnswer) -> None:
    st.subheader(md(answer.title, 60), anchor=False)
    if answer.problem is not None:
        _problem(workspace, corpus, answer)
        return
    facts = [f"{1000 * answer.seconds:.0f} ms"]
    if any(hit.shares for hit in answer.hits):
        facts.append("The stronger a word is marked, the larger its share of the score.")
    st.caption(text.SEPARATOR.join(facts))
    if not answer.hits:
        st.markdown("No document shares a word with the query.")
    for hit in answer.hits:
        with st.container(border=True, gap="small"):
            _hit(hit, corpus)


def _hit(hit: Hit, corpus: str) -> None:
    title = cut(" ".join((hit.title or hit.id).split()), 100) or "Untitled"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{hit.rank}**", width="content")
        frame.link("documents", md(title), icon=":material/description:", corpus=corpus, document=hit.id)
    st.html(f"<p class='snippet' dir='auto'>{html_marked(text.snippet(hit.text, hit.words), hit.shares)}</p>")

    facts = [f"score {hit.score:.3f}"]
    if hit.file:
        place = ", ".join(filter(None, [md(cut(hit.file, 60)), hit.pages]))
        facts.insert(0, place)
    st.caption(text.SEPARATOR.join(facts))


def _problem(workspace: Workspace, corpus: str, answer: SearchAnswer) -> None:
    """Draw why a retriever did not answer; where its index is missing, a button that makes it."""
    assert answer.problem is not None

    if not answer.unprepared:
        st.warning(md(answer.problem.hint) or "Choose another retriever.", title=md(answer.problem.message))
        return

    missing = answer.to_index
    job = jobs.running(workspace, "index", retriever=missing, corpus=corpus)
    sent = " ".join(sent.sentence for sent in sending.for_index(workspace, missing, corpus))
    st.info(f"{md(sent)} You can continue meanwhile.".strip(), title=md(answer.problem.message))

    if job is not None:
        job_views.live(_progress, True, workspace, missing, corpus)
    elif forms.button(
        "Index the documents", key=f"index_{answer.retriever}", icon=":material/database:", type="primary"
    ):
        settings = {"retriever": missing, "corpus": corpus}
        jobs.start(workspace, "index", IndexConfig.from_dict(settings))
        st.rerun()


def _progress(workspace: Workspace, retriever: str, corpus: str) -> None:
    job = jobs.running(workspace, "index", retriever=retriever, corpus=corpus)
    if job is None:
        job_views.draw_again()
    assert job is not None
    st.progress(job.fraction, text=md(job_views.doing(job)))
    frame.link("jobs", "Watch", job=job.id)
