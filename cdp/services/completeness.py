"""Whether a query set is whole: one whose job failed, was stopped or was lost says so wherever it is named.

It is trained on only after someone said yes to that: ``require`` is what holds it, for pages and commands alike. A set
whose run ended normally is whole, also where some documents failed on the way: those are listed with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from cdp import jobs, query_sets
from cdp.base.errors import CdpError, ConfigError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.query_sets import QuerySet

FLAG = "--allow-incomplete"


@dataclass(frozen=True)
class Completeness:
    """What a query set lacks. ``job_state`` is empty where the job that wrote it is gone, ``expected`` the number of
    documents that were to get queries (None where nobody knows)."""

    query_set: QuerySet
    complete: bool
    active: bool = False
    job_id: str = ""
    job_state: str = ""
    expected: int | None = None

    @property
    def label(self) -> str:
        """``complete``, ``being written``, ``incomplete``."""
        return "complete" if self.complete else "being written" if self.active else "incomplete"

    @property
    def name(self) -> str:
        """The set's name for a list, with what is wrong with it: ``Wiki × 5 (incomplete: its job failed)``."""
        if self.complete:
            return self.query_set.name
        return f"{self.query_set.name} ({self.label}{'' if self.active else f': {self._job}'})"

    @property
    def _job(self) -> str:
        words = {"failed": "its job failed", "stopped": "its job was stopped", "lost": "its job was cut off"}
        return words.get(self.job_state, "documents are missing" if self.job_state else "its job is gone")

    @property
    def sentence(self) -> str:
        """What is wrong in a sentence, with the job and how much is there; of a whole set what failed, or nothing."""
        q = self.query_set
        if self.complete:
            if not q.n_failures or q.imported:
                return ""
            noun = "document has" if q.n_failures == 1 else "documents have"
            return f"{q.name} is finished; {q.n_failures:,} {noun} no query."
        if self.active:
            return f"{q.name} is still being written by the job {self.job_id}: {self._there} so far."
        job = f" ({self.job_id})" if self.job_id else ""
        return f"{q.name} is incomplete: {self._job}{job}, and {self._there}."

    @property
    def _there(self) -> str:
        of = "" if self.expected is None else f" of {self.expected:,}"
        return f"{self.query_set.n_documents:,}{of} documents have queries"

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if self.complete:
            return ""
        if self.active:
            return f"Wait for it: jobs wait {self.job_id}."
        return f"Resume its job: jobs resume {self.job_id}." if self.job_state else "Write it anew."

    @property
    def note(self) -> str:
        """What is wrong, and what to do about it."""
        return " ".join(part for part in (self.sentence, self.next_step) if part)


def check(workspace: Workspace, query_set: QuerySet) -> Completeness:
    """What a query set lacks. Cheap for a whole one: nothing is read."""
    if query_set.complete:
        return Completeness(query_set, True, job_id=query_set.job_id)
    state, active = "", False
    try:
        view = jobs.view(workspace, query_set.job_id, with_size=False)
    except CdpError:
        query_set = _with_counts(workspace, query_set)  # the job was deleted, or its folder is damaged
    else:
        state, active = str(view.state), view.active
        if active:  # its file grows: the job says how far it is
            query_set = dataclasses.replace(query_set, n_documents=view.done if view.phase == "generating" else 0)
        else:
            query_set = _with_counts(workspace, query_set)
    return Completeness(query_set, False, active, query_set.job_id, state, _expected(workspace, query_set))


def with_counts(workspace: Workspace, query_set: QuerySet) -> QuerySet:
    """The set with what is there now: a job that was killed had no time to write it into the manifest."""
    return query_set if query_set.complete else check(workspace, query_set).query_set


def _with_counts(workspace: Workspace, query_set: QuerySet) -> QuerySet:
    path = query_sets.files(workspace, query_set.id).queries
    totals = ANSWERS.get(path, "totals", lambda: query_sets.count(path))
    return dataclasses.replace(query_set, n_documents=totals.n_documents, n_queries=totals.n_queries)


def _expected(workspace: Workspace, query_set: QuerySet) -> int | None:
    limit = query_set.parameters.get("limit")
    try:
        source = query_set.parameters.get("source")
        total = (
            query_sets.load(workspace, str(source)).n_documents
            if source
            else load_manifest(workspace, query_set.corpus_id).n_documents
        )
    except CdpError:
        return None
    return min(total, limit) if isinstance(limit, int) else total


def list_incomplete(workspace: Workspace, names: Iterable[str]) -> list[Completeness]:
    """Those of the query sets (by id or name, empty ones skipped) that are not whole."""
    checks = [check(workspace, query_sets.resolve_query_set(workspace, name)) for name in dict.fromkeys(names) if name]
    return [item for item in checks if not item.complete]


def require(workspace: Workspace, names: Iterable[str], allow_incomplete: bool) -> None:
    """ConfigError for the first of the query sets that is not whole, unless someone said yes to that."""
    if allow_incomplete:
        return
    for item in list_incomplete(workspace, names):
        raise ConfigError(
            f"{item.sentence} Nothing is trained on it unasked.",
            hint=f"{item.next_step} Or train on what is there: {FLAG}.",
        )
