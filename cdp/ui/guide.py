"""The five steps of the main job, and the one that is due."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from cdp.services.overview import NextStep, Overview
from cdp.ui import navigation
from cdp.ui.text import md


@dataclass(frozen=True, slots=True)
class Step:
    """One step: where it is taken, and how to see that it was."""

    page: str
    title: str
    text: str

    def done(self, found: Overview) -> bool:
        """Whether the workspace shows that this step was taken."""
        return {
            "corpus": found.n_corpora,
            "queries": found.n_query_sets,
            "complexity": found.n_query_sets and found.n_trained,
            "launch": found.n_trained,
            "compare": found.n_results > 1,
        }[self.page] > 0


STEPS = (
    Step("corpus", "Bring documents", "Upload a file or name a path. They are read once, checked and kept."),
    Step("queries", "Write queries", "See diverse and paraphrase queries side by side, then write them for all."),
    Step("complexity", "Decide", "Content words of your target queries say: avoid, test or recommend diversity."),
    Step("launch", "Train", "A background job trains a retriever and evaluates it before and after."),
    Step("compare", "Compare", "NDCG@10 against a baseline, with intervals, p values and the queries behind it."),
)


def next_step(step: NextStep) -> None:
    """The card with the one thing to do now."""
    with st.container(border=True):
        st.caption("Next step")
        st.markdown(f"#### {md(step.title)}")
        st.text(step.text)
        navigation.button(page_name(step.page), step.title, "next_step")


def page_name(place: str) -> str:
    """A page's name from what a service calls it: its name, its file or its title."""
    for page in navigation.PAGES.values():
        if place in (page.name, page.path, page.title) or page.path.endswith(f"/{place}.py"):
            return page.name
    return "overview"


def steps(found: Overview) -> None:
    """The five steps, one to a line; what is done has a tick."""
    with st.container(border=True, gap="xsmall"):
        for i, step in enumerate(STEPS, start=1):
            mark = ":green[:material/check_circle:]" if step.done(found) else f":gray[:material/counter_{i}:]"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{mark} **{step.title}**", width=170)
                st.caption(step.text, width="stretch")
                navigation.link(step.page, navigation.PAGES[step.page].title)
