"""Hard negatives: documents that look right for a query and are not, used beside the other documents of the batch.

Two kinds of query set have them: those of dragon_s_faithful, whose ``rankings.jsonl`` names the documents at ranks 46
to 50 of each sentence, and imported ones whose rows name documents under ``negatives``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from cdp import query_sets
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.training.pairs import PairSet

AUTOMATIC = 1
"""Hard negatives per pair where the setting is left empty and the query set has them, as DRAGON trains."""


def with_negatives(pairs: PairSet, workspace: Workspace, wanted: int | None) -> PairSet:
    """``pairs`` with the first ``wanted`` hard negatives of each query, or as they are where there are none.

    None takes one where the query set has any. Names of documents that the corpus does not have, or that are empty,
    are left out and counted. ConfigError where some were asked for and the set has none.
    """
    if wanted == 0:
        return pairs
    named = _named(pairs, workspace)
    most = max((len(names) for names in named.values()), default=0)
    width = min(most, AUTOMATIC if wanted is None else wanted)
    if width == 0:
        if wanted is None:
            return pairs
        raise ConfigError(
            f"The query set {pairs.query_set.id} has no hard negatives.",
            hint="Leave hard_negatives empty, or use a set of dragon_s_faithful or an import with negatives.",
        )
    index, documents, missing = _documents(pairs, workspace, {n for names in named.values() for n in names})
    negatives = np.full((len(pairs), width), -1, dtype=np.int64)
    for row, query_id in enumerate(pairs.query_ids):
        rows = [index[name] for name in named.get(query_id, ()) if name in index][:width]
        negatives[row, : len(rows)] = rows
    dropped = dict(pairs.dropped)
    if missing:
        dropped["hard negatives that are unknown or empty documents"] = missing
    return replace(pairs, documents=documents, negatives=negatives, dropped=dropped)


def with_teacher(pairs: PairSet, workspace: Workspace) -> PairSet:
    """``pairs`` with the cross-encoder's scores of each query's document and its hard negatives as soft labels.

    ConfigError where the set has none.
    """
    if pairs.negatives is None or not pairs.query_set.parameters.get("teacher"):
        raise ConfigError(
            f"The query set {pairs.query_set.id} has no soft labels.",
            hint="Make a set that has them: queries mine SET --cross-encoder MODEL. Or set distil to 0.",
        )
    rows = {query_id: row for row, query_id in enumerate(pairs.query_ids)}
    teacher = np.full((len(pairs), 1 + pairs.negatives.shape[1]), np.nan)
    for line in query_sets.read_queries(workspace, pairs.query_set.id):
        for (query_id, _), scores in zip(line.with_ids(), line.teacher, strict=False):
            row = rows.get(query_id)
            if row is None or not scores:
                continue
            present = 1 + int((pairs.negatives[row] >= 0).sum())
            if present == min(len(scores), teacher.shape[1]):  # else a document has gone, and labels would shift
                teacher[row, :present] = scores[:present]
    return replace(pairs, teacher=teacher)


def _named(pairs: PairSet, workspace: Workspace) -> dict[str, list[str]]:
    """Query id → the ids of its hard negatives, in their order, without its own document."""
    named: dict[str, list[str]] = {}
    if pairs.query_set.hard_negatives:
        wanted = set(pairs.query_ids)
        for line in query_sets.read_queries(workspace, pairs.query_set.id):
            for (query_id, _), names in zip(line.with_ids(), line.negatives, strict=False):
                if query_id in wanted:
                    _extend(named.setdefault(query_id, []), names, line.document_id)
        return named
    if not query_sets.files(workspace, pairs.query_set.id).rankings.exists():
        return {}
    by_text = {
        (query_sets.document_of(query_id), text): query_id
        for query_id, text in zip(pairs.query_ids, pairs.queries, strict=True)
    }
    for ranking in query_sets.read_rankings(workspace, pairs.query_set.id):
        for document_id in ranking.positives:
            query_id = by_text.get((document_id, ranking.query.strip()), "")
            if query_id:
                _extend(named.setdefault(query_id, []), ranking.negatives, document_id)
    return named


def _extend(negatives: list[str], names: Iterable[str], own: str) -> None:
    negatives.extend(name for name in dict.fromkeys(names) if name != own and name not in negatives)


def _documents(pairs: PairSet, workspace: Workspace, wanted: set[str]) -> tuple[dict[str, int], list[str], int]:
    """Document id → its index, the documents with those that are new behind, and how many names lead nowhere."""
    from cdp.corpus import iter_documents

    documents = list(pairs.documents)
    by_content = {content: index for index, content in enumerate(documents)}
    index: dict[str, int] = {}
    for document in iter_documents(workspace, pairs.query_set.corpus_id):
        if document.id in wanted and document.content.strip():
            if document.content not in by_content:
                by_content[document.content] = len(documents)
                documents.append(document.content)
            index[document.id] = by_content[document.content]
    return index, documents, len(wanted) - len(index)
