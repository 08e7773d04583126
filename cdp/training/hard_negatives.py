"""Hard negatives: documents that look right for a query and are not, used beside the other documents of the batch.

Two kinds of query set have them: those of dragon_s_faithful, whose ``rankings.jsonl`` names the documents at ranks 46
to 50 of each sentence, and imported ones whose rows name documents under ``negatives``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.query_sets.store import RANKINGS
from cdp.training.pairs import PairSet

IMPORTED = "hard_negatives"
"""The manifest's parameter that says how many hard negatives an imported set has."""

AUTOMATIC = 1
"""Hard negatives per pair where the setting is left empty and the query set has them, as DRAGON trains."""

Key = tuple[str, str]


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
            f"The query set {pairs.query_set_id} has no hard negatives.",
            hint="Leave hard_negatives empty, or use a set of dragon_s_faithful or an import with negatives.",
        )
    index, documents, missing = _documents(pairs, workspace, {n for names in named.values() for n in names})
    found = np.full((len(pairs), width), -1, dtype=np.int64)
    for row, query_id in enumerate(pairs.query_ids):
        known = [index[name] for name in named.get(query_id, ()) if name in index][:width]
        found[row, : len(known)] = known
    dropped = dict(pairs.dropped)
    if missing:
        dropped["hard negatives that are unknown or empty documents"] = missing
    return replace(pairs, documents=documents, negatives=found, dropped=dropped)


def _named(pairs: PairSet, workspace: Workspace) -> dict[str, list[str]]:
    """Query id → the ids of its hard negatives, in their order, without its own document."""
    folder = workspace.query_set(pairs.query_set_id)
    found: dict[str, list[str]] = {}
    if (folder / RANKINGS).is_file():
        by_text: dict[Key, str] = {
            (query_id.rsplit("-", 1)[0], text): query_id
            for query_id, text in zip(pairs.query_ids, pairs.queries, strict=True)
        }
        for line in read_jsonl(folder / RANKINGS):
            for document_id in line["positives"]:
                query_id = by_text.get((document_id, line["query"].strip()))
                if query_id is not None:
                    _extend(found.setdefault(query_id, []), line["negatives"], document_id)
    elif (read_json(folder / "manifest.json").get("parameters") or {}).get(IMPORTED):
        wanted = set(pairs.query_ids)
        for line in read_jsonl(folder / "queries.jsonl"):
            document_id = str(line["document_id"])
            for place, names in enumerate(line.get("negatives") or (), start=1):
                if (query_id := f"{document_id}-{place}") in wanted:
                    _extend(found.setdefault(query_id, []), names, document_id)
    return found


def _extend(known: list[str], names: Iterable[Any], own: str) -> None:
    known.extend(name for name in dict.fromkeys(map(str, names)) if name != own and name not in known)


def _documents(pairs: PairSet, workspace: Workspace, wanted: set[str]) -> tuple[dict[str, int], list[str], int]:
    """Document id → its index, the documents with those that are new behind, and how many names lead nowhere."""
    from cdp.corpus import iter_documents

    documents = list(pairs.documents)
    by_content = {content: place for place, content in enumerate(documents)}
    index: dict[str, int] = {}
    for document in iter_documents(workspace, pairs.corpus_id):
        if document.id in wanted and document.content.strip():
            if document.content not in by_content:
                by_content[document.content] = len(documents)
                documents.append(document.content)
            index[document.id] = by_content[document.content]
    return index, documents, len(wanted) - len(index)
