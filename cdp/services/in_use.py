"""Which jobs at work need a thing: nothing that one of them reads or writes may be taken away under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from cdp import jobs
from cdp.base.config import SynthesisConfig
from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import JobView
from cdp.synthesis.work import query_set_id


def jobs_that_need(workspace: Workspace, name: str) -> list[JobView]:
    """The queued and running jobs whose settings or inputs name this, or that write the query set of that id."""
    return [job for job in jobs.list_active(workspace) if name in _named_by(job)]


def check_unused(workspace: Workspace, what: str, name: str) -> None:
    """ConfigError that names the jobs at work that need a thing. ``what`` describes it, as in "The query set x"."""
    users = jobs_that_need(workspace, name)
    if not users:
        return
    shown = ", ".join(f"{job.name} ({job.id}, {job.state})" for job in users[:5])
    more = f" and {len(users) - 5} more" if len(users) > 5 else ""
    needs = "a job that is" if len(users) == 1 else f"{len(users)} jobs that are"
    raise ConfigError(
        f"{what} is needed by {needs} not over yet: {shown}{more}.",
        hint="Wait until it has ended, or stop it first.",
    )


def _named_by(job: JobView) -> Iterator[str]:
    yield from texts(job.config)
    yield from texts(job.inputs)
    yield from written_by(job)


def written_by(job: JobView) -> Iterator[str]:
    """The id of the query set that a job writes, if it writes one."""
    if job.kind == "synthesis":
        settings = SynthesisConfig.settings()  # a job of another version may have others
        with suppress(CdpError):
            yield query_set_id(
                job.id, SynthesisConfig.from_dict({k: v for k, v in job.config.items() if k in settings})
            )


def texts(value: Any) -> Iterator[str]:
    """Every text in nested settings, whole and, where it lists several things, one by one ("a, b:test")."""
    if isinstance(value, str):
        yield value
        for part in value.split(","):
            yield part.strip()
            yield re.sub(r":\w+$", "", part.strip())
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "name":  # what a job's own result will be called
                yield from texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item)
