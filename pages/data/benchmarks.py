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
    known = benchmarks.choose_group(workspace)
    benchmarks.table(known)
    benchmarks.download_missing(workspace, known)
    benchmarks.details(workspace, known)
    benchmarks.group_means(workspace)
    st.caption("CW and sizes are as stated by each source. The Complexity page computes CW from a benchmark's queries.")
