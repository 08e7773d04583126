"""The Jobs page: one job opened, and the table of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from cdp.base.workspace import Workspace
from cdp.services import commands, jobs
from cdp.services.jobs import JobView
from cdp.ui.jobs import clone
from cdp.ui.jobs import live as views
from cdp.ui.queries import costs
from cdp.ui.shell import access, command, failed, frame, state, tables
from cdp.ui.shell.text import count, duration, label_of, md, moment, size

RESUMABLE = ("stopped", "failed", "lost")
LISTED = 500
"""How many jobs the list to choose from holds; the table below it holds all."""


def choose(all_jobs: Sequence[JobView]) -> JobView:
    """The job to open: the address's, the one chosen before, else one that runs, else the newest."""
    ordered = views.in_order(all_jobs)
    names = {v.id: f"{v.name} ({views.KINDS.get(v.kind, v.kind).lower()}, {moment(v.created)})" for v in ordered}
    wanted = (st.query_params.get("job"), state.kept("job"))
    offered = {key: name for i, (key, name) in enumerate(names.items()) if i < LISTED or key in wanted}
    picked = state.choose("Job", offered, "job", what="job")
    return next(v for v in all_jobs if v.id == picked)


def one(workspace: Workspace, job: JobView) -> None:
    """The chosen job; it looks again every two seconds while the job is active, without the rest of the page."""
    with st.container(border=True):
        views.live(_live, job.active, workspace, job.id, job.active)
    _failed(workspace, job)
    _log(workspace, job)
    _attempts(job)
    _settings(job)


def _live(workspace: Workspace, job_id: str, was_active: bool) -> None:
    with frame.guarded():
        view = jobs.show(workspace, job_id, with_size=False)
        if view.active != was_active:
            st.rerun()  # it began or ended: the timer, the log and the table change with it
        st.markdown(f"#### {md(view.name, 120)}")
        views.summary(view)
        _actions(workspace, view)
        if view.kind == "synthesis":
            costs.of_job(workspace, view.id)
        views.figures(workspace, view)
        views.curves(workspace, view)


def _actions(workspace: Workspace, view: JobView) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if view.active and str(view.state) != "stopping":
            with st.popover("Stop", icon=":material/stop_circle:", key=f"stop_open_{view.id}"):
                st.markdown("Stop this job? Its progress and model are saved, and you can resume it later.")
                if access.button("Stop the job", key=f"stop_{view.id}", type="primary"):
                    jobs.stop(workspace, view.id)
                    st.rerun()
        if str(view.state) in RESUMABLE:
            _resume(workspace, view)
        _where_next(workspace, view)
        clone.button(workspace, view)
        if not view.active:
            _delete(workspace, view)


def _resume(workspace: Workspace, view: JobView) -> None:
    """Go on from the last checkpoint; asks for keys, which are never stored, and for places outside the workspace."""
    missing = jobs.missing_secrets(workspace, view.id)
    with frame.guarded():
        outside = jobs.outside(workspace, view.id)
        if not missing and not outside:
            if access.button(
                "Resume", icon=":material/resume:", key=f"resume_{view.id}", help="Continue from the last checkpoint."
            ):
                jobs.resume(workspace, view.id)
                st.rerun()
            return
        with st.popover("Resume", icon=":material/resume:", key=f"resume_open_{view.id}"):
            if outside:
                listed = ", ".join(f"**{md(name, 200)}**" for name in outside)
                st.markdown(
                    f"This job's settings name places outside the workspace: {listed}. Resume it only if you know them."
                )
            if missing:
                st.markdown("This job needs its API key again, because keys are never stored.")
            typed = {
                name: st.text_input(
                    "API key" if name == "CDP_API_KEY" else name, type="password", key=f"secret_{name}_{view.id}"
                )
                for name in missing
            }
            pressed = access.button(
                "Resume the job", key=f"resume_{view.id}", type="primary", disabled=not all(typed.values())
            )
            if pressed:
                secrets = {name: value for name, value in typed.items() if value}
                jobs.resume(workspace, view.id, env_secrets=secrets, allow=outside)
                st.rerun()


def _delete(workspace: Workspace, view: JobView) -> None:
    """Delete after a look at what goes with it, and how large it is."""
    with st.popover("Delete", icon=":material/delete:", type="tertiary", key=f"delete_open_{view.id}"):
        parts = jobs.sizes(workspace, view.id)
        total = parts.pop("total")
        st.markdown(f"Delete this job and everything it created ({size(total)})?")
        if parts:
            st.caption(" · ".join(f"{name} {size(n)}" for name, n in parts.items()))
        if view.kind == "synthesis":
            st.caption("The query set that it wrote is kept.")
        if access.button("Delete the job", key=f"delete_{view.id}"):
            jobs.delete(workspace, view.id)
            state.keep("job", None)
            st.query_params.clear()
            st.rerun()


def _where_next(workspace: Workspace, view: JobView) -> None:
    """The button from what a job made to where it is looked at: of all that can be done with the job, the first."""
    if str(view.state) != "finished":
        return
    key = f"next_{view.id}"
    if view.kind == "training":
        frame.navigation.button("compare", "Compare results", key, icon="leaderboard")
        frame.navigation.link(
            "launch", "Evaluate this retriever", icon=":material/speed:", start="evaluation", judged=view.id
        )
    elif view.kind == "evaluation":
        frame.navigation.button("compare", "See the result", key, icon="leaderboard")
    elif view.kind == "synthesis":
        query_set_id = jobs.written_set(view)
        frame.navigation.button(
            "quality_diversity", "Measure the queries", key, icon="scatter_plot", params={"sets": [query_set_id]}
        )
        frame.navigation.link("launch", "Train on these queries", query_set=query_set_id)
    elif view.kind in ("measures", "metrics"):
        sets = [str(view.config.get("query_set", ""))]
        frame.navigation.button(
            "quality_diversity", "See the measures", key, icon="scatter_plot", params={"sets": sets}
        )
    elif view.kind in ("round-trip", "filter"):
        made = str(jobs.outcome(workspace, view.id).get("query_set") or view.config.get("query_set", ""))
        label = "Review the filtered set" if view.kind == "filter" else "See the ranks"
        frame.navigation.button("review", label, key, icon="rate_review", params={"query_set": made})
        if view.kind == "filter":
            frame.navigation.link("launch", "Train on the filtered set", query_set=made)
    elif view.kind == "study" and view.config.get("corpus"):
        about = {
            "corpus": str(view.config["corpus"]),
            "target_benchmark": str(view.config["benchmarks"]).partition(",")[0].partition(":")[0],
        }
        frame.navigation.button("complexity", "See what it decides", key, icon="balance", params=about)
        frame.navigation.link("study", "Read the findings", study=view.id)
    elif view.kind == "study":
        frame.navigation.button("study", "Read the findings", key, icon="science", params={"study": view.id})


def _failed(workspace: Workspace, job: JobView) -> None:
    """The documents, pairs or queries that failed while the job went on. The file is read when it is opened."""
    if not job.n_failures:
        return
    title = f"{count(job.n_failures, 'item')} failed"
    folded = st.expander(title, icon=":material/warning:", on_change="rerun", key=f"failed_{job.id}")
    if folded.open:
        with folded, frame.guarded():
            failures = jobs.failed(workspace, job.id)
            failed.listing(failures.summary.first, failures.summary.n, key=f"failures_{job.id}")
            st.caption("All other items were processed. The full list, with texts and tracebacks, is in:")
            st.code("\n".join(map(str, failures.files)), language=None, wrap_lines=True)


def _log(workspace: Workspace, job: JobView) -> None:
    folded = st.expander("Log", icon=":material/receipt_long:", on_change="rerun", key=f"log_{job.id}")
    if folded.open:
        with folded:
            follow = job.active and st.toggle(
                "Follow", value=True, key=f"log_follow_{job.id}", help="Show new lines as they are written."
            )
            views.live(_log_body, follow, workspace, job.id, follow)


def _log_body(workspace: Workspace, job_id: str, follow: bool) -> None:
    with frame.guarded():
        views.log(workspace, jobs.show(workspace, job_id, with_size=False), follow=follow)


def _attempts(job: JobView) -> None:
    """How the earlier attempts of a job that was resumed ended."""
    if not job.history:
        return
    with st.expander(f"Earlier attempts ({len(job.history)})", icon=":material/history:", key=f"attempts_{job.id}"):
        tables.show(
            {
                "Attempt": [row.get("attempt") for row in job.history],
                "Result": [row.get("outcome") or "interrupted" for row in job.history],
                "Started": [moment(row.get("started")) for row in job.history],
                "Duration": [duration(row.get("seconds")) for row in job.history],
                "Error": [row.get("failure") or "" for row in job.history],
            },
            alt="The earlier attempts of this job and how each ended",
        )


def _settings(job: JobView) -> None:
    with st.expander("Settings", icon=":material/tune:", key=f"settings_{job.id}"):
        rows = {k: v for k, v in job.config.items() if v not in (None, "")}
        tables.show(
            {"Setting": [label_of(k) for k in rows], "Value": [str(v) for v in rows.values()]},
            alt="The settings of this job",
        )
        st.caption("Settings that are not listed are empty or use the retriever's own values.")
    lines = [commands.line("jobs", "show", job.id), commands.line("jobs", "logs", job.id, "-f")]
    if job.active:
        lines += [commands.line("jobs", "wait", job.id), commands.line("jobs", "stop", job.id)]
    else:
        resume = [commands.line("jobs", "resume", job.id, "--wait")] if str(job.state) in RESUMABLE else []
        lines += [*resume, commands.line("jobs", "clone", job.id, "--set", "FIELD=VALUE")]
        if job.kind == "training" and str(job.state) == "finished":
            lines += [
                commands.line("models", "push", job.id, "OWNER/NAME", "--dry-run"),
                commands.line("models", "export", job.id, "FOLDER"),
            ]
        lines.append(commands.line("jobs", "delete", job.id))
    command.show(*lines)


def listing(all_jobs: Sequence[JobView]) -> None:
    """All jobs, filtered by kind and state; choosing one opens it."""
    st.subheader("All jobs", anchor=False)
    kinds = list(dict.fromkeys(v.kind for v in all_jobs))
    states = list(dict.fromkeys(str(v.state) for v in all_jobs))
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
    shown = [v for v in all_jobs if (not kind or v.kind in kind) and (not wanted or str(v.state) in wanted)]
    columns: dict[str, Sequence[Any]] = {
        "State": [str(v.state) for v in shown],
        "Queue position": [v.position for v in shown],
        "Job": [v.name for v in shown],
        "Kind": [views.KINDS.get(v.kind, label_of(v.kind)) for v in shown],
        "Progress": [None if str(v.state) == "finished" else v.fraction for v in shown],
        "Duration": [duration(v.seconds) for v in shown],
        "Created": [moment(v.created) for v in shown],
        "Failed items": [v.n_failures or None for v in shown],
        "Error": [(v.failure or {}).get("message", "") for v in shown],
    }
    row = tables.pick_row(
        {
            name: cells
            for name, cells in columns.items()
            if name in ("State", "Job") or any(cell not in ("", None) for cell in cells)
        },
        alt="All jobs; choose one to open it",
        key="jobs_table",
        config={
            "Progress": st.column_config.ProgressColumn(min_value=0, max_value=1, format="percent"),
            "Queue position": st.column_config.NumberColumn(
                width="small", help="Position in the queue while the job waits."
            ),
        },
    )
    if row is not None and shown[row].id != st.session_state.get("jobs_opened"):
        st.session_state["jobs_opened"] = shown[row].id
        state.keep("job", shown[row].id)
        st.query_params["job"] = shown[row].id
        st.rerun()
