"""Retrievers against a baseline: NDCG@10, differences with their intervals, and the queries behind them."""

from __future__ import annotations

import streamlit as st

from cdp.services import results
from cdp.ui import compare, frame
from cdp.workspace import Workspace

workspace = Workspace.default()
frame.head("compare")

with frame.guarded():
    rows = results.every(workspace)
    if not rows:
        frame.empty(
            "No results yet",
            "Train a retriever with an evaluation before and after, and both stand here side by side.",
        )
        frame.navigation.button("launch", "Set up a training", "to_launch")
    else:
        baseline, others = compare.choose(rows)
        if baseline and others:
            found = results.compare(workspace, baseline, others)
            compare.answer(found)
            compare.matrix(found)
            compare.differences(found)
            compare.download(found)
            compare.by_query(workspace, found)
            compare.settings(found)
        else:
            st.caption("Choose a baseline and at least one other retriever.")
