"""Decide: which queries and how many, from what is known best; then the content words and the rule behind the prior."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import decide
from cdp.ui.decide import answer as decide_answer
from cdp.ui.decide import rule
from cdp.ui.queries import writing
from cdp.ui.shell import frame

workspace = Workspace.default()
frame.head("complexity")

with frame.guarded():
    corpus, source, name = rule.choose_task(workspace)
    first = st.container()  # the sentence stands above the questions that the published rule asks
    st.subheader("Content words and the published rule", anchor=False, help=frame.definition("cw"))
    request = rule.choose_rest(workspace, corpus, source, name)
    target, prior = request.target, request.recommend()
    known = decide.decide(workspace, corpus=corpus, target=target, prior=prior, chosen=writing.chosen_llm())
    with first:
        decide_answer.answer(workspace, known, request)
        decide_answer.test_panel(workspace, corpus, name if source == rule.BENCHMARK else "")
        decide_answer.options(known)
        decide_answer.cli(request, target.benchmark if target is not None else "")
    if target is not None and prior is not None:
        measured = known.standing == decide.MEASURED
        rule.rule(prior, request, target, measured)
        rule.similar(prior)
        st.subheader("Content words per query", anchor=False, help=frame.definition("cw"))
        rule.distribution(target)
        rule.extremes(target)
        rule.expected(prior)
        rule.splits(prior)
        rule.what_next(workspace, prior, request, measured)
