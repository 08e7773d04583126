"""What runs and what ran: one job's live view, and all jobs."""

from __future__ import annotations

from cdp.base.workspace import Workspace
from cdp.services import jobs
from cdp.ui.jobs import page as job_page
from cdp.ui.shell import frame

workspace = Workspace.default()
frame.head("jobs")

with frame.guarded():
    known = jobs.list_jobs(workspace)
    if not known:
        frame.empty("Nothing has run yet", "Jobs appear here when you write queries, measure, train or evaluate.")
        frame.navigation.button("launch", "Set up a training", "to_launch")
    else:
        job = job_page.choose(known)
        job_page.one(workspace, job)
        job_page.listing(known)
