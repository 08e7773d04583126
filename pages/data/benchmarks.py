"""The benchmarks that are known by name, and one's own: their sizes and licences, bringing them in, groups' means."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui.benchmarks import library as benchmarks
from cdp.ui.shell import frame, imports

workspace = Workspace.default()
frame.head("benchmarks")

with frame.guarded():
    imports.flash()
    known = benchmarks.choose_group(workspace)
    benchmarks.table(known)
    benchmarks.bring_missing(workspace, known)
    benchmarks.details(workspace, known)
    benchmarks.group_means(workspace)
    benchmarks.own(workspace)
    benchmarks.add(workspace)
    st.caption("CW and sizes are those that their source states; a benchmark's own words are counted on Complexity.")
