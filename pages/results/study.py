"""Studies: plan one, start it, and read what was found."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui import jobs as job_views
from cdp.ui import study as study_page
from cdp.ui.shell import frame

PLAN = "Plan a new study"

workspace = Workspace.default()
frame.head("study")

with frame.guarded():
    first = PLAN if study_page.asked() or job_views.clone_asked() or not study_page.listed(workspace) else None
    results_tab, plan_tab = st.tabs(["Results", PLAN], default=first)
    with results_tab, frame.guarded():
        chosen = study_page.choose_study(workspace)
        if chosen is None:
            frame.empty(
                "No study yet",
                "Plan one under **Plan a new study**: it repeats the paper's experiment on your own data.",
            )
        else:
            study_page.shown(workspace, chosen)
    with plan_tab, frame.guarded():
        left, right = st.columns([3, 2], gap="large")
        with left:
            config = study_page.choose(workspace)
        if config is not None:
            with right, frame.guarded():
                study_page.summary(workspace, config)
