"""What every page has: its head, the calm error box, empty states and the next step."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from cdp.base.errors import CdpError
from cdp.ui.shell import navigation
from cdp.ui.shell.text import md

log = logging.getLogger(__name__)


def head(name: str) -> None:
    """The page's title and the question that it answers."""
    page = navigation.PAGES[name]
    st.title(page.title, anchor=False)
    st.caption(page.question)


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
            "Nothing was changed by showing it. Reload it; if this comes again, report it with the details below.",
            title="This page has a fault",
            icon=":material/error:",
        )
        with st.expander("Details for a report", icon=":material/bug_report:"):
            st.exception(error)


def empty(title: str, text: str, *, icon: str = "inbox") -> None:
    """The empty state: what is missing and what to do. Links and buttons may follow inside the same container."""
    st.markdown(f"##### :material/{icon}: {title}")
    st.markdown(text)


def next_step(name: str, label: str, why: str, key: str, **params: str | list[str]) -> None:
    """The one step that comes after this page."""
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**Next:** {why}", width="stretch")
        navigation.button(name, label, key, params=params)


def definition(term: str) -> str:
    """The explanation of a term, for ``help=``."""
    return DEFINITIONS[term]


DEFINITIONS = {
    "cw": "Content words (CW): the different words of a query that are not stopwords. The measure of a query's "
    "complexity: the more there are, the more the task tends to gain from different training queries.",
    "q_doc": "Q/Doc, or M: how many queries are written for each document.",
    "self_bleu": "Self-BLEU: how much a document's queries repeat each other's words, from 0 to 1. Each query is "
    "compared with the others of its document. Lower means more diverse.",
    "paraphrase_ratio": "Paraphrase ratio: the share of a document's query pairs that a model takes for "
    "paraphrases of each other, from 0 to 1. Lower means more diverse.",
    "ndcg": "NDCG@10 in percent: how well the first ten documents of each query are chosen and ordered; 100 is "
    "perfect. Averaged over all judged queries.",
    "interval": "95% bootstrap interval over the queries: were other queries of the same kind drawn, the value would "
    "lie in this range 95 times out of 100.",
    "p": "p: how often a difference this large would come about by chance if the two retrievers were equally good "
    "(paired, over the queries). Below 0.05 is called significant.",
    "holm": "p corrected for looking at several differences at once (Holm 1979): with twenty of them, one would fall "
    "below 0.05 by chance alone.",
    "q_d": "Quality and diversity: how close the synthetic queries are to human ones (Len-Sim, Dist-Sim), and how "
    "different a document's queries are from each other (Self-BLEU, paraphrase ratio).",
    "weighting": "CW weighting: in the loss, a query counts by its content words, capped at κ = 100 and scaled so that "
    "the mean weight of a batch is 1 (Eq. 2).",
    "corpus": "Corpus: the documents that are searched. Each has an id, a title, which may be empty, and a text.",
    "query_set": "Query set: queries for the documents of one corpus, up to M per document, by one method.",
    "retriever": "Dense retriever: a model that turns queries and documents into vectors; the nearest documents are "
    "the answer.",
    "benchmark": "Benchmark: documents, queries, and judgments (qrels) that say which documents answer which query.",
}
"""The paper's terms, in one sentence or two."""
