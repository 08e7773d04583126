"""``documents.parquet``, read by row group so that memory stays bounded: searching it, word counts."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cdp.base.errors import WorkspaceError
from cdp.base.records import Document
from cdp.base.text import storable

SCHEMA = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("id", "title", "text")])
ROW_GROUP_ROWS = 8192
# A row group ends after 8,192 documents or 32 Mi characters, whichever comes first.
ROW_GROUP_CHARACTERS = 32 * 2**20
# Bytes of a column of a row group, and of its titles when they are written out. Our own stay far below: a group ends
# with the document that exceeds its characters. A file may come from another person's workspace.
MAX_BYTES = 2**30


def arrow_texts(values: Sequence[str]) -> pa.StringArray:
    """Return texts as Arrow holds them."""
    # ``pa.array`` imports pandas to ask whether it was given a series: a quarter of a second of each command.
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


class DocumentWriter:
    """Writes record batches of ``SCHEMA``, one row group each, compressed with zstd."""

    def __init__(self, path: Path) -> None:
        self._writer = pq.ParquetWriter(
            path, SCHEMA, compression="zstd", use_dictionary=["title"], write_statistics=["id"]
        )

    def write(self, *columns: pa.StringArray | list[str]) -> None:
        """Write ids, titles and texts as a row group."""
        arrays = [arrow_texts(values) if isinstance(values, list) else values for values in columns]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), row_group_size=max(1, len(arrays[0])))

    def close(self) -> None:
        self._writer.close()


class DocumentFile:
    """The documents in ``path``, in their order. Can be iterated any number of times; ``len`` is their number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._metadata = pq.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(str(error).splitlines()[0]) from error
        self._check()

    def _unreadable(self, why: str) -> WorkspaceError:
        return WorkspaceError(f"The documents in {self.path} cannot be read: {why}.", hint="Add the corpus again.")

    def _check(self) -> None:
        """Raise WorkspaceError for columns that would be larger in memory than in the file, or larger than memory."""
        if self._metadata.schema.to_arrow_schema().names != SCHEMA.names:
            raise self._unreadable(f"its columns are not {', '.join(SCHEMA.names)}")
        for group in map(self._metadata.row_group, range(self._metadata.num_row_groups)):
            for column in map(group.column, range(len(SCHEMA))):
                repeats = column.path_in_schema != "title" and any("DICTIONARY" in name for name in column.encodings)
                if repeats or column.total_uncompressed_size > MAX_BYTES:
                    raise self._unreadable(f"{column.path_in_schema} was not written by this program")

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(self.path, metadata=self._metadata, read_dictionary=["title"])

    def _group(self, file: pq.ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
        """Read a row group. WorkspaceError for titles that are short in the file alone."""
        import pyarrow.compute as pc

        table = file.read_row_group(group, columns=list(columns))
        if "title" not in columns:
            return table
        place = table.schema.get_field_index("title")
        for titles in table.column(place).chunks:
            lengths = pc.binary_length(titles.dictionary).cast(pa.int64())
            if (pc.sum(lengths.take(titles.indices)).as_py() or 0) > MAX_BYTES:
                raise self._unreadable("its titles have more than a gigabyte")
        return table.set_column(place, SCHEMA.field("title"), table.column(place).cast(pa.string()))

    def __len__(self) -> int:
        return int(self._metadata.num_rows)

    def __iter__(self) -> Iterator[Document]:
        return self.iter()

    def batches(
        self, start: int = 0, limit: int | None = None, columns: Sequence[str] = SCHEMA.names
    ) -> Iterator[pa.Table]:
        """Tables of the documents ``start`` … ``start + limit - 1`` (from 0), one per row group."""
        end = len(self) if limit is None else min(len(self), start + limit)
        at = 0
        with self._open() as file:
            for group in range(self._metadata.num_row_groups):
                if at >= end:
                    return
                n = self._metadata.row_group(group).num_rows
                first, last = max(start, at), min(end, at + n)
                if first < last:
                    yield self._group(file, group, columns).slice(first - at, last - first)
                at += n

    def iter(self, start: int = 0, limit: int | None = None) -> Iterator[Document]:
        """The documents one by one, with one row group in memory at a time."""
        for table in self.batches(start, limit):
            yield from to_documents(table)

    def table(self, start: int = 0, limit: int | None = None, columns: Sequence[str] = SCHEMA.names) -> pa.Table:
        """A slice as one table with ``columns``."""
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *self.batches(start, limit, columns)])

    def get(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as far as they exist, in the order of ``ids``."""
        import pyarrow.compute as pc

        wanted = arrow_texts([id for id in dict.fromkeys(ids) if storable(id)])
        by_id: dict[str, Document] = {}
        with self._open() as file:
            for group in range(self._metadata.num_row_groups):
                if len(by_id) == len(wanted):
                    break
                hits = pc.is_in(file.read_row_group(group, columns=["id"]).column("id"), value_set=wanted)
                if pc.any(hits).as_py():
                    by_id.update((d.id, d) for d in to_documents(self._group(file, group, SCHEMA.names).filter(hits)))
        return {id: by_id[id] for id in dict.fromkeys(ids) if id in by_id}

    def search(self, text: str, limit: int = 50) -> list[Document]:
        """The first ``limit`` documents whose id, title or text contains ``text``, upper and lower case alike."""
        import pyarrow.compute as pc

        documents: list[Document] = []
        for table in self.batches():
            matches = [pc.match_substring(table.column(name), text, ignore_case=True) for name in SCHEMA.names]
            hits = pc.or_(pc.or_(matches[0], matches[1]), matches[2])
            documents.extend(to_documents(table.filter(hits).slice(0, limit - len(documents))))
            if len(documents) >= limit:
                break
        return documents


def to_documents(table: pa.Table) -> Iterator[Document]:
    """The rows of a table with id, title and text as records."""
    for batch in table.to_batches(max_chunksize=1024):
        columns = (batch.column(name).to_pylist() for name in ("id", "text", "title"))
        for id, text, title in zip(*columns, strict=True):
            yield Document(id, text, title)


def permutation(n_documents: int, seed: int) -> NDArray[np.int64]:
    """The positions of all documents of a corpus in random order, the same everywhere.

    Fewer documents are the beginning of more; who needs others than those takes them from the end.
    """
    return np.random.default_rng([seed, n_documents]).permutation(n_documents)


# Scripts without spaces between words: Han, kana, Thai, Lao, Khmer, Burmese.
UNSPACED_LETTERS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{UNSPACED_LETTERS}]+")


def count_words(text: str) -> int:
    """Runs of non-space characters; in scripts without spaces every two characters, for words there have 1.5 to 3."""
    if text.isascii() or not (runs := _UNSPACED.findall(text)):
        return len(text.split())
    return (sum(map(len, runs)) + 1) // 2 + len(_UNSPACED.sub(" ", text).split())


@dataclass(frozen=True)
class Distribution:
    """Lengths of n documents."""

    n: int
    total: int
    min: int
    median: float
    p95: float
    max: int
    mean: float

    @classmethod
    def of(cls, lengths: array[int]) -> Distribution:
        """The distribution of at least one length."""
        import pyarrow.compute as pc

        values = np.frombuffer(lengths, dtype=np.uint32)
        in_arrow = pa.Array.from_buffers(pa.uint32(), len(values), [None, pa.py_buffer(values)])
        median, p95 = pc.quantile(in_arrow, [0.5, 0.95]).to_pylist()  # NumPy would import its masked arrays: 20 ms

        return cls(
            n=len(values),
            total=int(values.sum(dtype=np.int64)),
            min=int(values.min()),
            median=median,
            p95=p95,
            max=int(values.max()),
            mean=float(values.mean()),
        )
