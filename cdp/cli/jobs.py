"""Commands on jobs, and on the Ray cluster that jobs may run on."""

from __future__ import annotations

from typing import Annotated

from cdp.base.settings import Config
from cdp.base.text import size
from cdp.cli import answers
from cdp.cli.answers import Run, refuse_unless
from cdp.cli.declare import Command, Id, Set, command
from cdp.jobs.place import EXAMPLE, HERE
from cdp.services import clusters, jobs
from cdp.services.clusters import ClusterReport
from cdp.synthesis import pricing


@command("jobs list", project=())
def list_(run: Run) -> int:
    """All jobs, the newest first."""
    listed = run.scope.keep("job", jobs.list_jobs(run.workspace))
    rows = [{"id": j.id, "kind": jobs.activity(j.kind).lower(), "state": str(j.state), "progress": f"{j.fraction:.0%}",
             "queue position": j.position, "failed items": j.n_failures or "", "created": j.created}
            for j in listed]  # fmt: skip
    return run.say([job.to_dict() for job in listed], rows, empty="No job yet.")


@command("jobs show")
def show(run: Run, id: Id) -> int:
    """One job: its state, its progress, what it cost, and what went wrong."""
    job = jobs.show(run.workspace, id)
    failed = jobs.failed(run.workspace, job.id)
    bill = pricing.bill_of_job(run.workspace, job.id)
    notes = jobs.outcome(run.workspace, job.id).get("notes", [])

    lines = [answers.job(job)]
    if bill:
        lines += [bill.told, bill.unanswered]
    if failed.n:
        lines.append(f"failed on the way: {answers.failed(failed)}")

    value = {**job.to_dict(), "failed": failed, "cost": bill, "notes": notes}
    lines += [f"note: {note}" for note in notes]
    return run.say(value, "\n".join(filter(None, lines)))


@command("jobs logs")
def logs(run: Run, id: Id, *, f: Annotated[bool, "follow the log until the job ends"] = False) -> int:
    """A job's log."""
    for text in jobs.follow(run.workspace, id, follow=f):
        print(text, end="", flush=True)
    return 0


@command("jobs wait")
def wait(run: Run, id: Id) -> int:
    """Follow a job to its end; Ctrl-C leaves it running."""
    run.wait = True
    return run.started(jobs.show(run.workspace, id).id)


def of_kind(name: str) -> Command:
    """Return ``jobs start NAME``, whose options are the settings of that kind of job."""
    kind = jobs.without_command(name)

    def start(run: Run, config: Config) -> int:
        return run.started(jobs.start(run.workspace, name, config))

    start.__doc__, start.__annotations__["config"] = kind.help, kind.settings
    return Command(f"jobs start {name}", start, job=True)


@command("jobs start", job=True, narrow=of_kind)
def start(run: Run, kind: Annotated[str, "a kind of job that a plug-in adds"], *, set: Set) -> int:
    """Start a job of a kind without a command of its own; jobs start KIND --help names its options."""
    settings = jobs.without_command(kind).settings
    return run.started(jobs.start(run.workspace, kind, settings.from_dict(set)))


@command("jobs stop")
def stop(run: Run, id: Id) -> int:
    """Ask a job to save what it has and end."""
    job = jobs.stop(run.workspace, id)
    return run.say(job.to_dict(), answers.job(job))


AllowOutside = Annotated[
    list[str] | None, "a path or address outside the workspace that the job's settings may name; repeatable", "NAME"
]


@command("jobs resume", job=True)
def resume(run: Run, id: Id, *, allow: AllowOutside = None) -> int:
    """Continue a job from its last checkpoint."""
    return run.started(jobs.resume(run.workspace, id, allow=allow or ()).id)


@command("jobs retry", job=True)
def retry(
    run: Run,
    id: Id,
    *,
    item: Annotated[list[str] | None, "the id of a failed item, all if omitted; repeatable", "ID"] = None,
    allow: AllowOutside = None,
) -> int:
    """Ask once more about what failed in a job that ended."""
    return run.started(jobs.retry(run.workspace, id, item or (), allow=allow or ()).id)


@command("jobs delete")
def delete(run: Run, id: Id, *, yes: Annotated[bool, "delete it"] = False) -> int:
    """Delete a job that has ended, with everything it made."""
    job = jobs.show(run.workspace, id)
    held = size(job.size or 0)
    refuse_unless(yes, f"{job.id} would be deleted with all it made ({held}).", "Say --yes to delete it.")
    jobs.delete(run.workspace, job.id)
    return run.say({"id": job.id, "deleted": True, "bytes": job.size}, f"{job.id} is deleted ({held})")


@command("cluster use")
def cluster_use(
    run: Run, address: Annotated[str, f"the address of its Jobs API, as {EXAMPLE}; {HERE} for this machine"]
) -> int:
    """Give all jobs of this workspace to a Ray cluster, after a check that they can run there."""
    return _cluster(run, clusters.use(run.workspace, address), "\nJobs of this workspace run there from now on.")


@command("cluster show")
def cluster_show(
    run: Run, address: Annotated[str, "the address of its Jobs API; the workspace's own if omitted"] = ""
) -> int:
    """The nodes of a Ray cluster, and whether jobs of this workspace can run there."""
    address = address or clusters.setting(run.workspace)
    return _cluster(run, clusters.look(run.workspace, address) if address else None)


def _cluster(run: Run, report: ClusterReport | None, more: str = "") -> int:
    if report is None:
        return run.say({"address": ""}, "Jobs run on this machine. Choose a cluster: cluster use ADDRESS")
    columns = ("host", "head", "cpus", "gpus", "memory", "accelerators")
    return run.say(answers.plain(report), f"{report.words}\n\n{answers.table(report.nodes, columns)}{more}")
