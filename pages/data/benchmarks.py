"""Your own benchmarks, then those available by name: sizes, licences, downloads and group means."""

from __future__ import annotations

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.ui import benchmarks as benchmark_page
from cdp.ui.shell import forms, frame

workspace = Workspace.default()
frame.head("benchmarks")

with frame.guarded():
    forms.flash()
    benchmark_page.own(workspace)
    benchmark_page.add(workspace)
    st.subheader("Download benchmarks", anchor=False)
    statuses = benchmark_page.choose_group(workspace)
    benchmark_page.table(statuses)
    benchmark_page.download_missing(workspace, statuses)
    benchmark_page.details(workspace, statuses)
    st.caption("CW and sizes are as stated by each source. Decide counts the CW of a benchmark's own queries.")
