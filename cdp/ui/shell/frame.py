"""What every page has: its head, the calm error box, empty states and the next step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import streamlit as st

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.ui.shell import navigation, project
from cdp.ui.shell.text import md

log = logging.getLogger(__name__)


def head(name: str) -> None:
    """The page's title, the question that it answers, and the project that it is about."""
    page = navigation.PAGES[name]
    st.title(page.title, anchor=False)
    current = project.title(Workspace.default())
    st.caption(f"{page.question} · :material/folder: {current}" if current else page.question)


def show_error(error: CdpError) -> None:
    """One calm box: what is wrong, and what to do next."""
    st.error(md(error.hint) or "Nothing was changed.", title=md(error.message), icon=":material/error:")


@contextmanager
def guarded() -> Iterator[None]:
    """Errors raised on purpose become one box in the place where the result would stand."""
    try:
        yield
    except CdpError as error:
        show_error(error)


@contextmanager
def unexpected() -> Iterator[None]:
    """An error that nobody raised on purpose: one calm box, and the traceback on the console and under a fold."""
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


def empty(title: str, text: str, *, icon: str = "inbox") -> None:
    """The empty state: what is missing and what to do. Links and buttons may follow inside the same container."""
    st.markdown(f"##### :material/{icon}: {title}")
    st.markdown(text)


def remarks(texts: Iterable[str], icon: str = "info") -> None:
    """Quiet lines of text, one below the other."""
    for text in texts:
        st.caption(f":material/{icon}: {md(text)}")


def next_step(name: str, label: str, why: str, key: str, **params: str | list[str]) -> None:
    """The one step that comes after this page."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Next:** {why}", width="stretch")
        navigation.button(name, label, key, params=params)


def definition(term: str) -> str:
    """The explanation of a term, for ``help=``."""
    return DEFINITIONS[term]


DEFINITIONS = {
    "cw": "Content words (CW): the number of different words in a query that are not stopwords. It measures how "
    "complex a query is: the higher it is, the more a task tends to gain from diverse training queries.",
    "q_doc": "Q/Doc (also M): the number of queries written for each document.",
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
    "q_d": "Quality and diversity: how close the synthetic queries are to human ones (Len-Sim, Dist-Sim), and how much "
    "a document's queries differ from each other (Self-BLEU, paraphrase ratio).",
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
    "benchmark": "Benchmark: documents, queries and relevance judgments (qrels), which say which documents answer "
    "which query.",
}
"""The paper's terms, in one sentence or two."""
