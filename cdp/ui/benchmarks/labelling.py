"""The tab "Label": one query with its passages, a key per grade, undo, and how well judges agree."""

from __future__ import annotations

from html import escape

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, labelling
from cdp.services.labelling import MEANINGS, Passage, Progress, Task
from cdp.services.search import marked
from cdp.ui.shell import forms, frame, state, tables
from cdp.ui.shell.tables import MISSING, md

# A fold of the page keeps its keys from other tabs; letters that Streamlit itself uses are left out.
UNSURE, NOTHING, UNDO = "U", "N", "B"
LONGEST_SHOWN = 6_000


def page(workspace: Workspace) -> None:
    """Draw the tab."""
    names = [info.name for info in state.of_project(workspace, "benchmark", labelling.list_judged(workspace))]
    if not names:
        text = "People label queries of a benchmark that a model judged, so that its figures can be corrected."
        frame.empty("Nothing to label yet", text, "benchmarks", "Judge by a model", tab="judge")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = state.choose("Benchmark", {n: n for n in names}, "judged_benchmark", what="benchmark") or names[0]
        by = st.text_input(
            "Your name", key="label_by", persist_state="session", max_chars=60, placeholder="Ada", width=240,
            help="Stored with each label. Two people who label the same queries show how well they agree.",
        ).strip()  # fmt: skip
    progress = labelling.progress(workspace, name)
    st.progress(progress.finished / max(1, progress.total))
    st.caption(md(progress.sentence))
    if not by:
        st.caption("Enter your name to begin. Whole queries come in a random order: stop whenever you like.")
    elif (task := labelling.task(workspace, name, by)) is None:
        st.success("You have labelled every query.", icon=":material/check_circle:")
    else:
        _task(workspace, name, task, by)
    _agreement(progress)
    frame.link("compare", "Compare with corrected figures", benchmark=name)
    forms.command(commands.line("benchmarks", "label", name, by=by))


def _task(workspace: Workspace, name: str, task: Task, by: str) -> None:
    passage = task.open[0]
    at = len(task.passages) - len(task.open) + 1
    st.markdown(f"#### {md(task.text)}")
    st.caption(f"Passage {at} of {len(task.passages)}")
    with st.container(border=True):
        if passage.title:
            st.markdown(f"**{md(passage.title)}**")
        _text(passage, labelling.words(workspace, name, task))

    def answer(word: str) -> None:
        labelling.label(workspace, name, task.query, {passage.id: word}, by)

    with st.container(horizontal=True):
        for grade, meaning in MEANINGS.items():
            forms.button(
                f"{grade} · {meaning}", key=f"label_{grade}", shortcut=str(grade), on_click=answer, args=(str(grade),)
            )
    with st.container(horizontal=True):
        forms.button("Unsure", key="label_unsure", shortcut=UNSURE, type="tertiary", on_click=answer, args=("unsure",))
        forms.button(
            "Nothing here answers it", key="label_nothing", shortcut=NOTHING, type="tertiary",
            on_click=labelling.nothing_answers, args=(workspace, name, task, by),
        )  # fmt: skip
        forms.button(
            "Undo", key="label_undo", shortcut=UNDO, type="tertiary", icon=":material/undo:",
            on_click=labelling.undo, args=(workspace, name, by),
        )  # fmt: skip


def _text(passage: Passage, words: list[str]) -> None:
    # Every character is escaped.
    pieces = marked(" ".join(passage.text[:LONGEST_SHOWN].split()), words)
    shown = "".join(f"<mark>{escape(piece)}</mark>" if matches else escape(piece) for piece, matches in pieces)
    st.html(f"<p class='snippet'>{shown}</p>")


def _agreement(progress: Progress) -> None:
    if not progress.agreements:
        return
    rows = progress.agreements
    tables.show(
        {
            "First": [a.first for a in rows],
            "Second": [a.second for a in rows],
            "Pairs": [a.pairs for a in rows],
            "Same grade": [f"{a.same:.0%}" for a in rows],
            "κ": [MISSING if a.kappa is None else f"{a.kappa:.2f}" for a in rows],
            "κ weighted": [MISSING if a.weighted is None else f"{a.weighted:.2f}" for a in rows],
        },
        alt="Agreement of people with each other and with the model",
        about={"κ weighted": "Cohen's κ with quadratic weights: grades that are far apart count more."},
    )
