"""The worker that measures a large query set without a model: ``python -m cdp.workers.measures <job folder>``.

It leaves the measures of the set, and the table of its single queries. Its settings are ``query_set`` and ``human``,
ids of query sets; the second may be empty.
"""

from __future__ import annotations

from cdp import query_sets
from cdp.base import worker
from cdp.base.worker import Job
from cdp.metrics import query_table, quick


def reporting(job: Job) -> quick.Report:
    """The report that a job gives of measuring; it stops when the job should."""

    def report(done: int, total: int) -> bool:
        job.progress("measuring", done, total, "documents")
        return not job.stop_requested()

    return report


def main(job: Job) -> None:
    """Measure the set that the job's settings name."""
    plan = quick.plan(job.workspace, job.config["query_set"], human=job.config["human"])
    if plan.load() is None:
        quick.measure(plan, reporting(job), job.failures("measuring"))
    query_set = query_sets.load(job.workspace, plan.query_set.id)
    if not job.stop_requested() and query_table.load(job.workspace, query_set) is None:
        query_table.make(job.workspace, query_set, reporting(job))


if __name__ == "__main__":
    worker.run(main)
