"""When a query set is incomplete (its job failed, was stopped or lost), its sentence, refusing to train on it.

Training takes an incomplete set only with explicit consent (``require``). A set whose run ended normally is complete,
also where some documents failed: those are listed with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from cdp import jobs, query_sets
from cdp.base.errors import CdpError, ConfigError
from cdp.base.text import counted
from cdp.base.workspace import ANSWERS, Workspace
from cdp.query_sets import QuerySet

FLAG = "--allow-incomplete"
REASONS = {"failed": "its job failed", "stopped": "its job was stopped", "lost": "its job was cut off"}


@dataclass(frozen=True)
class Completeness:
    """What a query set lacks. ``job_state`` is empty for a deleted job."""

    query_set: QuerySet
    complete: bool
    active: bool = False
    job_id: str = ""
    job_state: str = ""

    @property
    def label(self) -> str:
        """``complete``, ``being written``, ``incomplete``."""
        if self.complete:
            return "complete"
        return "being written" if self.active else "incomplete"

    @property
    def name(self) -> str:
        """The set's name for a list, with its fault: ``Wiki × 5 (incomplete)``."""
        return self.query_set.name if self.complete else f"{self.query_set.name} ({self.label})"

    @property
    def sentence(self) -> str:
        """The fault in a sentence, with the job and the count; empty for a complete set."""
        if self.complete:
            return ""
        q = self.query_set
        there = f"{counted(q.n_documents, 'document')} with queries"
        if self.active:
            return f"{q.name} is still being written by the job {self.job_id}: {there} so far."
        why = REASONS.get(self.job_state, "documents are missing" if self.job_state else "its job was deleted")
        return f"{q.name} is incomplete: {why}{f' ({self.job_id})' if self.job_id else ''}, {there}."

    @property
    def next_step(self) -> str:
        """What to do about it; empty for a complete set."""
        if self.complete:
            return ""
        if self.active:
            return f"Wait for it: jobs wait {self.job_id}."
        return f"Resume its job: jobs resume {self.job_id}." if self.job_state else "Write it again."

    @property
    def note(self) -> str:
        """The fault, and what to do about it."""
        return f"{self.sentence} {self.next_step}".strip()


def check(workspace: Workspace, query_set: QuerySet) -> Completeness:
    """Return what a query set lacks, with its current counts: a killed job had no time to write them.

    Cheap for a complete one: nothing is read.
    """
    if query_set.complete:
        return Completeness(query_set, True, job_id=query_set.job_id)

    state, active = "", False
    with suppress(CdpError):  # the job was deleted, or its folder is damaged
        view = jobs.view(workspace, query_set.job_id, with_size=False)
        state, active = str(view.state), view.active

    if active:  # its file grows: the job says how far it is
        query_set = dataclasses.replace(query_set, n_documents=view.done if view.phase == "generating" else 0)
    else:
        path = query_sets.files(workspace, query_set.id).queries
        totals = ANSWERS.get(path, "totals", lambda: query_sets.count(path))
        query_set = dataclasses.replace(
            query_set, n_documents=totals.n_documents, n_queries=totals.n_queries, n_shared=totals.n_shared
        )

    return Completeness(query_set, False, active, query_set.job_id, state)


def list_incomplete(workspace: Workspace, names: Iterable[str]) -> list[Completeness]:
    """Return the incomplete ones of the query sets (by id or name, empty ones skipped)."""
    found = []
    for name in filter(None, dict.fromkeys(names)):
        item = check(workspace, query_sets.resolve_query_set(workspace, name))
        if not item.complete:
            found.append(item)

    return found


def require(workspace: Workspace, names: Iterable[str], allow_incomplete: bool) -> None:
    """Raise ConfigError for the first incomplete query set, unless that is allowed."""
    for item in () if allow_incomplete else list_incomplete(workspace, names):
        raise ConfigError(
            f"{item.sentence} Training on it needs your consent.",
            hint=f"{item.next_step} Or train on what is there: {FLAG}.",
        )
