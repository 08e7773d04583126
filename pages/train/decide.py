"""Which queries and how many: the answer from the best evidence, then content words and the published rule."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import decide
from cdp.ui.decide import answer as decide_answer
from cdp.ui.decide import rule
from cdp.ui.shell import forms, frame, state

ANSWER, COMPLEXITY = "answer", "complexity"

workspace = Workspace.default()
frame.head("decide")

with frame.guarded():
    corpus, source, name = rule.choose_task(workspace)
    opened = state.tabs({ANSWER: "Your answer", COMPLEXITY: "By content words"})
    with opened[COMPLEXITY]:  # its questions are asked first: the published evidence depends on them
        request = rule.choose_rest(workspace, corpus, source, name)
        target = request.target
        found = None
        with frame.guarded():  # queries that no rule fits leave the test on the person's own data
            found = request.recommend()

    known = decide.decide(
        workspace, corpus=corpus, target=target if found else None, domain=request.domain, task=request.task
    )
    with opened[ANSWER]:
        decide_answer.answer(workspace, known, request)
        decide_answer.test_panel(workspace, corpus, name if source == rule.BENCHMARK else "")
        decide_answer.options(workspace, known, corpus)
        if corpus or target is not None:
            forms.command(rule.command(request, target))
    if target is not None and found is not None:
        with opened[COMPLEXITY]:
            rule.rule(found, request, target, known)
            st.subheader("Content words per query", anchor=False, help=frame.DEFINITIONS["cw"])
            rule.distribution(target)
            rule.expected(found)
