"""The measures of a query set that need no model, kept beside it until it changes.

They take a second per 12,000 queries. So each writer of a set measures it at its end, and the stored values are read by
every page: ``queries/<id>/measures/<key>.json`` and, with a value per document, ``<key>.npz``. The key is over the
content of the set (and of the human queries) and the language.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base.errors import InputError, WorkspaceError
from cdp.base.failures import Failures
from cdp.base.records import checked
from cdp.base.workspace import Workspace, read_json_or_none, sha256_text, write_bytes, write_json
from cdp.complexity import CwProfile, profile
from cdp.corpus import load_manifest
from cdp.metrics.measures import MEASURES
from cdp.metrics.query_set import IdWithQueries, MetricValue, measure_query_set
from cdp.query_sets import QuerySet
from cdp.query_sets.measured import quick_file

VERSION = "4"

DOCUMENTS_A_REPORT = 500

# Told how many documents of how many are done; returns whether to go on.
Report = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class QuickPlan:
    """What is measured, and where it is kept."""

    workspace: Workspace
    query_set: QuerySet
    human: str
    language: str
    path: Path

    @property
    def columns(self) -> Path:
        """Where the values of each document are kept."""
        return self.path.with_suffix(".npz")

    def load(self) -> dict[str, Any] | None:
        """The values as they were measured before, None where they were not."""
        values = read_json_or_none(self.path)
        return values if _whole(values, self.path) and self.columns.exists() else None


def _whole(values: Any, path: Path) -> bool:
    """Return False for a damaged file of stored values, which is measured again."""
    try:
        checked(CwProfile, values["cw"], path)
        found = {checked(MetricValue, value, path).name for value in values["values"]}
        plugged_in = {name for name, measure in MEASURES.items() if measure.of_document}
        return isinstance(values["n_empty"], int) and plugged_in <= found <= set(MEASURES)
    except (TypeError, KeyError, WorkspaceError):
        return False


def plan(workspace: Workspace, query_set: str, *, human: str = "", language: str = "") -> QuickPlan:
    """What a measurement of this set comes to. ``language`` is the corpus's if empty; NotFoundError for no such set."""
    measured = query_sets.load(workspace, query_set)
    language = language or load_manifest(workspace, measured.corpus_id).counted_language
    reference = query_sets.state(workspace, query_sets.load(workspace, human)) if human else ""
    key = sha256_text(VERSION, query_sets.state(workspace, measured), reference, language)
    return QuickPlan(workspace, measured, human, language, quick_file(workspace, query_set, key[:16]))


def measure(plan: QuickPlan, report: Report | None = None, failures: Failures | None = None) -> dict[str, Any] | None:
    """Self-BLEU, CW and, given human queries, Len-Sim, measured and kept. None if ``report`` said to stop.

    InputError for a set without queries. Documents that cannot be measured go to ``failures``; what is kept says how
    many they are, and which the first of them.
    """
    failures = failures or Failures()
    human = None
    if plan.human:
        human = {line.document_id: line.queries for line in query_sets.read_queries(plan.workspace, plan.human)}
    try:
        measured = measure_query_set(_documents(plan, report), language=plan.language, human=human, failures=failures)
    except _StoppedError:
        return None
    if measured.cw.size == 0:
        raise InputError(
            f"The query set {plan.query_set.id} has no queries yet.", hint="Generate or import some first."
        )
    values = {
        "values": [asdict(value) for value in measured.values],
        "cw": asdict(profile(measured.cw)),
        "n_empty": measured.n_empty,
        "n_failed": measured.n_failed,
        "failed": [{name: line[name] for name in ("id", "reason")} for line in failures.first],
    }
    content = io.BytesIO()
    ids = np.array(measured.document_ids, dtype=np.str_)
    np.savez(content, document_id=ids, **measured.per_document)  # type: ignore[arg-type]
    try:
        write_bytes(plan.columns, content.getvalue())
        write_json(plan.path, values)
    except WorkspaceError:
        if os.access(plan.workspace.root, os.W_OK):
            raise
        # In a read-only workspace the values are shown and measured again next time.
    return values


class _StoppedError(Exception):
    """The report said to stop."""


def _documents(plan: QuickPlan, report: Report | None) -> Iterator[IdWithQueries]:
    """The documents of a plan's set, with a report after every so many of them."""
    total = plan.query_set.n_documents
    for done, line in enumerate(query_sets.read_queries(plan.workspace, plan.query_set.id)):
        if report is not None and done % DOCUMENTS_A_REPORT == 0 and not report(done, total):
            raise _StoppedError
        yield line.document_id, line.queries
