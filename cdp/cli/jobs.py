"""Commands on jobs, and on the Ray cluster that jobs may run on."""

from __future__ import annotations

import dataclasses
import sys
from typing import Annotated

from cdp.base.errors import ConfigError
from cdp.base.text import size
from cdp.cli import display
from cdp.cli.answers import Run
from cdp.cli.declare import Id, command
from cdp.jobs.place import EXAMPLE, HERE
from cdp.services.clusters import Report


@command("jobs list", project=())
def list_(run: Run) -> int:
    """All jobs, the newest first."""
    from cdp.services import jobs

    listed = run.scope.keep("job", jobs.list_jobs(run.workspace))
    rows = [{"id": j.id, "kind": j.kind, "state": str(j.state), "progress": j.fraction, "place": j.position,
             "failures": j.n_failures or "", "created": j.created} for j in listed]  # fmt: skip
    return run.say([job.to_dict() for job in listed], display.table(rows, empty="No job yet."))


@command("jobs show")
def show(run: Run, id: Id) -> int:
    """One job: its state, its progress, what it cost, and what went wrong."""
    from cdp.services import jobs, synthesis

    job = jobs.show(run.workspace, id)
    failed = jobs.failed(run.workspace, job.id)
    bill = synthesis.bill_of_job(run.workspace, job.id)
    cost = [line for line in (bill.told, bill.unanswered) if line] if bill else []
    lines = [display.job(job), *cost, *display.failed(failed)]
    return run.say({**job.to_dict(), "failed": failed, "cost": bill}, "\n".join(lines))


@command("jobs logs")
def logs(run: Run, id: Id, *, f: Annotated[bool, "follow the log until the job ends"] = False) -> int:
    """A job's log."""
    from cdp.services import jobs

    for text in jobs.follow(run.workspace, id, follow=f):
        print(text, end="", flush=True)
    return 0


@command("jobs wait")
def wait(run: Run, id: Id) -> int:
    """Follow a job to its end; Ctrl-C leaves it running."""
    from cdp.services import jobs

    run.wait = True
    return run.started(jobs.show(run.workspace, id).id)


@command("jobs stop")
def stop(run: Run, id: Id) -> int:
    """Ask a job to save what it has and end."""
    from cdp.services import jobs

    job = jobs.stop(run.workspace, id)
    return run.say(job.to_dict(), display.job(job))


AllowOutside = Annotated[
    list[str] | None, "a path or address outside the workspace that the job's settings may name; repeatable", "NAME"
]


@command("jobs resume", job=True)
def resume(run: Run, id: Id, *, allow: AllowOutside = None) -> int:
    """Continue a job from its last checkpoint."""
    from cdp.services import jobs

    return run.started(jobs.resume(run.workspace, id, allow=allow or ()).id)


@command("jobs delete")
def delete(run: Run, id: Id, *, yes: Annotated[bool, "do not ask"] = False) -> int:
    """Delete a job that has ended, with everything it made."""
    from cdp.services import jobs

    job = jobs.show(run.workspace, id, with_size=False)
    parts = jobs.sizes(run.workspace, job.id)
    held = ", ".join(f"{name} {size(n)}" for name, n in parts.items())
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigError(f"{job.id} would be deleted with all it made ({held}).", hint="Say --yes to delete it.")
        print(f"Delete {job.id} with all it made ({held})? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return run.say({"id": job.id, "deleted": False}, "nothing was deleted")
    jobs.delete(run.workspace, job.id)
    return run.say({"id": job.id, "deleted": True, "bytes": parts["total"]}, f"{job.id} is deleted ({held})")


@command("cluster use")
def cluster_use(
    run: Run, address: Annotated[str, f"the address of its Jobs API, as {EXAMPLE}; {HERE} for this machine"]
) -> int:
    """Give all jobs of this workspace to a Ray cluster, after a check that they can run there."""
    from cdp.services import clusters

    report = clusters.use(run.workspace, address)
    if report is None:
        return run.say({"address": ""}, "Jobs run on this machine.")
    text = f"{_cluster_text(report)}\nJobs of this workspace run there from now on."
    return run.say(dataclasses.asdict(report), text)


@command("cluster show")
def cluster_show(
    run: Run, address: Annotated[str, "the address of its Jobs API; the workspace's own if omitted"] = ""
) -> int:
    """The nodes of a Ray cluster, and whether jobs of this workspace can run there."""
    from cdp.services import clusters

    address = address or clusters.setting(run.workspace)
    if not address:
        return run.say({"address": ""}, "Jobs run on this machine. Choose a cluster: cluster use ADDRESS")
    report = clusters.look(run.workspace, address)
    return run.say(dataclasses.asdict(report), _cluster_text(report))


def _cluster_text(report: Report) -> str:
    rows = [
        {"host": n.host, "role": "head" if n.head else "", "CPUs": f"{n.cpus:g}", "GPUs": n.gpus,
         "memory": f"{n.memory:.0f} GB", "accelerators": ", ".join(n.accelerators)}
        for n in report.nodes
    ]  # fmt: skip
    return f"{report.words}\n\n{display.table(rows)}"
