"""What is searched for, where, and by which retrievers. All of it stands in the address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, judged, search
from cdp.services.projects import Members
from cdp.services.search import Collection
from cdp.ui.shell import command, state
from cdp.ui.shell.text import count, cut, md, number

QUERY = "q"

MOST_QUERIES = 500
"""Queries of a benchmark that are offered: a browser is sent them all."""


def of_project(members: Members, collections: Sequence[Collection]) -> list[Collection]:
    """The corpora and benchmarks of the project on screen."""
    return [c for c in collections if members.has("benchmark" if c.benchmark else "corpus", c.benchmark or c.id)]


def query() -> str:
    """The query that the address names; the menu's link carries the last one."""
    current = st.query_params.get(QUERY, "").strip()  # Back to the address without one empties the field
    if st.session_state.get("query_text", "").strip() != current:
        st.session_state["query_text"] = current
    st.text_input(
        "Query",
        key="query_text",
        placeholder="Type a query, as your users would",
        label_visibility="collapsed",
        icon=":material/search:",
        on_change=_typed,
    )
    state.settle(QUERY, current or None)
    return current


def _typed() -> None:
    state.write(QUERY, str(st.session_state["query_text"]).strip() or None)


def collection(collections: Sequence[Collection]) -> Collection:
    """Which documents are searched. Begins with the corpus that was looked at last."""
    by_id = {c.id: c for c in collections}
    last = state.kept("corpus")
    if state.kept("collection") not in by_id and last in by_id:
        state.keep("collection", last)
    names = {
        c.id: f"{cut(c.name, 50)}{' (benchmark)' if c.benchmark else ''} · {count(c.n_documents, 'document')}"
        for c in collections
    }
    chosen = state.choose("Documents", names, "collection", what="documents")
    return by_id[chosen] if chosen in by_id else collections[0]


def retrievers(workspace: Workspace, members: Members) -> list[str]:
    """Up to three retrievers: at first BM25, an untrained one, and the newest that was trained."""
    choices = [c for c in search.list_retrievers(workspace) if c.kind != "job" or members.has("job", c.id)]
    ids = {c.id for c in choices}
    for gone in [name for name in st.query_params.get_all("search_with") if name not in ids]:
        st.warning(f"The link names the retriever {md(gone, 80)}, which cannot be searched with here.")
    trained = next((c.id for c in choices if c.kind == "job"), None)
    default = [name for name in ("bm25", "static-minilm", trained) if name]
    chosen = state.choose_many(
        "Retrievers",
        {c.id: c.title for c in choices},
        "search_with",
        default=default,
        most=search.MOST_RETRIEVERS,
        placeholder="Choose up to three",
        help="BM25 matches words. Untrained retrievers are as they were published; trained ones come from your jobs. "
        "Ranks are compared with the first one.",
    )
    return chosen[: search.MOST_RETRIEVERS]


def from_benchmark(workspace: Workspace, picked: Collection, members: Members) -> None:
    """A query that a benchmark judges: its relevant documents are then marked."""

    def wanted(name: str) -> bool:
        return members.has("benchmark", name)

    if not judged.candidates(workspace, picked, wanted):
        return
    popover = st.popover(
        "Use a judged query", icon=":material/fact_check:", type="tertiary", on_change="rerun", key="judged"
    )
    if not popover.open:  # looking into benchmarks takes a moment where they are large
        return
    with popover:
        benchmarks = judged.list_benchmarks(workspace, picked, wanted)
        if not benchmarks:
            st.caption("No benchmark of this project judges these documents.")
            return
        name = benchmarks[0]
        if len(benchmarks) > 1:
            name = st.selectbox("Benchmark", benchmarks, key="judged_benchmark")
        texts = judged.list_queries(workspace, name)
        offered = texts[:MOST_QUERIES]
        st.selectbox(
            f"Query of {name}",
            offered,
            index=None,
            format_func=lambda text: cut(" ".join(text.split()), 160),
            key="judged_query",
            placeholder="Choose a query",
            on_change=_picked,
            filter_mode="fuzzy",
        )
        more = f"The first {number(len(offered))} of {number(len(texts))}. " if len(texts) > len(offered) else ""
        st.caption(f"{more}Documents that {name} judges relevant are marked, also for a judged query that you type.")


def _picked() -> None:
    text = st.session_state.get("judged_query")
    if text:
        state.write(QUERY, str(text).strip())


def command_of(picked: Collection, names: Sequence[str], query: str) -> None:
    """The same search on the command line."""
    given = [word for name in names for word in ("--retriever", name)]
    command.show(commands.line("search", cut(query, 200), *given, corpus=picked.id))
