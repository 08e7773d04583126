"""What stands behind a number: the documents of a query set with their values, and the scored pairs of one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cdp import query_sets
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.metrics.measures.self_bleu import bleu_against_others
from cdp.metrics.report import document_pairs
from cdp.metrics.tokens import tokens
from cdp.services import metrics
from cdp.services.metrics import QuickMetrics

MOST_DOCUMENTS = 500
"""A table of documents shows so many at most: those with the highest and those with the lowest values."""


@dataclass(frozen=True)
class DocumentValues:
    """One document of a query set; None where a measure is not defined or was not measured."""

    document_id: str
    self_bleu: float | None
    ce: float | None
    cw: float | None


@dataclass(frozen=True)
class ScoredQueries:
    """The queries of a document, each with its BLEU against the others (None for a single one), and the scored pairs,
    highest first. ``threshold`` is the score above which a pair counts as paraphrases.
    """

    queries: list[str]
    bleu: list[float | None]
    pairs: list[tuple[float, str, str]]
    threshold: float | None


def list_documents(
    workspace: Workspace, measured: QuickMetrics, result: dict[str, Any] | None, *, by: str = "self_bleu"
) -> list[DocumentValues]:
    """The documents with their values, the highest by ``by`` (``self_bleu`` or ``ce``) first, undefined ones last."""
    path = query_sets.files(workspace, measured.query_set).measures / measured.kept
    question = ("documents", result and result["job_id"], by)
    return ANSWERS.get(path, question, lambda: _documents(workspace, measured, result, by))


def _documents(
    workspace: Workspace, measured: QuickMetrics, result: dict[str, Any] | None, by: str
) -> list[DocumentValues]:
    columns = metrics.per_document(workspace, measured)
    ratios: dict[str, float | None] = {}
    if result is not None:
        theirs = result["per_document"]
        ratios = dict(zip(theirs["document_id"], theirs[result["scorer"]["measure"]], strict=True))
    rows = [
        DocumentValues(name, _defined(bleu), ratios.get(name), _defined(cw))
        for name, bleu, cw in zip(
            columns["document_id"].tolist(), columns["self_bleu"].tolist(), columns["cw"].tolist(), strict=True
        )
    ]

    def order(row: DocumentValues) -> tuple[bool, float, str]:
        value = row.ce if by == "ce" else row.self_bleu
        return value is None, -(value or 0.0), row.document_id

    rows.sort(key=order)
    if len(rows) <= MOST_DOCUMENTS:
        return rows
    return [*rows[: MOST_DOCUMENTS // 2], *rows[-MOST_DOCUMENTS // 2 :]]


def document_queries(
    workspace: Workspace, query_set: str, document_id: str, result: dict[str, Any] | None
) -> ScoredQueries:
    """The queries of one document and, from a metric job's result, its scored pairs."""
    queries = ANSWERS.get(
        query_sets.files(workspace, query_set).queries,
        ("queries", document_id),
        lambda: next(
            (line.queries for line in query_sets.read_queries(workspace, query_set) if line.document_id == document_id),
            [],
        ),
    )
    bleu: list[float | None] = [None] * len(queries)
    if len(queries) > 1:
        bleu = list(bleu_against_others([tokens(query) for query in queries]))
    if result is None:
        return ScoredQueries(queries, bleu, [], None)
    measured = queries[: result["config"].get("per_doc")]
    pairs = document_pairs(workspace.job(result["job_id"]) / "results", document_id, measured)
    return ScoredQueries(queries, bleu, pairs, result["scorer"]["threshold"])


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
