"""The Jobs page: one job opened, and the table of all."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from cdp.services import commands, jobs
from cdp.services.jobs import JobView
from cdp.ui import command, frame, state, tables
from cdp.ui import jobs as views
from cdp.ui.text import duration, label_of, md, moment
from cdp.workspace import Workspace

RESUMABLE = ("stopped", "failed", "lost")


def choose(known: Sequence[JobView]) -> JobView:
    """The job to open: the address's, the one chosen before, else one that runs, else the newest."""
    ordered = views.in_order(known)
    names = {v.id: f"{v.name} ({views.KINDS.get(v.kind, v.kind).lower()}, {moment(v.created)})" for v in ordered}
    picked = state.choose("Job", names, "job", what="job")
    return next(v for v in known if v.id == picked)


def one(workspace: Workspace, job: JobView) -> None:
    """The chosen job; it looks again every two seconds while the job is active."""
    with st.container(border=True):
        views.live(_live, job.active, workspace, job.id, str(job.state))
    _log(workspace, job)
    _settings(job)


def _live(workspace: Workspace, job_id: str, known_state: str) -> None:
    with frame.guarded():
        view = jobs.show(workspace, job_id)
        if not view.active and str(view.state) != known_state:
            st.rerun()
        st.markdown(f"#### {md(view.name, 120)}")
        views.summary(view)
        _actions(workspace, view)
        views.curves(workspace, view)


def _actions(workspace: Workspace, view: JobView) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if view.active and str(view.state) != "stopping":
            with st.popover("Stop", icon=":material/stop_circle:"):
                st.markdown("Stop this job? It saves what it has, and can be resumed.")
                if st.button("Stop the job", key=f"stop_{view.id}", type="primary"):
                    jobs.stop(workspace, view.id)
                    st.rerun()
        if str(view.state) in RESUMABLE and st.button(
            "Resume", icon=":material/resume:", key=f"resume_{view.id}", help="Go on from the last checkpoint."
        ):
            jobs.resume(workspace, view.id)
            st.rerun()
        if not view.active:
            with st.popover("Delete", icon=":material/delete:"):
                st.markdown("Delete this job and everything it made: model, checkpoints, results?")
                if st.button("Delete the job", key=f"delete_{view.id}", type="primary"):
                    jobs.delete(workspace, view.id)
                    state.keep("job", None)
                    st.query_params.clear()
                    st.rerun()
        _where_next(view)


def _where_next(view: JobView) -> None:
    """The link from what a job made to where it is looked at."""
    if str(view.state) != "finished":
        return
    if view.kind == "training":
        frame.navigation.link("compare", "Compare the results", icon=":material/leaderboard:")
    elif view.kind == "evaluation":
        frame.navigation.link("compare", "See the result", icon=":material/leaderboard:")
    elif view.kind == "synthesis":
        frame.navigation.link("quality_diversity", "Measure the queries", icon=":material/scatter_plot:")
    elif view.kind == "metrics":
        frame.navigation.link(
            "quality_diversity",
            "See the measures",
            icon=":material/scatter_plot:",
            sets=[str(view.config.get("query_set", ""))],
        )


def _log(workspace: Workspace, job: JobView) -> None:
    folded = st.expander("Log", icon=":material/receipt_long:", on_change="rerun", key=f"log_{job.id}")
    if folded.open:
        with folded:
            views.live(_log_body, job.active, workspace, job.id)


def _log_body(workspace: Workspace, job_id: str) -> None:
    with frame.guarded():
        views.log(workspace, jobs.show(workspace, job_id))


def _settings(job: JobView) -> None:
    with st.expander("Settings", icon=":material/tune:", key=f"settings_{job.id}"):
        rows = {k: v for k, v in job.config.items() if v not in (None, "")}
        tables.show(
            {"Setting": [label_of(k) for k in rows], "Value": [str(v) for v in rows.values()]},
            alt="The settings of this job",
        )
        st.caption("What is not listed was left to the retriever's own values or is empty.")
    command.show(commands.line("jobs", "show", job.id), commands.line("jobs", "logs", job.id, "-f"))


def listing(known: Sequence[JobView]) -> None:
    """All jobs, filtered by kind and state; choosing one opens it."""
    st.subheader("All jobs", anchor=False)
    kinds = list(dict.fromkeys(v.kind for v in known))
    states = list(dict.fromkeys(str(v.state) for v in known))
    with st.container(horizontal=True):
        kind = st.pills(
            "Kind",
            kinds,
            format_func=lambda k: views.KINDS.get(k, label_of(k)),
            selection_mode="multi",
            key="jobs_kinds",
            persist_state="session",
        )
        wanted = st.pills("State", states, selection_mode="multi", key="jobs_states", persist_state="session")
    shown = [v for v in known if (not kind or v.kind in kind) and (not wanted or str(v.state) in wanted)]
    row = tables.pick_row(
        {
            "State": [str(v.state) for v in shown],
            "Job": [v.name for v in shown],
            "Kind": [views.KINDS.get(v.kind, label_of(v.kind)) for v in shown],
            "Progress": [v.fraction for v in shown],
            "Took": [duration(v.seconds) for v in shown],
            "Created": [moment(v.created) for v in shown],
            "What went wrong": [(v.failure or {}).get("message", "") for v in shown],
        },
        alt="All jobs; choose one to open it",
        key="jobs_table",
        config={"Progress": st.column_config.ProgressColumn(min_value=0, max_value=1, format="percent")},
    )
    if row is not None and shown[row].id != st.session_state.get("jobs_opened"):
        st.session_state["jobs_opened"] = shown[row].id
        state.keep("job", shown[row].id)
        st.query_params["job"] = shown[row].id
        st.rerun()
