"""The published tables with their relation to content words, and the studies of this workspace with their plans."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui.evidence import published, studies
from cdp.ui.shell import forms, frame, state

PUBLISHED, STUDIES, PLAN = "published", "studies", "plan"
TABS = {PUBLISHED: "Published evidence", STUDIES: "Your studies", PLAN: "Plan a study"}


def read(workspace: Workspace) -> None:
    chosen = studies.choose_study(workspace)
    if chosen is None:
        text = "A study repeats the paper's experiment on your own data."
        frame.empty("No study yet", text, "evidence", "Plan a study", tab=PLAN)
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
        (PUBLISHED, published.page),
        (STUDIES, lambda: read(workspace)),
        (PLAN, lambda: plan(workspace)),
    ):
        if opened[tab].open:
            with opened[tab], frame.guarded():
                draw()
