"""The measures of a query set that need no model, kept beside it until it changes, and their key.

They take a second per 12,000 queries. So each writer of a set measures it at its end, and every page reads
``queries/<id>/measures/<key>.json``. The key is over the content of the set and of the human queries, and the language.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from cdp import query_sets
from cdp.base.errors import InputError, WorkspaceError
from cdp.base.failures import Failures
from cdp.base.file_cache import ANSWERS
from cdp.base.progress import Progress, silent
from cdp.base.records import checked
from cdp.base.workspace import Workspace, read_json, sha256_text, write_json
from cdp.complexity import CwProfile, profile
from cdp.corpus import load_manifest
from cdp.metrics.measures import MEASURES
from cdp.metrics.query_set import IdWithQueries, MetricValue, measure_query_set
from cdp.query_sets import QuerySet

VERSION = "5"

DOCUMENTS_A_REPORT = 500


@dataclass(frozen=True)
class QuickMeasures:
    """Self-BLEU, CW and, given human queries, Len-Sim of a query set, as they are kept in the file ``kept``.

    ``measures`` are the values at the full Q/Doc, ``by_per_doc[M]`` Self-BLEU of the first M queries, ``documents``
    Self-BLEU of each document (None for a single query). ``failed`` are the id and reason of the first of the
    ``n_failed`` documents that could not be measured.
    """

    query_set: str
    language: str
    kept: str
    measures: list[MetricValue]
    by_per_doc: dict[int, float]
    cw: CwProfile
    documents: dict[str, float | None]
    n_empty: int
    n_failed: int
    failed: list[dict[str, Any]]


def quick(
    workspace: Workspace,
    query_set: QuerySet,
    *,
    human: QuerySet | None = None,
    watch: Progress = silent,
    failures: Failures | None = None,
) -> QuickMeasures:
    """Return what is kept for the set as it is now, or measure and keep it.

    InputError for a set without queries. What ``watch`` raises ends the
    measuring. Documents that cannot be measured go to ``failures``.
    """
    language = load_manifest(workspace, query_set.corpus_id).counted_language
    reference = query_sets.state(workspace, human) if human else ""
    plugged_in = sorted(name for name, measure in MEASURES.items() if measure.of_document)
    key = sha256_text(VERSION, query_sets.state(workspace, query_set), reference, language, *plugged_in)[:16]
    path = query_sets.files(workspace, query_set.id).measures / f"{key}.json"
    with suppress(WorkspaceError):  # none yet, or damaged
        return ANSWERS.get(path, "quick", lambda: checked(QuickMeasures, read_json(path), path))

    failures = failures or Failures()
    known = {line.document_id: line.queries for line in query_sets.read_queries(workspace, human.id)} if human else None

    def documents() -> Iterator[IdWithQueries]:
        for done, line in enumerate(query_sets.read_queries(workspace, query_set.id)):
            if done % DOCUMENTS_A_REPORT == 0:
                watch("measuring", done, query_set.n_documents)
            yield line.document_id, line.queries

    measured = measure_query_set(documents(), language=language, human=known, failures=failures)
    if measured.cw.size == 0:
        raise InputError(f"The query set {query_set.id} has no queries yet.", hint="Generate or import some first.")
    most = max(value.per_doc for value in measured.values)
    of_each = zip(measured.document_ids, measured.per_document["self_bleu"].tolist(), strict=True)
    found = QuickMeasures(
        query_set=query_set.id,
        language=language,
        kept=path.name,
        measures=[value for value in measured.values if value.per_doc == most],
        by_per_doc={v.per_doc: v.value for v in measured.values if v.name == "self_bleu" and v.value is not None},
        cw=profile(measured.cw),
        documents={name: None if math.isnan(value) else value for name, value in of_each},
        n_empty=measured.n_empty,
        n_failed=measured.n_failed,
        failed=[{name: line[name] for name in ("id", "reason")} for line in failures.first],
    )
    try:
        write_json(path, asdict(found))
    except WorkspaceError:
        if os.access(workspace.root, os.W_OK):
            raise
        # In a read-only workspace the values are shown and measured again next time.
    return found
