"""The menu, page titles and questions, links with a selection, next-step box, error box, empty states, tooltips."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import REPOSITORY, Workspace
from cdp.ui.shell import state
from cdp.ui.shell.state import kept, kept_many
from cdp.ui.shell.tables import md

Params = Mapping[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class PageInfo:
    """A page: its file, title, icon and the question that it answers.

    ``carries`` names the selections that it shows, ``tab`` the tab that a link opens by default.
    """

    name: str
    path: str
    title: str
    icon: str
    question: str
    section: str = ""
    carries: tuple[str, ...] = ()
    tab: str = ""

    @property
    def file(self) -> str:
        """The page's file, wherever the server was started from."""
        return str(REPOSITORY / self.path)


# Name, file, title, icon, question, section of the menu, selections that it shows, first tab.
PAGES: dict[str, PageInfo] = {
    row[0]: PageInfo(*row)
    for row in (
        ("home", "pages/home/home.py", "Home", "home",
         "One query per document, paraphrases or several different ones: is your retriever better for it?", "", ()),
        ("documents", "pages/data/documents.py", "Documents", "library_books",
         "Which documents do you have, and were they imported correctly?", "Data", ("corpus",)),
        ("queries", "pages/data/queries.py", "Queries", "edit_note",
         "Which training queries do you have, how different are they, and which are usable?", "Data",
         ("corpus", "document", "query_set", "sets"), "write"),
        ("benchmarks", "pages/data/benchmarks.py", "Benchmarks", "inventory_2",
         "Which benchmarks can you evaluate on, and who judged them?", "Data",
         ("group", "entry", "corpus", "judged_benchmark"), "collections"),
        ("decide", "pages/train/decide.py", "Decide", "balance",
         "One query, paraphrases or different queries, how many, and does it help on your data?", "Decide and train",
         ("corpus", "target_benchmark", "pasted"), "answer"),
        ("launch", "pages/train/launch.py", "Launch", "rocket_launch",
         "What do you want to train or evaluate?", "Decide and train", ("query_set",), "training"),
        ("jobs", "pages/train/jobs.py", "Jobs", "progress_activity",
         "What is running, and how is it going?", "Decide and train", ("job",)),
        ("compare", "pages/results/compare.py", "Compare", "leaderboard",
         "Which run is best, and is the difference more than chance?", "Results",
         ("baseline", "retrievers", "benchmark")),
        ("search", "pages/results/search.py", "Try a query", "search",
         "What does each retriever retrieve for a query of yours?", "Results", ("corpus", "search_with", "q")),
        ("evidence", "pages/results/evidence.py", "Evidence", "fact_check",
         "What do the published results and your own studies show, and what are their limits?", "Results",
         ("table", "study"), "published"),
    )
}  # fmt: skip


def parameters(name: str) -> dict[str, Any]:
    """The selections that a link to this page carries: the project, and what the page shows of it."""
    carried: dict[str, Any] = {}
    for param in ("project", *PAGES[name].carries):
        value: Any = kept(param) or kept_many(param)
        if value:
            carried[param] = value
    return carried


def sidebar() -> None:
    """Draw the menu. Its links carry the selections, so that the address always describes the screen."""
    section = ""
    for page in PAGES.values():
        if page.section != section:
            section = page.section
            st.caption(section)
        st.page_link(
            page.file,
            label=page.title,
            icon=f":material/{page.icon}:",
            help=page.question,
            query_params=parameters(page.name) or None,
        )


def link(name: str, label: str, *, icon: str = ":material/arrow_forward:", **params: str | list[str]) -> None:
    """A quiet link to a page, with a selection."""
    query = _address(name, params)
    st.page_link(PAGES[name].file, label=label, icon=icon, query_params=query or None, help="")


def go(name: str, **params: str | list[str]) -> None:
    """Open a page now, with a selection. Does not return."""
    st.switch_page(PAGES[name].file, query_params=_address(name, params) or None)


def _address(name: str, params: Params) -> dict[str, Any]:
    """The selections of a link: those given, with the project; all that the page shows if none is given."""
    address = parameters(name)
    if params:
        address = {param: address[param] for param in ("project",) if param in address}
    if PAGES[name].tab:
        address[state.TAB] = PAGES[name].tab
    return {**address, **params}


def page_button(name: str, label: str, key: str, *, icon: str = "arrow_forward", params: Params | None = None) -> None:
    """A button that opens a page: for the one next step of a page."""
    if st.button(label, key=key, type="primary", icon=f":material/{icon}:", icon_position="right"):
        go(name, **(params or {}))


log = logging.getLogger(__name__)


def head(name: str) -> None:
    """The page's title, the question that it answers, and the project that it is about."""
    page = PAGES[name]
    st.title(page.title, anchor=False)
    current = state.project_title(Workspace.default())
    project = f":material/folder: {current}" if current else ""
    if name == "home":  # the question of the whole product
        st.markdown(f"#### {page.question}")
        st.caption(project)
    else:
        st.caption(f"{page.question} · {project}" if project else page.question)


def tabs(workspace: Workspace, drawn: Mapping[str, tuple[str, Callable[[Workspace], None]]]) -> None:
    """Tabs (id → title and what draws it), of which only the open one is drawn."""
    opened = state.tabs({tab: title for tab, (title, _) in drawn.items()})
    for tab, (_, draw) in drawn.items():
        if opened[tab].open:
            with opened[tab], guarded():
                draw(workspace)


def show_error(error: CdpError) -> None:
    """One calm box: what is wrong, and what to do next."""
    st.error(md(error.hint) or "Nothing was changed.", title=md(error.message), icon=":material/error:")


@contextmanager
def guarded() -> Iterator[None]:
    """Draw a ``CdpError`` as one box in the place of the result."""
    try:
        yield
    except CdpError as error:
        show_error(error)


@contextmanager
def unexpected() -> Iterator[None]:
    """An unexpected error: one calm box, and the traceback on the console and under a fold."""
    try:
        yield
    except CdpError:
        raise
    except Exception as error:
        log.exception("A page failed")
        st.error(
            "Your data has not been changed. Reload the page; if the error returns, report it with the details below.",
            title="Something went wrong on this page",
            icon=":material/error:",
        )
        with st.expander("Error details", icon=":material/bug_report:"):
            st.exception(error)


def empty(title: str, text: str, page: str = "", label: str = "", **params: str | list[str]) -> None:
    """Draw an empty state: what is missing, the next step, and the button to its page."""
    st.markdown(f"##### :material/inbox: {title}")
    st.markdown(text)
    if page:
        page_button(page, label, f"to_{page}", params=params)


def remarks(texts: Iterable[str], icon: str = "info") -> None:
    """Quiet lines of text, one below the other."""
    for text in texts:
        st.caption(f":material/{icon}: {md(text)}")


def next_step(name: str, label: str, why: str, key: str, **params: str | list[str]) -> None:
    """The one step that comes after this page."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Next:** {why}", width="stretch")
        page_button(name, label, key, params=params)


# The paper's terms, in one sentence or two.
DEFINITIONS = {
    "cw": "Content words (CW): the number of different words in a query that are not stopwords. It measures how "
    "complex a query is: the higher it is, the more a task tends to gain from diverse training queries.",
    "q_doc": "Q/Doc (also M): the number of queries written for each document; for each passage where files were cut.",
    "self_bleu": "Self-BLEU: how much the queries of a document repeat each other's words, from 0 to 1. Each query is "
    "compared with the document's other queries. Lower is more diverse.",
    "paraphrase_ratio": "Paraphrase ratio (CE): the share of a document's query pairs that a cross-encoder model "
    "judges to be paraphrases, from 0 to 1. Lower is more diverse.",
    "ndcg": "NDCG@10 in percent: how well the top ten documents of each query are chosen and ranked; 100 is perfect. "
    "Averaged over all judged queries.",
    "interval": "95% bootstrap interval over the queries: how far the value could move with another sample of similar "
    "queries.",
    "p": "p: how often chance alone would give a difference this large if the two retrievers were equally good "
    "(paired test over the queries). Below 0.05 is called significant.",
    "holm": "p corrected for testing several differences at once (Holm 1979): of twenty tests, one would fall below "
    "0.05 by chance alone.",
    "round_trip": "Round-trip rank: at which rank a query finds the document it was written for, among all documents "
    "of the corpus. A query that does not find it is vague, about something else, or no query.",
    "usable": "Usable: not empty, no refusal or fragment, in the document's language, no repetition of an earlier "
    "query of its document and, where round-trip ranks were measured, with its document among the first ten.",
    "weighting": "CW weighting: the loss weights each query by its content words, capped at κ = 100 and scaled so "
    "that the mean weight of a batch is 1 (Eq. 2).",
    "corpus": "Corpus: the documents to search. Each has an ID, a text and an optional title.",
    "query_set": "Query set: queries for the documents of one corpus, written by one method, up to M per document.",
    "retriever": "Dense retriever: a model that turns queries and documents into vectors; the documents nearest to "
    "the query are retrieved.",
    "target_queries": "Target queries: what people will search for. A log of real queries is best; queries that a "
    "model wrote say less.",
    "benchmark": "Benchmark: documents, queries and relevance judgments (qrels), which say which documents answer "
    "which query.",
}
