"""Which queries and how many: the answer from the best evidence, then content words and the published rule."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import decide
from cdp.ui.decide import answer as decide_answer
from cdp.ui.decide import rule
from cdp.ui.queries import writing
from cdp.ui.shell import frame, state

ANSWER, COMPLEXITY = "answer", "complexity"

workspace = Workspace.default()
frame.head("decide")

with frame.guarded():
    corpus, source, name = rule.choose_task(workspace)
    opened = state.tabs({ANSWER: "Your answer", COMPLEXITY: "By content words"})
    with opened[COMPLEXITY]:  # its questions are asked first: the answer's prior depends on them
        request = rule.choose_rest(workspace, corpus, source, name)
        target, prior = request.target, request.recommend()
    known = decide.decide(workspace, corpus=corpus, target=target, prior=prior, chosen=writing.chosen_llm())
    with opened[ANSWER]:
        decide_answer.answer(workspace, known, request)
        decide_answer.test_panel(workspace, corpus, name if source == rule.BENCHMARK else "")
        decide_answer.options(known)
        decide_answer.cli(request, target.benchmark if target is not None else "")
        if target is not None and prior is not None:
            rule.what_next(workspace, prior, request, known.standing == decide.MEASURED)
    if target is not None and prior is not None:
        with opened[COMPLEXITY]:
            rule.rule(prior, request, target, known.standing == decide.MEASURED)
            rule.similar(prior)
            st.subheader("Content words per query", anchor=False, help=frame.definition("cw"))
            rule.distribution(target)
            rule.extremes(target)
            rule.expected(prior)
            rule.splits(prior)
