"""What is trained on: query sets that are there, or that a job is to write first."""

from __future__ import annotations

from dataclasses import replace

from cdp.errors import ConfigError
from cdp.studies.plan import Source
from cdp.synthesis import query_sets
from cdp.workspace import Workspace


def written(workspace: Workspace, source: Source) -> Source:
    """A source whose query set is there, found by the job that wrote it if need be, with the counts of its queries."""
    if not source.query_set:
        made = [q for q in query_sets.list_query_sets(workspace) if q.job_id == source.job_id]
        if not made:
            raise ConfigError(f"The queries of {source.label} were not written.", hint="See the job that writes them.")
        source = replace(source, query_set=made[0].id)
    return counted(workspace, source)


def counted(workspace: Workspace, source: Source) -> Source:
    """The source with how many documents have at least 1, 2, 3 … queries."""
    counts: list[int] = []
    for line in query_sets.iter_lines(workspace, source.query_set):
        n = len(line["queries"])
        counts += [0] * (n - len(counts))
        for i in range(n):
            counts[i] += 1
    return replace(source, n_documents=counts[0] if counts else 0, counts=tuple(counts))
