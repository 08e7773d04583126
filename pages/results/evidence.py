"""The published tables with their relation to content words, and the studies of this workspace with their plans."""

from __future__ import annotations

import streamlit as st

from cdp import principle
from cdp.base.workspace import Workspace
from cdp.ui.evidence import published, studies
from cdp.ui.shell import forms, frame, state

PUBLISHED, STUDIES, PLAN = "published", "studies", "plan"
TABS = {PUBLISHED: "Published evidence", STUDIES: "Your studies", PLAN: "Plan a study"}


def relation_and_tables() -> None:
    choice = published.choose_evidence()
    data = principle.differences(choice)
    fit = principle.threshold(data)
    correlations = principle.correlation_table(data)
    published.answer(fit, correlations, choice)
    if choice == principle.MULTI_HOP:
        published.rests_on(fit)
    published.scatter(data, fit)
    published.correlation_table(correlations)
    published.rates(data, fit)
    published.all_tables()
    published.what_next()


def read(workspace: Workspace) -> None:
    chosen = studies.choose_study(workspace)
    if chosen is None:
        frame.empty("No study yet", "A study repeats the paper's experiment on your own data.")
        frame.link("evidence", "Plan a study", tab=PLAN)
    else:
        studies.shown(workspace, chosen)


def plan(workspace: Workspace) -> None:
    left, right = st.columns([3, 2], gap="large")
    with left:
        config = studies.choose(workspace)
    if config is not None:
        with right, frame.guarded():
            studies.summary(workspace, config)


workspace = Workspace.default()
frame.head("evidence")

with frame.guarded():
    forms.flash()
    opened = state.tabs(TABS)
    for tab, draw in (
        (PUBLISHED, relation_and_tables),
        (STUDIES, lambda: read(workspace)),
        (PLAN, lambda: plan(workspace)),
    ):
        if opened[tab].open:
            with opened[tab], frame.guarded():
                draw()
