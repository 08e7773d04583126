"""The tab "Label": grade buttons and keys, the passage to label, what labels make of the figures."""

from __future__ import annotations

from functools import partial

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.evaluation import labelling as labels
from cdp.evaluation.labelling import MEANINGS
from cdp.services import commands, decide, judging
from cdp.ui.decide import answer as decide_answer
from cdp.ui.shell import forms, frame, state, workbench
from cdp.ui.shell.tables import md
from cdp.ui.shell.workbench import UNDO, AnswerKey

GRADES = [AnswerKey(str(grade), f"{grade} · {meaning}", str(grade)) for grade, meaning in MEANINGS.items()]
OTHERS = [AnswerKey("unsure", "Unsure", "U"), AnswerKey(labels.NOTHING, "Nothing here answers it", "N"), UNDO]


def page(workspace: Workspace) -> None:
    names = [info.name for info in state.of_project(workspace, "benchmark", labels.list_judged(workspace))]
    if not names:
        text = "People label what retrievers find for queries: alone, or to correct the figures of a model's judgments."
        frame.empty("Nothing to label yet", text, "benchmarks", "Judge", tab="judge")
        return

    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = state.choose("Benchmark", {n: n for n in names}, "judged_benchmark", what="benchmark") or names[0]
        by = workbench.who()

    _bench(workspace, name, by)
    forms.command(commands.line("benchmarks", "label", name, by=by))


@st.fragment
def _bench(workspace: Workspace, name: str, by: str) -> None:
    """Progress, the passage to label, and the results. A fragment: a key press draws nothing else again."""
    with frame.guarded():
        progress = labels.progress(workspace, name)
        workbench.progress(progress.finished, progress.total, progress.sentence)
        if not by:
            st.caption("Enter your name to begin. Whole queries come in a random order: stop whenever you like.")
        else:
            _next_task(workspace, name, by)

        if progress.judge or progress.finished:
            _decided(workspace, name, corrects=bool(progress.judge))

        st.caption(md(progress.judged))
        workbench.agreement(progress.agreements)


def _next_task(workspace: Workspace, name: str, by: str) -> None:
    task = labels.task(workspace, name, by)
    if task is None:
        st.success("You have labelled every query.", icon=":material/check_circle:")
        workbench.answers([UNDO], "label", lambda _: judging.undo(workspace, name, by), quiet=True)
        return

    passage, answer = task.open[0], partial(judging.answer, workspace, name, by, task)
    st.markdown(f"#### {md(task.text)}")
    st.caption(f"Passage {task.proposed - len(task.open) + 1} of {task.proposed}")
    workbench.text(passage.title, passage.text, task.words)
    with st.container(horizontal=True):
        workbench.answers(GRADES, "label", answer)
    with st.container(horizontal=True):
        workbench.answers(OTHERS, "label", answer, quiet=True)


def _decided(workspace: Workspace, name: str, *, corrects: bool) -> None:
    """The newest test on this benchmark, as the labels are or correct it, and links to what comes next."""
    corpus, said = decide.of_judged(workspace, name)
    label, opened = decide_answer.LABEL, {decide_answer.OPEN: "1"}
    if said:
        st.markdown(f":material/balance: {md(said)}")
        label, opened = "Decide", {}

    with st.container(horizontal=True):
        frame.link("decide", label, target_benchmark=name, corpus=corpus, **opened)
        if not corrects:
            frame.link("launch", "Evaluate a retriever on it", tab="evaluation", on=[f"{name}/test"])
        frame.link("compare", "Compare with corrected figures" if corrects else "Compare", benchmark=name)
