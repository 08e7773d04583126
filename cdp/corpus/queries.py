"""The queries that came with the documents, kept in a temporary Parquet file until services import them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.corpus.documents import DocumentFile

_SCHEMA = pa.schema([("document_id", pa.string()), ("queries", pa.list_(pa.string()))])


class FoundQueries:
    """(document id, its queries) for each document that has some, once each, in the corpus' order.

    Can be iterated any number of times while the ReadResult is open. ``len`` is the number of those documents,
    ``n_queries`` that of the queries. Only where rows repeated a document are all queries held in memory at once.
    """

    def __init__(
        self, path: Path | None, documents: DocumentFile, n_documents: int, n_queries: int, *, repeated: bool
    ) -> None:
        self._path, self._documents, self._n_documents, self._repeated = path, documents, n_documents, repeated
        self.n_queries = n_queries

    def __len__(self) -> int:
        return self._n_documents

    def __iter__(self) -> Iterator[tuple[str, list[str]]]:
        return self._merged() if self._repeated else self._rows()

    def _merged(self) -> Iterator[tuple[str, list[str]]]:
        merged: dict[str, list[str]] = {}
        for document_id, queries in self._rows():
            merged.setdefault(document_id, []).extend(queries)
        for table in self._documents.batches(columns=["id"]):
            for document_id in table.column("id").to_pylist():
                if document_id in merged:
                    yield document_id, merged.pop(document_id)

    def _rows(self) -> Iterator[tuple[str, list[str]]]:
        if self._path is None:
            return
        with pq.ParquetFile(self._path) as file:
            for batch in file.iter_batches(1024):
                ids, queries = (batch.column(name).to_pylist() for name in _SCHEMA.names)
                yield from zip(ids, queries, strict=True)


class QueryWriter:
    """Writes queries through to disk. The file is only made once there is a query."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._n_documents = 0
        self._n_queries = 0
        self._repeated = False

    def write(self, rows: list[tuple[str, list[str]]], *, repeated: bool) -> None:
        """``repeated``: some of these documents had queries before; iteration will merge them."""
        if not rows:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, _SCHEMA, compression="zstd")
        ids, queries = [row[0] for row in rows], [row[1] for row in rows]
        self._writer.write_table(pa.table([ids, queries], schema=_SCHEMA))
        self._n_documents += len(rows)
        self._n_queries += sum(map(len, queries))
        self._repeated |= repeated

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def finish(self, documents: DocumentFile) -> FoundQueries:
        """What was written, beside the documents it belongs to."""
        self.close()
        if self._writer is None:
            return FoundQueries(None, documents, 0, 0, repeated=False)
        n_documents = self._n_documents
        if self._repeated:
            ids = pq.read_table(self._path, columns=["document_id"]).column("document_id")
            n_documents = len(ids.unique())
        return FoundQueries(self._path, documents, n_documents, self._n_queries, repeated=self._repeated)
