"""What is known of every single query of a set without a model: length, CW, format, whether it repeats another, flags.

One pass over the set and its documents, a second per 15,000 queries. Kept beside the set under its content, in columns
of one value per query, so that a page filters a large set without reading its texts again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.errors import CdpError
from cdp.base.registry import registry
from cdp.base.workspace import Workspace, sha256_text
from cdp.complexity import count_content_words
from cdp.corpus import iter_documents, load_manifest
from cdp.metrics.quick import Report
from cdp.query_sets import QuerySet, measured
from cdp.query_sets.nonsense import FORMATS, REASONS, nonsense, query_format

VERSION = "1"
KIND = "queries"
DUPLICATE = "repeats an earlier query of its document"

CHUNK = 512


@dataclass(frozen=True)
class QueryTable:
    """Columns over the n queries of a set, in its order, and over its documents.

    ``document_ids`` (n_documents,) and ``offset`` (n_documents,), where each one's line begins; ``document`` (n,) is
    the index of a query's document, ``position`` (n,) its place there from 1. ``words`` and ``cw`` count, ``format``
    (n,) is an index into ``FORMATS``; ``duplicate`` (n,) marks what repeats an earlier query of its document but for
    case, spacing and closing marks; ``flags`` (n,) has the bit i set where the i-th of ``REASONS`` holds.
    """

    document_ids: NDArray[np.str_]
    offset: NDArray[np.int64]
    document: NDArray[np.int32]
    position: NDArray[np.int32]
    words: NDArray[np.int32]
    cw: NDArray[np.int32]
    format: NDArray[np.int8]
    duplicate: NDArray[np.bool_]
    flags: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.document)

    @cached_property
    def ids(self) -> list[str]:
        """The id of each query."""
        names = self.document_ids.tolist()
        pairs = zip(self.document.tolist(), self.position.tolist(), strict=True)
        return [query_sets.query_id(names[document], position) for document, position in pairs]

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """(n,): neither flagged nor a duplicate."""
        return ~self.duplicate & (self.flags == 0)

    def flagged(self, reason: str) -> NDArray[np.bool_]:
        """(n,): where this one of ``REASONS`` holds."""
        return (self.flags >> list(REASONS).index(reason) & 1).astype(bool)

    def reasons(self, row: int) -> list[str]:
        """The reasons that hold for one query."""
        return [name for bit, name in enumerate(REASONS) if self.flags[row] >> bit & 1]


def file_of(workspace: Workspace, query_set: QuerySet) -> Path:
    """Where the table of the set, as it is now, is kept."""
    return measured.columns_file(workspace, query_set.id, KIND, _key(workspace, query_set))


def _key(workspace: Workspace, query_set: QuerySet) -> str:
    return sha256_text(KIND, VERSION, query_sets.state(workspace, query_set), _language(workspace, query_set))[:16]


def load(workspace: Workspace, query_set: QuerySet) -> QueryTable | None:
    """The table, None where it was not made of the set as it is now."""
    columns = measured.load_columns(workspace, query_set.id, KIND, _key(workspace, query_set))
    if columns is None or set(columns) != set(QueryTable.__dataclass_fields__):
        return None
    return QueryTable(**columns)


def make(workspace: Workspace, query_set: QuerySet, report: Report | None = None) -> QueryTable | None:
    """Make the table and keep it. None if ``report`` said to stop."""
    key = _key(workspace, query_set)
    table = _made(workspace, query_set, report)
    if table is None:
        return None
    measured.save_columns(
        workspace, query_set.id, KIND, key, {name: getattr(table, name) for name in QueryTable.__dataclass_fields__}
    )
    return table


def _made(workspace: Workspace, query_set: QuerySet, report: Report | None) -> QueryTable | None:
    language, prompt = _language(workspace, query_set), prompt_of(query_set)
    shared, contents = query_sets.shared_queries(workspace, query_set.id), _Contents(workspace, query_set)
    bits = {name: 1 << at for at, name in enumerate(REASONS)}
    names: list[str] = []
    offsets: list[int] = []
    rows: list[tuple[int, int, int, int, bool, int]] = []
    texts: list[str] = []
    counts: list[NDArray[np.int64]] = []
    for offset, line in query_sets.iter_offsets(workspace, query_set.id):
        if report is not None and len(names) % CHUNK == 0 and not report(len(names), query_set.n_documents):
            return None
        content, seen = contents.of(line.document_id), set[str]()
        for position, text in enumerate(line.queries, 1):
            plain = query_sets.plain_form(text)
            reasons = nonsense(text, content, prompt=prompt, n_documents=len(shared.get(plain, ())))
            kind, repeats = FORMATS.index(query_format(text)), bool(plain) and plain in seen
            rows.append((len(names), position, len(text.split()), kind, repeats, sum(bits[name] for name in reasons)))
            seen.add(plain)
        names.append(line.document_id)
        offsets.append(offset)
        texts += line.queries
        if len(texts) >= CHUNK:
            counts.append(count_content_words(texts, language))
            texts = []
    counts.append(count_content_words(texts, language))
    documents, positions, words, kinds, duplicates, flags = np.array(rows, np.int64).reshape(len(rows), 6).T
    return QueryTable(
        document_ids=np.array(names, np.str_),
        offset=np.array(offsets, np.int64),
        document=documents.astype(np.int32),
        position=positions.astype(np.int32),
        words=words.astype(np.int32),
        cw=np.concatenate(counts).astype(np.int32),
        format=kinds.astype(np.int8),
        duplicate=duplicates.astype(bool),
        flags=flags.astype(np.int32),
    )


def prompt_of(query_set: QuerySet) -> str:
    """Return the prompt of a set: the user's own, or the method's; empty if unknown."""
    own = str(query_set.parameters.get("prompt") or "")
    methods = registry("method")
    known = query_set.kind == "synthetic" and query_set.method in methods
    return own or (str(getattr(methods[query_set.method], "template", "")) if known else "")


def _language(workspace: Workspace, query_set: QuerySet) -> str:
    try:
        return query_set.language or load_manifest(workspace, query_set.corpus_id).counted_language
    except CdpError:  # the corpus was deleted
        return query_set.language or "en"


class _Contents:
    """Titles and texts of a set's documents. A whole set has the order of the corpus: one pass, a row group at once."""

    def __init__(self, workspace: Workspace, query_set: QuerySet) -> None:
        self._stream: Iterator[tuple[str, str]] = iter(())
        self._known: dict[str, str] = {}
        with suppress(CdpError):  # the corpus was deleted
            documents = iter_documents(workspace, query_set.corpus_id)
            load_manifest(workspace, query_set.corpus_id)
            self._stream = ((document.id, document.content) for document in documents)
        if not query_set.complete:  # what is still being written stands in the order in which it was answered
            self._known = dict(self._stream)

    def of(self, document_id: str) -> str:
        """Return a document's content; empty if the corpus was deleted or lacks it."""
        known = self._known.get(document_id)
        return next((text for name, text in self._stream if name == document_id), "") if known is None else known
