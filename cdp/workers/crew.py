"""The Ray workers of the job that this process works on."""

from __future__ import annotations

import os

from cdp.base.crew import VARIABLE, Crew
from cdp.base.worker import Job


def crew_of(job: Job) -> Crew | None:
    """The crew; None where the job was given none, for which nothing is loaded."""
    if VARIABLE not in os.environ:
        return None
    from cdp.jobs import crew

    return crew.of(job.folder)
