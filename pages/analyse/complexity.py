"""Decide: which queries and how many, from what is known best; then the content words and the rule behind the prior."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import decide
from cdp.ui.complexity import advice as complexity
from cdp.ui.complexity import decision, trial
from cdp.ui.complexity import distribution as cw_distribution
from cdp.ui.complexity import evidence as complexity_evidence
from cdp.ui.queries import generators
from cdp.ui.shell import frame

workspace = Workspace.default()
frame.head("complexity")

with frame.guarded():
    corpus, source, name = complexity.choose_task(workspace)
    first = st.container()  # the sentence stands above the questions that the published rule asks
    st.subheader("Content words and the published rule", anchor=False, help=frame.definition("cw"))
    request = complexity.choose_rest(workspace, corpus, source, name)
    target, prior = request.target, request.recommend()
    known = decide.decide(workspace, corpus=corpus, target=target, prior=prior, chosen=generators.chosen())
    with first:
        decision.answer(workspace, known, request)
        trial.panel(workspace, corpus, name if source == complexity.BENCHMARK else "")
        decision.options(known)
        decision.cli(request, target.benchmark if target is not None else "")
    if target is not None and prior is not None:
        measured = known.standing == decide.MEASURED
        complexity.rule(workspace, prior, request, target, measured, known.writer)
        complexity_evidence.similar(prior)
        cw_distribution.heading()
        others = cw_distribution.compared(workspace, target)
        cw_distribution.distribution(target, others)
        cw_distribution.by_language(target, others)
        complexity.extremes(target)
        complexity_evidence.expected(prior)
        complexity_evidence.splits(prior)
        complexity.what_next(workspace, prior, request, measured)
