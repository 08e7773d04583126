"""All runs on a leaderboard; below, those that are chosen against a baseline, and the queries behind differences."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import result_tables, results, runs
from cdp.ui.compare import choice, details, leaderboard
from cdp.ui.shell import frame, state

workspace = Workspace.default()
frame.head("compare")

with frame.guarded():
    everything = results.list_evaluations(workspace)
    rows = leaderboard.show(workspace, state.scope(workspace), everything)
    if not rows:
        if everything:
            st.caption(f"{len(everything):,} results are archived, or belong to other projects.")
        frame.empty("No results yet", "Train a retriever with an evaluation before and after to compare both here.")
        frame.page_button("launch", "Set up a training", "to_launch")
        frame.link("launch", "Or evaluate an existing retriever", start="evaluation")
    else:
        st.subheader("Compare runs with a baseline", anchor=False)
        baseline, others = choice.choose(rows)
        if baseline and others:
            wanted = choice.filter_benchmarks(rows, [baseline, *others])
            over_seeds = choice.average_seeds()
            choice.left_out(rows, baseline, runs.with_relatives(rows, others) if over_seeds else others)
            comparison = results.compare(workspace, baseline, others, over_seeds=over_seeds, evaluations=rows)
            comparison = choice.covered(result_tables.only(comparison, wanted))
            choice.answer(comparison)
            choice.bm25(workspace, comparison)
            palette = choice.palette(workspace, comparison)
            details.scores(workspace, comparison, palette)
            details.differences(comparison, palette)
            choice.download(comparison)
            details.behind(workspace, comparison, palette)
            frame.link("launch", "Evaluate another retriever", icon=":material/add:", start="evaluation")
            frame.next_step(
                "evidence",
                "Plan a study",
                "a study repeats trainings over seeds and shows how certain the answer is.",
                "compare_next",
                tab="plan",
            )
        else:
            st.caption("Select a baseline and at least one other retriever.")
