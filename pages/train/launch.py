"""Set up a training, several, or an evaluation; see what it comes to; start it."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import queries
from cdp.ui.launch import evaluation as evaluating
from cdp.ui.launch import sweep
from cdp.ui.launch import training as training_form
from cdp.ui.shell import forms, frame, state

workspace = Workspace.default()
frame.head("launch")

with frame.guarded():
    forms.flash()
    mode = sweep.mode()
    own_sets = state.of_project(workspace, "query_set", queries.list_query_sets(workspace))
    query_sets = [q for q in own_sets if q.n_queries]
    if mode == sweep.EVALUATION:
        evaluating.page(workspace)
    elif not query_sets:
        frame.empty("No query sets yet", "A retriever is trained on queries and their documents. Write or import some.")
        frame.page_button("queries", "Write queries", "to_queries")
    else:
        left, right = st.columns([3, 2], gap="large")
        swept = mode == sweep.SWEEP
        with left:
            config = training_form.settings(workspace, query_sets, sweep.CHOSEN_HERE if swept else ())
            if swept and config is not None:
                rates, config = sweep.grid(workspace, config)
            elif not swept:
                judged = training_form.judges(workspace, config.query_set if config is not None else "")
        if config is not None:
            with right, frame.guarded():
                if swept:
                    sweep.summary(workspace, config, rates)
                else:
                    training_form.summary(workspace, config, judged)
