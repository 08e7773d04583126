"""Large query sets that are not measured yet: a job measures them, and the page shows how far it is."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import access as access_service
from cdp.services import commands, completeness, jobs, metrics
from cdp.services.jobs import JobView
from cdp.services.queries import QuerySet
from cdp.ui.jobs import live as job_views
from cdp.ui.shell import access, frame
from cdp.ui.shell.text import count, md


def wait(workspace: Workspace, missing: Sequence[QuerySet], human: str) -> None:
    """Start what measures these sets, or follow what was started; draw nothing for none."""
    views = [view for query_set in missing if (view := _begun(workspace, query_set, human)) is not None]
    if views:
        job_views.live(_progress, True, workspace, job_views.states(views))


def _begun(workspace: Workspace, query_set: QuerySet, human: str) -> JobView | None:
    """The job at work on a set; None, and the reason on the page, where there is none."""
    name = md(query_set.name)
    if completeness.check(workspace, query_set).active:
        st.caption(f"{name} is still being written. It will be measured when it is finished.")
        return None
    view = metrics.measuring(workspace, query_set.id, human=human)
    if view is not None and view.active:
        return view
    if view is None and not access_service.read_only():
        metrics.start_quick(workspace, query_set.id, human=human)
        return metrics.measuring(workspace, query_set.id, human=human)
    with st.container(border=True):
        if view is not None and view.failure is not None:
            job_views.failure(view)
        command = commands.line("metrics", query_set.id, human=human, quick=True)
        st.markdown(f"**{name}** is not measured yet. On the command line: `{command}`")
        if access.button("Measure query set", icon=":material/play_arrow:", key=f"measure_{query_set.id}"):
            with frame.guarded():
                metrics.start_quick(workspace, query_set.id, human=human)
                st.rerun()
    return None


def _progress(workspace: Workspace, drawn_states: dict[str, str]) -> None:
    """How far the jobs are; the whole page is drawn anew once one has begun or ended. For ``live``."""
    with frame.guarded():
        views = [jobs.show(workspace, job_id, with_size=False) for job_id in drawn_states]
        if job_views.states(views) != drawn_states:
            st.rerun()
        with st.container(border=True):
            st.markdown(f"**Measuring {count(len(views), 'query set')}.** This continues if you leave the page.")
            for view in views:
                st.progress(view.fraction, text=f"{md(view.name, 90)}  \n{md(job_views.doing(view))}")
