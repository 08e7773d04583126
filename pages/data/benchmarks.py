"""Your own benchmarks, then those available by name: sizes, licences, downloads and group means."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui.benchmarks import library as benchmarks
from cdp.ui.shell import frame, imports

workspace = Workspace.default()
frame.head("benchmarks")

with frame.guarded():
    imports.flash()
    benchmarks.own(workspace)
    benchmarks.add(workspace)
    st.subheader("Download benchmarks", anchor=False)
    statuses = benchmarks.choose_group(workspace)
    benchmarks.table(statuses)
    benchmarks.download_missing(workspace, statuses)
    benchmarks.details(workspace, statuses)
    benchmarks.group_means(workspace)
    st.caption("CW and sizes are as stated by each source. Decide counts the CW of a benchmark's own queries.")
