"""Every page with its place, and links that carry a selection along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from cdp.base.workspace import REPOSITORY
from cdp.ui.shell.state import kept, kept_many

Params = Mapping[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class PageInfo:
    """A page: its file, title, icon and the question that it answers. ``carries`` names the selections it shows."""

    name: str
    path: str
    title: str
    icon: str
    question: str
    section: str = ""
    carries: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The page's file, wherever the server was started from."""
        return str(REPOSITORY / self.path)


# Name, file, title, icon, question, section of the menu, selections that it shows.
PAGES: dict[str, PageInfo] = {
    row[0]: PageInfo(*row)
    for row in (
        ("overview", "pages/home/overview.py", "Overview", "home",
         "What is in this workspace, and what comes next?", "", ()),
        ("corpus", "pages/data/corpus.py", "Corpus", "library_books",
         "Which documents do you have, and were they imported correctly?", "Data", ("corpus",)),
        ("queries", "pages/data/queries.py", "Queries", "edit_note",
         "How do diverse and paraphrase queries differ for a document?", "Data", ("corpus", "document")),
        ("review", "pages/data/review.py", "Review queries", "rate_review",
         "Which queries are worth training on?", "Data", ("query_set", "document")),
        ("benchmarks", "pages/data/benchmarks.py", "Benchmarks", "inventory_2",
         "Which benchmarks can you evaluate on, and which are downloaded?", "Data", ("group", "entry")),
        ("quality_diversity", "pages/analyse/quality_diversity.py", "Quality and diversity", "scatter_plot",
         "How diverse are a document's queries, and how close to human queries?", "Analyse", ("sets",)),
        ("complexity", "pages/analyse/complexity.py", "Decide", "balance",
         "One query, paraphrases or different queries, how many, and does it help on your data?", "Analyse",
         ("corpus", "target_benchmark", "pasted")),
        ("launch", "pages/train/launch.py", "Launch", "rocket_launch",
         "What do you want to train or evaluate?", "Train", ("query_set",)),
        ("jobs", "pages/train/jobs.py", "Jobs", "progress_activity",
         "What is running, and how is it going?", "Train", ("job",)),
        ("compare", "pages/results/compare.py", "Compare", "leaderboard",
         "Which run is best, and is the difference more than chance?", "Results",
         ("baseline", "retrievers", "benchmark", "focus", "board", "columns")),
        ("search", "pages/results/search.py", "Try a query", "search",
         "What does each retriever retrieve for a query of yours?", "Results", ("collection", "search_with", "q")),
        ("evidence", "pages/results/evidence.py", "Evidence", "fact_check",
         "What does the published evidence show, and what are its limits?", "Results", ("table",)),
        ("study", "pages/results/study.py", "Study", "science",
         "Do the published findings hold for your documents and your task?", "Results", ("study",)),
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
    """The menu. Its links carry what is chosen, so that the address always says what is on screen."""
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


def link(
    name: str,
    label: str,
    *,
    icon: str = ":material/arrow_forward:",
    **params: str | list[str],
) -> None:
    """A quiet link to a page, with a selection."""
    query = {**parameters(name), **params}
    st.page_link(PAGES[name].file, label=label, icon=icon, query_params=query or None, help="")


def go(name: str, **params: str | list[str]) -> None:
    """Open a page now, with a selection. Does not return."""
    st.switch_page(PAGES[name].file, query_params={**parameters(name), **params} or None)


def button(name: str, label: str, key: str, *, icon: str = "arrow_forward", params: Params | None = None) -> None:
    """A button that opens a page: for the one next step of a page."""
    if st.button(
        label,
        key=key,
        type="primary",
        icon=f":material/{icon}:",
        icon_position="right",
    ):
        go(name, **(params or {}))
