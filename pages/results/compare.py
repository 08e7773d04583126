"""All runs on a leaderboard; below, those that are chosen against a baseline, and the queries behind differences."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import leaderboard as result_means
from cdp.services import results, runs
from cdp.ui.compare import comparison as compare
from cdp.ui.compare import focus, leaderboard
from cdp.ui.compare import queries as compare_queries
from cdp.ui.compare import scores as compare_scores
from cdp.ui.shell import frame, project

workspace = Workspace.default()
frame.head("compare")

with frame.guarded():
    everything = results.list_evaluations(workspace)
    rows = leaderboard.show(workspace, project.scope(workspace), everything)
    if not rows:
        if everything:
            st.caption(f"{len(everything):,} results are archived, or belong to other projects.")
        frame.empty(
            "No results yet",
            "Train a retriever with an evaluation before and after to compare both here.",
        )
        frame.navigation.button("launch", "Set up a training", "to_launch")
        frame.navigation.link("launch", "Or evaluate an existing retriever", start="evaluation")
    else:
        st.subheader("Compare runs with a baseline", anchor=False)
        baseline, others = compare.choose(rows)
        if baseline and others:
            wanted = compare.filter_benchmarks(rows, [baseline, *others])
            test, over_seeds = compare.how()
            compare.left_out(rows, baseline, runs.with_relatives(rows, others) if over_seeds else others)
            comparison = results.compare(
                workspace, baseline, others, test=test, over_seeds=over_seeds, evaluations=rows
            )
            comparison = compare.covered(result_means.only(comparison, wanted))
            chosen = focus.chosen(compare.names_of(comparison))
            compare.answer(comparison)
            compare.bm25(workspace, comparison)
            palette = compare.palette(workspace, comparison)
            compare_scores.scores(workspace, comparison, chosen, palette)
            compare_scores.differences(comparison, chosen, palette)
            compare.download(comparison)
            compare_queries.behind(workspace, comparison, chosen, palette)
            frame.navigation.link("launch", "Evaluate another retriever", icon=":material/add:", start="evaluation")
            frame.next_step(
                "study",
                "Plan a study",
                "a study repeats trainings over seeds and shows how certain the answer is.",
                "compare_next",
            )
        else:
            st.caption("Select a baseline and at least one other retriever.")
