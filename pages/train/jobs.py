"""What runs and what ran: one job's live view, and all jobs."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import jobs
from cdp.ui.jobs import page as job_page
from cdp.ui.shell import frame, project

workspace = Workspace.default()
frame.head("jobs")

with frame.guarded():
    all_jobs = project.keep(workspace, "job", jobs.list_jobs(workspace))
    if not all_jobs:
        frame.empty("Nothing has run yet", "Jobs appear here when you write queries, measure, train or evaluate.")
        frame.navigation.button("launch", "Set up a training", "to_launch")
    else:
        job = job_page.choose(all_jobs)
        job_page.one(workspace, job)
        job_page.listing(all_jobs)
