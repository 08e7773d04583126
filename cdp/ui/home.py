"""The overview: the next step, the guided first run, the project on screen, and freeing disk space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, demo, projects, prune, queries
from cdp.services.job_words import size
from cdp.services.overview import NextStep, Overview
from cdp.services.projects import Project
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import count, md

HIDDEN = "guide_hidden"
ARROW = ":material/arrow_forward:"

Params = dict[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: where it is taken, and how to see that it was."""

    page: str
    title: str
    text: str

    def done(self, summary: Overview) -> bool:
        """Whether the workspace shows that this step was taken."""
        return {
            "corpus": summary.n_corpora,
            "queries": summary.n_query_sets,
            "complexity": summary.n_studies or (summary.n_query_sets and summary.n_trained),
            "launch": summary.n_trained,
            "compare": summary.n_results > 1,
        }[self.page] > 0


STEPS = (
    Step("corpus", "Add documents", "Upload a file or enter a path. Documents are checked and stored once."),
    Step(
        "queries", "Write queries", "Compare diverse and paraphrase queries for one document, then write them for all."
    ),
    Step(
        "complexity",
        "Decide",
        "A short test on your own data tells whether several queries per document help, and of which kind.",
    ),
    Step("launch", "Train", "A background job trains a retriever and evaluates it before and after."),
    Step("compare", "Compare", "NDCG@10 against a baseline, with intervals, p values and per-query results."),
)

ON_DEMO = {
    "corpus": "Look at 96 short documents: lengths, language, rejected rows.",
    "queries": "See the diverse and paraphrase queries that an LLM wrote about lighthouses.",
    "complexity": "Count the content words of the test queries and read the advice.",
    "launch": "Train the small retriever on the diverse queries: under a minute on two cores.",
    "compare": "See what it gained over the untrained retriever, and on which queries.",
}
"""What each step shows on the demo collection."""


def next_step(step: NextStep) -> None:
    """The one thing to do now, as at the foot of every page."""
    frame.next_step(page_name(step.page), step.title, md(step.text), "next_step", **step.choices)


def page_name(reference: str) -> str:
    """A page's name from what a service calls it: its name, its file or its title."""
    for page in frame.PAGES.values():
        if reference in (page.name, page.path, page.title) or page.path.endswith(f"/{reference}.py"):
            return page.name
    return "overview"


def first_run(workspace: Workspace, summary: Overview) -> None:
    """The five steps with what is done; on the demo, every link is filled in.

    They are put away and called back by hand, and are put away from the first once all are taken.
    """
    n_done = sum(step.done(summary) for step in STEPS)
    if st.session_state.get(HIDDEN, n_done == len(STEPS)):
        if st.button("Show the guide", icon=":material/explore:", type="tertiary", key="guide_show"):
            st.session_state[HIDDEN] = False
            st.rerun()
        return
    on_demo = links(workspace) if summary.n_corpora else {}
    st.subheader("From documents to a better retriever", anchor=False)
    with st.container(border=True, gap="xsmall", key="guide"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.progress(n_done / len(STEPS), text=f"{n_done} of {len(STEPS)} steps done", width="stretch")
            if st.button("Hide", icon=":material/close:", type="tertiary", key="guide_hide", help="Hide the guide."):
                st.session_state[HIDDEN] = True
                st.rerun()
        if not summary.n_corpora:
            _offer_demo(workspace)
        for i, step in enumerate(STEPS, start=1):
            done = step.done(summary)
            mark = ":green[:material/check_circle:]" if done else f":gray[:material/counter_{i}:]"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{mark} **{step.title}**{' (done)' if done else ''}", width=200)
                st.caption(ON_DEMO[step.page] if on_demo else step.text, width="stretch")
                title = frame.PAGES[step.page].title
                frame.link(step.page, title, icon=ARROW, **on_demo.get(step.page, {}))


def _offer_demo(workspace: Workspace) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("**New here?** Try the five steps on the demo collection first.", width="stretch")
        if forms.button(
            "Load the demo collection",
            icon=":material/science:",
            key="overview_demo",
            help="96 short documents, diverse and paraphrase queries written by an LLM, and a benchmark.",
        ):
            with st.spinner("Loading the demo collection"):
                forms.load_demo(workspace)
            st.rerun()


def links(workspace: Workspace) -> Mapping[str, Params]:
    """What each step's link chooses on the demo; empty where that is not here, or another project is on screen."""
    corpus = demo.corpus(workspace)
    owner = projects.project_of(workspace, "corpus", corpus) if corpus else None
    if owner is None or state.current_project(workspace) not in (owner, None):
        return {}
    sets = queries.list_query_sets(workspace, corpus=corpus)
    diverse = next((q.id for q in sets if q.method == "diverse"), sets[0].id if sets else "")
    return {
        "corpus": {"corpus": corpus},
        "queries": {"corpus": corpus, "document": "lighthouse"},
        "complexity": {"target_benchmark": demo.NAME},
        "launch": {"query_set": diverse, "retriever": "static-minilm", "benchmarks": [f"{demo.NAME}/test"]},
        "compare": {"baseline": "static-minilm"},
    }


def project_section(workspace: Workspace) -> None:
    """The notes as text, and a popover that changes name and notes. Nothing where all projects are shown."""
    current = state.current_project(workspace)
    if current is None:
        return
    if current.notes:
        st.markdown(md(current.notes))
    with st.popover("Name and notes", icon=":material/edit_note:", type="tertiary", key="project_open"):
        _edit(workspace, current)
        if not current.implied:
            _delete(workspace, current)


def _edit(workspace: Workspace, current: Project) -> None:
    name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
    notes = st.text_area("Notes", value=current.notes, key=f"project_notes_{current.id}")
    if forms.button("Save", key="project_save", icon=":material/save:"):
        with frame.guarded():
            if name.strip() != current.name:
                projects.rename(workspace, current.id, name)
            if notes != current.notes:
                projects.annotate(workspace, current.id, notes)
            st.rerun()


def _delete(workspace: Workspace, current: Project) -> None:
    st.caption("Removing the project removes nothing else: its documents, benchmarks, queries and results stay.")
    sure = st.checkbox(f"Yes, remove the project {md(current.name, 60)}", key=f"project_sure_{current.id}")
    if forms.button("Remove project", key="project_delete", icon=":material/delete:", disabled=not sure):
        with frame.guarded():
            projects.delete(workspace, current.id)
            forms.remember(f"The project {current.name} is removed.", ["What belonged to it is still here."])
            st.query_params.clear()
            st.rerun()


def prune_section(workspace: Workspace) -> None:
    """Draw what can be deleted, by kind, with the button and the command that delete it."""
    folded = st.expander("Free up space", icon=":material/delete_sweep:", key="prune", on_change="rerun")
    if not folded.open:
        return
    with folded:
        _prune(workspace)


def _prune(workspace: Workspace) -> None:
    kinds = st.multiselect(
        "What to delete", list(prune.PRUNABLE), default=list(prune.BY_DEFAULT), key="prune_kinds",
        help="; ".join(f"{name}: {about}" for name, about in prune.PRUNABLE.items()),
    )  # fmt: skip
    with frame.guarded():
        rows = prune.prunable(workspace, kinds)
        if rows:
            tables.show(
                {
                    "Item type": [row.what for row in rows],
                    "Files or folders": [row.n for row in rows],
                    "Size": [size(row.size) for row in rows],
                    "Description": [row.about for row in rows],
                },
                alt="What can be deleted",
            )
        nothing = not any(row.n for row in rows)
        pressed = forms.button(
            "Delete these files", icon=":material/delete_sweep:", key="prune_delete", disabled=nothing
        )
        forms.command(commands.line("workspace", "prune", *(f"--what={kind}" for kind in kinds), "--yes"))
        if pressed:
            deleted = prune.prune(workspace, kinds)
            freed = sum(row.size for row in deleted)
            st.success(
                f"{count(sum(row.n for row in deleted), 'file or folder', 'files or folders')} deleted, {size(freed)} "
                "freed."
            )
