"""A query set made from another by leaving out or rewriting queries: what a leak, a filter or a review leaves.

The set itself stays as it is: other runs were made from it. The new one names it under ``made_from``, with its hash,
and says under ``without`` why it is shorter, so that what was trained on it leads back.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, append_jsonl, now, read_jsonl, sha256_file, slug
from cdp.query_sets import store
from cdp.query_sets.imports import BLOCK, install
from cdp.query_sets.store import DocumentQueries, Files, QuerySet

ONE_PER_QUERY = ("queries", "sources", "negatives", "notes", "logprobs", "passages", "teacher")
"""The lists of a line that say something of each of its queries, in their order."""

Change = Callable[[DocumentQueries], Sequence[str | None]]
"""What becomes of the queries of a document: each as it is or rewritten, None for one that is left out."""


Lists = Callable[[DocumentQueries], Mapping[str, Sequence[Any]]]
"""What is to be stored of a document's queries beside them: lists with an item for each, by their names."""


@dataclasses.dataclass(frozen=True)
class Derived:
    """The new set, how many queries it lacks and how many are written otherwise."""

    query_set: QuerySet
    dropped: int
    rewritten: int


def derive(
    workspace: Workspace,
    query_set: QuerySet,
    change: Change,
    name: str,
    facts: Mapping[str, Any],
    *,
    beside: Iterable[Path] = (),
    of_each: Lists | None = None,
) -> Derived:
    """The set that ``change`` makes of ``query_set``. A document that loses all its queries has no line in it.

    ``facts`` are added to its parameters; files ``beside`` are copied into its folder; ``of_each`` gives what is known
    of each query beside, as its hard negatives. InputError if nothing would stay.
    """
    source = store.files(workspace, query_set.id)
    parent_hash = store.content_hash(workspace, query_set)
    with staging(workspace.queries) as folder:
        copied = Files(folder / "set")
        copied.folder.mkdir()
        dropped = rewritten = 0
        block: list[dict[str, Any]] = []
        gone: set[str] = set()
        kept: set[str] = set()
        for line in store.iter_lines(workspace, query_set.id):
            document = store.document_queries(line)
            texts = change(document)
            if of_each is not None:
                line |= of_each(document)
            stays = [at for at, text in enumerate(texts) if text is not None]
            dropped += len(texts) - len(stays)
            rewritten += sum(texts[at] != document.queries[at] for at in stays)
            if source.rankings.exists():
                kept |= {text for text in texts if text is not None}
                gone |= set(document.queries)
            lists = [key for key in ONE_PER_QUERY if len(line.get(key) or ()) == len(texts)]
            line.pop("usage", None)  # it was paid once, by the job that wrote the set
            if stays:
                changed = {key: [line[key][at] for at in stays] for key in lists}
                block.append({**line, **changed, "queries": [texts[at] for at in stays]})
            if len(block) >= BLOCK:
                append_jsonl(copied.queries, block)
                block = []
        append_jsonl(copied.queries, block)
        totals = store.count(copied.queries) if copied.queries.exists() else None
        if totals is None or not totals.n_queries:
            raise InputError(f"Nothing of {query_set.name} would stay.", hint="Use other queries.")
        # As for an import: the hash is over ids and queries; with negatives, over the whole lines.
        named = query_set.hard_negatives or facts.get("hard_negatives")
        content_hash = sha256_file(copied.queries)[:16] if named else totals.content_hash
        for path in (source.failures, *beside):
            if path.exists():
                shutil.copyfile(path, copied.folder / path.name)
        if source.rankings.exists():  # what teachers ranked for a query that is gone would be trained on all the same
            rows = (row for row in read_jsonl(source.rankings) if row.get("query") not in gone - kept)
            append_jsonl(copied.rankings, rows)
        made_from = {"made_from": query_set.id, "made_from_hash": parent_hash}
        copy = dataclasses.replace(
            query_set,
            id=f"{slug(name)}-{content_hash[:8]}",
            name=name,
            created=now(),
            n_documents=totals.n_documents,
            n_queries=totals.n_queries,
            content_hash=content_hash if query_set.complete else "",
            parameters={**query_set.parameters, **made_from, **facts},
        )
        return Derived(install(workspace, copy, copied.folder), dropped, rewritten)


def leave_out(
    workspace: Workspace,
    query_set: QuerySet,
    drop: Callable[[Sequence[str]], Sequence[bool]],
    name: str,
    reason: Mapping[str, Any],
) -> tuple[QuerySet, int]:
    """The copy, and how many queries it lacks; the set itself and 0 where there is nothing to leave out.

    ``drop`` says of the queries of a document which ones go. ``reason`` stands in the copy's parameters under
    ``without``, with their number.
    """
    n = sum(sum(map(bool, drop(line.queries))) for line in store.read_queries(workspace, query_set.id))
    if not n:
        return query_set, 0

    def stays(document: DocumentQueries) -> list[str | None]:
        gone = drop(document.queries)
        return [None if gone[at] else text for at, text in enumerate(document.queries)]

    derived = derive(workspace, query_set, stays, name, {"without": {**reason, "queries": n}})
    return derived.query_set, derived.dropped


def find_filtered(workspace: Workspace, query_set: QuerySet, text: str) -> QuerySet | None:
    """The newest set that this filter (``FilterConfig.text``) made of the set as it is now; None if there is none."""
    state = store.content_hash(workspace, query_set)
    for other in store.list_query_sets(workspace):
        facts = other.parameters
        if facts.get("made_from") == query_set.id and facts.get("made_from_hash") == state:
            without = facts.get("without")
            if isinstance(without, dict) and without.get("filter") == text and "review" not in facts:
                return other
    return None
