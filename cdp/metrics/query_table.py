"""What is known of every single query of a set without a model: length, CW, format, whether it repeats another, flags.

One pass over the set and its documents, a second per 15,000 queries. Kept beside the set under its content, in columns
of one value per query, so that a page filters a large set without reading its texts again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.registry import registry
from cdp.base.workspace import Workspace, sha256_text
from cdp.complexity import count_content_words
from cdp.corpus import iter_documents, load_manifest
from cdp.metrics import spans
from cdp.metrics.spans import Report, Span, Team
from cdp.query_sets import DocumentQueries, QuerySet, measured
from cdp.query_sets.formats import FORMATS, query_format
from cdp.query_sets.nonsense import MANY_DOCUMENTS, REASONS, nonsense

VERSION = "1"
KIND = "queries"
DUPLICATE = "repeats an earlier query of its document"

CHUNK = 512

_MARKS = " ?!.,;:…\"'`“”‘’«»„()[]¿¡？！。，、；：؟،"


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


def make(
    workspace: Workspace, query_set: QuerySet, report: Report | None = None, team: Team | None = None
) -> QueryTable | None:
    """The table, made now and kept. None if ``report`` said to stop. Made here, or in parts by a ``team``."""
    key = _key(workspace, query_set)
    parts = None if team is None else partial(_in_parts, team=team, key=key)
    table = (parts or _here)(workspace, query_set, report)
    if table is None:
        return None
    measured.save_columns(
        workspace, query_set.id, KIND, key, {name: getattr(table, name) for name in QueryTable.__dataclass_fields__}
    )
    return table


def _here(workspace: Workspace, query_set: QuerySet, report: Report | None) -> QueryTable | None:
    repeated = _documents_of_each(workspace, query_set)
    rows = _Rows(_language(workspace, query_set), prompt_of(query_set), lambda plain: repeated.get(hash(plain), 1))
    contents = _Contents(workspace, query_set)
    for offset, line in query_sets.iter_offsets(workspace, query_set.id):
        if report is not None and len(rows.names) % CHUNK == 0 and not report(len(rows.names), query_set.n_documents):
            return None
        rows.add(offset, line, contents.of(line.document_id))
    return table_of(rows.names, rows.columns())


def _in_parts(
    workspace: Workspace, query_set: QuerySet, report: Report | None, *, team: Team, key: str
) -> QueryTable | None:
    """The rows by the crew; here, which queries stand for many documents of the whole set."""
    if not query_set.complete or _position(workspace, query_set.id, 0) is None:
        return _here(workspace, query_set, report)  # its lines do not say where in the corpus their documents are
    paths = spans.done_by(
        team, table_span, f"{KIND}-{key}", workspace, query_set.id, query_set.n_documents, report,
        language=_language(workspace, query_set), prompt=prompt_of(query_set),
    )  # fmt: skip
    if paths is None:
        return None
    names: list[str] = []
    parts: list[dict[str, NDArray[Any]]] = []
    for path in paths:
        found = spans.load(path)
        found["document"] += len(names)
        names += spans.from_bytes(found.pop("ids"))
        parts.append(found)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}
    bits = {name: 1 << at for at, name in enumerate(REASONS)}
    says_something = columns["flags"] & (bits["empty"] | bits["no words"]) == 0
    many = _n_documents(columns.pop("plain"), columns["document"]) >= MANY_DOCUMENTS
    columns["flags"][many & says_something] |= bits["same everywhere"]
    spans.forget(paths)
    return table_of(names, columns)


def table_span(span: Span) -> int:
    """The rows of one part of a set; how many lines it has."""
    workspace = Workspace(Path(span.workspace))
    rows = _Rows(span.language, span.prompt, lambda plain: 1)
    start = _position(workspace, span.query_set, span.begin) or 0
    contents = _Contents(workspace, query_sets.load(workspace, span.query_set), start)
    plain: list[bytes] = []
    for offset, line in span.lines():
        rows.add(offset, line, contents.of(line.document_id))
        plain += [
            hashlib.blake2b(plain_form(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
            for text in line.queries
        ]
    spans.save(
        span,
        {
            "ids": spans.as_bytes(rows.names),
            "plain": np.frombuffer(b"".join(plain), dtype="<u8"),
            **rows.columns(),
        },
    )
    return len(rows.names)


def _digest(text: str) -> bytes:
    """Of the plain form, the same in every process."""
    return hashlib.blake2b(plain_form(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _position(workspace: Workspace, query_set_id: str, offset: int) -> int | None:
    """Where in the corpus the document of the line at ``offset`` stands; None where that is not said."""
    try:
        position = query_sets.read_at(workspace, query_set_id, offset).get("position")
    except WorkspaceError:  # there is no line
        return None
    return position if isinstance(position, int) else None


def _n_documents(plain: NDArray[np.uint64], document: NDArray[np.int32]) -> NDArray[np.int64]:
    """For how many documents the plain form of each query stands, (n,)."""
    _, form = np.unique(plain, return_inverse=True)
    pairs = np.unique(np.stack([form.astype(np.int64), document.astype(np.int64)]), axis=1)
    counted: NDArray[np.int64] = np.bincount(pairs[0], minlength=int(form.max(initial=-1)) + 1)[form]
    return counted


class _Rows:
    """The rows of a table as documents go by. ``n_documents`` tells for how many of them a plain form stands."""

    def __init__(self, language: str, prompt: str, n_documents: Callable[[str], int]) -> None:
        self.language, self.prompt, self._n_documents = language, prompt, n_documents
        self.names: list[str] = []
        self._offsets: list[int] = []
        self._rows: list[tuple[int, int, int, int, bool, int]] = []
        self._texts: list[str] = []
        self._counts: list[NDArray[np.int64]] = []
        self._bits = {name: 1 << at for at, name in enumerate(REASONS)}

    def add(self, offset: int, line: DocumentQueries, content: str) -> None:
        seen: set[str] = set()
        for position, text in enumerate(line.queries, 1):
            plain = plain_form(text)
            reasons = nonsense(text, content, prompt=self.prompt, n_documents=self._n_documents(plain))
            flags = sum(self._bits[name] for name in reasons)
            kind = FORMATS.index(query_format(text))
            repeats = bool(plain) and plain in seen
            self._rows.append((len(self.names), position, len(text.split()), kind, repeats, flags))
            seen.add(plain)
            self._texts.append(text)
        self.names.append(line.document_id)
        self._offsets.append(offset)
        if len(self._texts) >= CHUNK:
            self._counts.append(count_content_words(self._texts, self.language))
            self._texts = []

    def columns(self) -> dict[str, NDArray[Any]]:
        """All of a table but its ids."""
        left = count_content_words(self._texts, self.language) if self._texts else np.zeros(0, np.int64)
        columns = np.array(self._rows, dtype=np.int64).reshape(len(self._rows), 6).T
        return {
            "offset": np.array(self._offsets, dtype=np.int64),
            "document": columns[0].astype(np.int32),
            "position": columns[1].astype(np.int32),
            "words": columns[2].astype(np.int32),
            "cw": np.concatenate([*self._counts, left]).astype(np.int32),
            "format": columns[3].astype(np.int8),
            "duplicate": columns[4].astype(bool),
            "flags": columns[5].astype(np.int32),
        }


def table_of(names: list[str], columns: Mapping[str, NDArray[Any]]) -> QueryTable:
    return QueryTable(document_ids=np.array(names, dtype=np.str_), **columns)


def plain_form(text: str) -> str:
    """What two queries share that are the same but for case, spacing and the marks around them."""
    return " ".join(text.casefold().split()).strip(_MARKS)


def prompt_of(query_set: QuerySet) -> str:
    """What the model was asked with: a prompt of one's own, or the method's; empty where nobody knows."""
    own = str(query_set.parameters.get("prompt") or "")
    methods = registry("method")
    known = query_set.kind == "synthetic" and query_set.method in methods
    return own or (str(getattr(methods[query_set.method], "template", "")) if known else "")


def _language(workspace: Workspace, query_set: QuerySet) -> str:
    try:
        return query_set.language or load_manifest(workspace, query_set.corpus_id).counted_language
    except CdpError:  # the corpus is gone
        return query_set.language or "en"


def _documents_of_each(workspace: Workspace, query_set: QuerySet) -> Mapping[int, int]:
    """For how many documents each query stands that stands for several, by the hash of its plain form: of millions of
    queries the texts would not fit."""
    counts: Counter[int] = Counter()
    for line in query_sets.read_queries(workspace, query_set.id):
        counts.update({hash(plain_form(text)) for text in line.queries})
    return {text: n for text, n in counts.items() if n > 1}


class _Contents:
    """Titles and texts of a set's documents. A whole set has the order of the corpus: one pass, a row group at once."""

    def __init__(self, workspace: Workspace, query_set: QuerySet, start: int = 0) -> None:
        self._stream: Iterator[tuple[str, str]] = iter(())
        self._known: dict[str, str] = {}
        with suppress(CdpError):  # the corpus is gone
            documents = iter_documents(workspace, query_set.corpus_id, start=start)
            load_manifest(workspace, query_set.corpus_id)
            self._stream = ((document.id, document.content) for document in documents)
        if not query_set.complete:  # what is still being written stands in the order in which it was answered
            self._known = dict(self._stream)

    def of(self, document_id: str) -> str:
        """Its content; empty where the corpus is gone, or does not have it where it should stand."""
        known = self._known.get(document_id)
        return next((text for name, text in self._stream if name == document_id), "") if known is None else known
