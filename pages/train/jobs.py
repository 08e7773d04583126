"""What runs and what ran: one job's live view, and all jobs."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import jobs
from cdp.ui import jobs as job_views
from cdp.ui.shell import frame, state

workspace = Workspace.default()
frame.head("jobs")

with frame.guarded():
    all_jobs = state.of_project(workspace, "job", jobs.list_jobs(workspace))
    if not all_jobs:
        text = "Jobs appear here when you write queries, measure, train or evaluate."
        frame.empty("Nothing has run yet", text, "home", "Answer my question")
    else:
        job = job_views.choose(all_jobs)
        job_views.one(workspace, job)
        job_views.listing(job_views.in_order(all_jobs))
    job_views.start_another(workspace)
