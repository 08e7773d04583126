"""Commands on jobs: the list, one job, its log, and what can be done with it."""

from __future__ import annotations

import argparse
import sys

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.cli import display, display_jobs
from cdp.cli.answers import DONE, say, settings, started
from cdp.services.jobs import job_words


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs list``."""
    from cdp.services import jobs

    listed_jobs = a.scope.keep("job", jobs.list_jobs(workspace))
    rows = [{"id": j.id, "kind": j.kind, "state": str(j.state), "progress": j.fraction, "place": j.position,
             "failures": j.n_failures or "", "created": j.created} for j in listed_jobs]  # fmt: skip
    return say(
        a, [job.to_dict() for job in listed_jobs], display.table(rows, list(rows[0]) if rows else [], "No job yet.")
    )


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs show``."""
    from cdp.services import jobs
    from cdp.services.queries import synthesis

    job = jobs.show(workspace, a.id)
    failed = jobs.failed(workspace, job.id)
    bill = synthesis.bill_of_job(workspace, job.id)
    cost = [line for line in (bill.told, bill.unanswered) if line] if bill else []
    value = {**job.to_dict(), "failed": failed.summary, "cost": bill}
    return say(a, value, "\n".join([display_jobs.job(job), *cost, *display.failed(failed.summary, failed.files)]))


def logs(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs logs``: with ``-f`` as long as the job goes on."""
    from cdp.services import jobs

    try:
        for text in jobs.follow(workspace, a.id, follow=a.follow):
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        print(file=sys.stderr)
    return DONE


def stop(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs stop``."""
    from cdp.services import jobs

    job = jobs.stop(workspace, a.id)
    return say(a, job.to_dict(), display_jobs.job(job))


def wait(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs wait``."""
    from cdp.services import jobs

    a.wait = True
    return started(workspace, a, jobs.show(workspace, a.id).id)


def clone(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs clone``: the same job once more, with changed settings."""
    from cdp.services.jobs import clone

    return started(
        workspace,
        a,
        clone.start(
            workspace,
            a.id,
            settings(a),
            allow_incomplete=a.allow_incomplete,
            allow_leakage=a.allow_leakage,
            allow=a.allow,
        ),
    )


def delete(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs delete``: asks first on a terminal, unless ``--yes`` was said."""
    from cdp.services import jobs

    job = jobs.show(workspace, a.id, with_size=False)
    parts = jobs.sizes(workspace, job.id)
    held = ", ".join(f"{name} {job_words.size(n)}" for name, n in parts.items())
    if not a.yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{job.id} would be deleted with all it made ({held}).", hint="Say --yes to delete it.")
        print(f"Delete {job.id} with all it made ({held})? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return say(a, {"id": job.id, "deleted": False}, "nothing was deleted")
    jobs.delete(workspace, job.id)
    return say(a, {"id": job.id, "deleted": True, "bytes": parts["total"]}, f"{job.id} is deleted ({held})")


def resume(workspace: Workspace, a: argparse.Namespace) -> int:
    """``jobs resume``."""
    from cdp.services import jobs

    return started(workspace, a, jobs.resume(workspace, a.id, allow=a.allow).id)
