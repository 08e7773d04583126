"""The overview: the next step, the guided first run, and the project on screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import demo, projects, queries
from cdp.services.overview import NextStep, Overview
from cdp.services.projects import Project
from cdp.ui.shell import forms, frame, state
from cdp.ui.shell.tables import md

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
            "documents": summary.n_corpora,
            "queries": summary.n_query_sets,
            "decide": summary.n_studies or (summary.n_query_sets and summary.n_trained),
            "launch": summary.n_trained,
            "compare": summary.n_results > 1,
        }[self.page] > 0


STEPS = (
    Step("documents", "Add documents", "Upload a file or enter a path. Documents are checked and stored once."),
    Step(
        "queries", "Write queries", "Compare diverse and paraphrase queries for one document, then write them for all."
    ),
    Step(
        "decide",
        "Decide",
        "A short test on your own data tells whether several queries per document help, and of which kind.",
    ),
    Step("launch", "Train", "A background job trains a retriever and evaluates it before and after."),
    Step("compare", "Compare", "NDCG@10 against a baseline, with intervals, p values and per-query results."),
)


def next_step(step: NextStep) -> None:
    """The one thing to do now, as at the foot of every page."""
    frame.next_step(step.page, step.title, md(step.text), "next_step", **step.choices)


def guide(workspace: Workspace, summary: Overview) -> None:
    """The five steps with what is done, folded away once all are taken; on the demo, every link is filled in."""
    n_done = sum(step.done(summary) for step in STEPS)
    title = f"From documents to a better retriever: {n_done} of {len(STEPS)} steps done"
    with st.expander(title, expanded=n_done < len(STEPS), icon=":material/explore:", key="guide"):
        if not summary.n_corpora:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown("**New here?** Try the five steps on the demo collection first.", width="stretch")
                forms.demo_button(workspace, "overview_demo")
        filled_in = links(workspace) if summary.n_corpora else {}
        for i, step in enumerate(STEPS, start=1):
            done = step.done(summary)
            mark = ":green[:material/check_circle:]" if done else f":gray[:material/counter_{i}:]"
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{mark} **{step.title}**{' (done)' if done else ''}", width=200)
                st.caption(step.text, width="stretch")
                title, params = frame.PAGES[step.page].title, filled_in.get(step.page, {})
                frame.link(step.page, title, icon=":material/arrow_forward:", **params)


def links(workspace: Workspace) -> Mapping[str, Params]:
    """What each step's link chooses on the demo; empty where that is not here, or another project is on screen."""
    corpus = demo.corpus(workspace)
    owner = projects.project_of(workspace, "corpus", corpus) if corpus else None
    if owner is None or state.current_project(workspace) not in (owner, None):
        return {}
    sets = queries.list_query_sets(workspace, corpus=corpus)
    diverse = next((q.id for q in sets if q.method == "diverse"), sets[0].id if sets else "")
    return {
        "documents": {"corpus": corpus},
        "queries": {"corpus": corpus, "document": "lighthouse"},
        "decide": {"target_benchmark": demo.NAME},
        "launch": {"query_set": diverse, "retriever": "static-minilm", "benchmarks": [f"{demo.NAME}/test"]},
        "compare": {"baseline": "static-minilm"},
    }


def project_section(workspace: Workspace) -> None:
    """A popover that renames or removes the project. Nothing where all projects are shown."""
    current = state.current_project(workspace)
    if current is None:
        return
    with st.popover("Rename or remove", icon=":material/edit_note:", type="tertiary", key="project_open"):
        _edit(workspace, current)
        if not current.implied:
            _delete(workspace, current)


def _edit(workspace: Workspace, current: Project) -> None:
    name = st.text_input("Name", value=current.name, max_chars=80, key=f"project_name_{current.id}")
    if forms.button("Save", key="project_save", icon=":material/save:"):
        with frame.guarded():
            if name.strip() != current.name:
                projects.rename(workspace, current.id, name)
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
