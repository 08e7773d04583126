"""Studies: plan one, start it, and read what was found."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui.jobs import clone
from cdp.ui.shell import frame
from cdp.ui.study import plan as study_plan
from cdp.ui.study import report as study

PLAN = "Plan a new study"

workspace = Workspace.default()
frame.head("study")

with frame.guarded():
    first = PLAN if study_plan.asked() or clone.asked() or not study.listed(workspace) else None
    results_tab, plan_tab = st.tabs(["Results", PLAN], default=first)
    with results_tab, frame.guarded():
        chosen = study.choose_study(workspace)
        if chosen is None:
            frame.empty(
                "No study yet",
                "Plan one under **Plan a new study**: it repeats the paper's experiment on your own data.",
            )
        else:
            study.shown(workspace, chosen)
    with plan_tab, frame.guarded():
        left, right = st.columns([3, 2], gap="large")
        with left:
            config = study_plan.choose(workspace)
        if config is not None:
            with right, frame.guarded():
                study_plan.summary(workspace, config)
