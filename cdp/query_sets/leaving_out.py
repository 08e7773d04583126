"""A copy of a query set without some of its queries. The set itself stays as it is: other runs were made from it."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cdp.base.errors import InputError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, append_jsonl, now, sha256_file, slug
from cdp.query_sets import store
from cdp.query_sets.imports import BLOCK, install
from cdp.query_sets.store import Files, QuerySet

ONE_PER_QUERY = ("queries", "sources", "negatives", "notes", "logprobs")
"""The lists of a line that say something of each of its queries, in their order."""


def leave_out(
    workspace: Workspace,
    query_set: QuerySet,
    drop: Callable[[Sequence[str]], Sequence[bool]],
    name: str,
    reason: Mapping[str, Any],
) -> tuple[QuerySet, int]:
    """The copy, and how many queries it lacks; the set itself and 0 where there is nothing to leave out.

    ``drop`` says of the queries of a document which ones go; a document that loses all has no line. ``reason`` stands
    in the copy's parameters under ``without``, beside the set that it was made from. InputError if nothing would stay.
    """
    source = store.files(workspace, query_set.id)
    with staging(workspace.queries) as folder:
        copied = Files(folder / "set")
        copied.folder.mkdir()
        n = 0
        block: list[dict[str, Any]] = []
        for line in store.iter_lines(workspace, query_set.id):
            texts = [query if isinstance(query, str) else str(query.get("text", "")) for query in line["queries"]]
            gone = drop(texts)
            stays = [at for at in range(len(texts)) if not gone[at]]
            n += len(texts) - len(stays)
            lists = [key for key in ONE_PER_QUERY if len(line.get(key) or ()) == len(texts)]
            line.pop("usage", None)  # it was paid once, by the job that wrote the set
            if stays:
                block.append({**line, **{key: [line[key][at] for at in stays] for key in lists}})
            if len(block) >= BLOCK:
                append_jsonl(copied.queries, block)
                block = []
        append_jsonl(copied.queries, block)
        if not n:
            return query_set, 0
        totals = store.count(copied.queries)
        if not totals.n_queries:
            raise InputError(f"Nothing of {query_set.name} would stay.", hint="Use other queries.")
        # As for an import: the hash is over ids and queries; with negatives, over the whole lines.
        content_hash = sha256_file(copied.queries)[:16] if query_set.hard_negatives else totals.content_hash
        for beside in (source.failures, source.rankings):
            if beside.exists():
                shutil.copyfile(beside, copied.folder / beside.name)
        copy = dataclasses.replace(
            query_set,
            id=f"{slug(name)}-{content_hash[:8]}",
            name=name,
            created=now(),
            n_documents=totals.n_documents,
            n_queries=totals.n_queries,
            content_hash=content_hash if query_set.complete else "",
            parameters={**query_set.parameters, "made_from": query_set.id, "without": {**reason, "queries": n}},
        )
        return install(workspace, copy, copied.folder), n
