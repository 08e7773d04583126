"""Accepted rows of an import: repeated ids, queries found inside rows kept, content hash, language sample, batches.

Row groups are compressed, hashed and written by a thread while the next rows are read: Arrow and ``hashlib`` let others
run meanwhile.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdp.corpus.checks import EXCERPT_CHARACTERS, Rejected, Rejections, excerpt
from cdp.corpus.columns import buffers, word_counts
from cdp.corpus.documents import ROW_GROUP_CHARACTERS, ROW_GROUP_ROWS, DocumentFile, DocumentWriter, arrow_texts


class Earlier(NamedTuple):
    """Place and content hash of the first row with an id."""

    place: int
    content: int


class SeenIds:
    """A set of ids that grows in batches and knows where each came first.

    Ids are compared by Python's 64-bit string hash, which has another key in each process: among a million ids two
    different ones collide once in 37 million imports. The hashes lie in sorted runs, each at least twice as long as
    the next, so that n ids cost O(n log² n) time and no Python object stays.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def add(self, ids: Sequence[str], positions: Any, contents: Sequence[int]) -> dict[int, Earlier]:
        """Add a batch; return {row: first row} of those whose id came before, in this batch or an earlier one.

        ``positions`` and ``contents`` are numbers of the caller's, one per id, kept for the first of each.
        """
        if not len(ids):
            return {}

        rows = np.empty((3, len(ids)), np.int64)
        rows[0] = np.fromiter(map(hash, ids), np.int64, len(ids))
        rows[1], rows[2] = positions, contents
        order = np.argsort(rows[0], kind="stable")
        batch = rows[:, order]
        new = np.ones(len(ids), bool)
        new[1:] = batch[0, 1:] != batch[0, :-1]
        first = np.maximum.accumulate(np.where(new, np.arange(len(ids)), 0))

        repeated = {int(order[i]): Earlier(*map(int, batch[1:, first[i]])) for i in np.flatnonzero(~new)}
        for run in self._runs:
            at = np.minimum(np.searchsorted(run[0], batch[0]), run.shape[1] - 1)
            seen = run[0, at] == batch[0]
            repeated.update({int(order[i]): Earlier(*map(int, run[1:, at[i]])) for i in np.flatnonzero(seen)})
            new &= ~seen

        self._merge(batch[:, new])
        return repeated

    def _merge(self, run: NDArray[np.int64]) -> None:
        if not run.shape[1]:
            return
        while self._runs and self._runs[-1].shape[1] < 2 * run.shape[1]:
            run = np.concatenate([self._runs.pop(), run], axis=1)
            order = np.argsort(run[0], kind="stable")
            for row in run:  # one at a time: a copy of all would be most of the memory of an import of millions
                row[:] = row[order]
        self._runs.append(run)


LANGUAGE_SAMPLE = 1_000
SAMPLE_CHARACTERS = 2_000
_LINE_BITS = 40
SLICE_ROWS = 1024


class CheckedRow(NamedTuple):
    """A checked row: storable texts, its file and line."""

    id: str
    title: str
    text: str
    file: int
    line: int | None
    queries: list[str]


class Columns(NamedTuple):
    """Checked rows as columns. ``numbers``, of shape (3, n), are their places (files and lines), and the characters and
    words of their texts. ``queries`` is {number of a row: what came with it}."""

    ids: pa.StringArray
    titles: pa.StringArray
    texts: pa.StringArray
    numbers: NDArray[np.int64]
    queries: Mapping[int, list[str]]

    def slice(self, start: int, stop: int) -> Columns:
        """Return some of rows that came without queries."""
        ids, titles, texts = (column[start:stop] for column in self[:3])
        return Columns(ids, titles, texts, self.numbers[:, start:stop], {})

    @classmethod
    def of(cls, rows: Sequence[CheckedRow]) -> Columns:
        ids, titles, texts = (arrow_texts(values) for values in list(zip(*rows, strict=True))[:3])
        places = [place(row.file, row.line or 0) for row in rows]
        numbers = np.array([places, lengths(texts), word_counts(texts)], np.int64)
        return cls(ids, titles, texts, numbers, {i: row.queries for i, row in enumerate(rows) if row.queries})

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        if len(parts) == 1:
            return parts[0]

        queries: dict[int, list[str]] = {}
        begin = 0
        for part in parts:
            queries.update((begin + i, found) for i, found in part.queries.items())
            begin += len(part.ids)

        *columns, numbers, _ = zip(*parts, strict=True)
        ids, titles, texts = map(pa.concat_arrays, columns)
        return cls(ids, titles, texts, np.concatenate(numbers, axis=1), queries)


def place(file: int, line: Any) -> Any:
    """Return a file's number and a line, or an array of lines, as one number each; line 0 where the file is the row."""
    return (file << _LINE_BITS) + line


class Collector:
    """Memory stays at two row groups, 32 bytes per document, its queries, and a sample for the language guess.

    All that ``_store`` changes belongs to the thread until ``_wait`` returned.
    """

    def __init__(self, folder: Path, rejections: Rejections) -> None:
        self._thread = ThreadPoolExecutor(1, "documents")
        self._storing: Future[list[Rejected]] | None = None
        self._documents_path = folder / "documents.parquet"
        self._documents = DocumentWriter(self._documents_path)
        self.queries: dict[str, list[str]] = {}
        self._rejections = rejections
        self._files: list[str] = []
        self._seen = SeenIds()
        self._hash = hashlib.sha256()
        self._random = np.random.default_rng(0)

        # Of the row group that is filled: rows, and before them columns.
        self._rows: list[CheckedRow] = []
        self._parts: list[Columns] = []
        self._n = self._n_characters = 0

        self.n_documents = self.n_added = 0
        self.characters = array("I")
        self.words = array("I")
        self.language_sample: dict[int, str] = {}

    def begin(self, file: str) -> int:
        """Return the number by which rows name the file that comes next."""
        self._files.append(file)
        return len(self._files) - 1

    def add(self, row: CheckedRow) -> None:
        """Take one row."""
        self._rows.append(row)
        self._count(1, len(row.title) + len(row.text))

    def add_columns(self, columns: Columns) -> None:
        """Take rows that came without queries; row groups end where they end for single rows."""
        if self._rows:
            self._parts.append(Columns.of(self._rows))
            self._rows = []
        totals = np.cumsum(lengths(columns.titles) + columns.numbers[1])
        at = done = 0
        while at < len(totals):
            full = int(np.searchsorted(totals, done + ROW_GROUP_CHARACTERS - self._n_characters)) + 1
            end = min(full, at + ROW_GROUP_ROWS - self._n, len(totals))
            self._parts.append(columns.slice(at, end))
            self._count(end - at, int(totals[end - 1]) - done)
            at, done = end, int(totals[end - 1])

    def _count(self, n: int, n_characters: int) -> None:
        self.n_added += n
        self._n += n
        self._n_characters += n_characters
        if self._n >= ROW_GROUP_ROWS or self._n_characters >= ROW_GROUP_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Let the thread store the rows that wait, after those before them."""
        if self._rows:
            self._parts.append(Columns.of(self._rows))
        self._wait()
        if self._parts:
            self._storing = self._thread.submit(self._store, self._parts)
        self._rows, self._parts, self._n, self._n_characters = [], [], 0, 0

    def _wait(self) -> None:
        """Wait until all that was flushed is stored, and list what was not taken. Raises what storing it raised."""
        storing, self._storing = self._storing, None
        for rejected in storing.result() if storing else ():
            self._rejections.add(rejected)

    def _store(self, parts: Sequence[Columns]) -> list[Rejected]:
        """Write a row group, without the rows whose id came before, which are returned."""
        batch = Columns.joined(parts)
        ids = batch.ids.to_pylist()
        contents = _content_hashes(batch.titles, batch.texts)
        places = batch.numbers[0]
        repeated = self._seen.add(ids, places, contents)

        documents, counts = list(batch[:3]), batch.numbers[1:].astype(np.uint32)
        if repeated:
            fresh = np.delete(np.arange(len(ids)), list(repeated))
            rows = pa.Array.from_buffers(pa.int64(), len(fresh), [None, pa.py_buffer(fresh)])
            documents, counts = [column.take(rows) for column in documents], counts[:, fresh]

        if counts.size:
            self._documents.write(*documents)
            for part in hashed(*documents):
                self._hash.update(part)

            self.characters.frombytes(counts[0].tobytes())
            self.words.frombytes(counts[1].tobytes())
            self._sample(documents[2])

        self.queries |= {ids[i]: list(queries) for i, queries in batch.queries.items() if i not in repeated}
        rejected = []
        for i, earlier in sorted(repeated.items()):
            same, queries = earlier.content == contents[i], batch.queries.get(i, [])
            shown = excerpt(f"{ids[i]} | {batch.texts[i].as_py()[:EXCERPT_CHARACTERS]}")
            rejected.append(self._duplicate(int(places[i]), shown, earlier, same, bool(queries)))
            if same and queries:
                self.queries.setdefault(ids[i], []).extend(queries)
        return rejected

    def _sample(self, texts: pa.StringArray) -> None:
        # Reservoir sampling: every document has the same chance, the same import gives the same sample.
        numbers = self.n_documents + np.arange(1, len(texts) + 1)
        drawn = (self._random.random(len(texts)) * numbers).astype(np.int64)
        places = np.where(numbers <= LANGUAGE_SAMPLE, numbers - 1, drawn)
        for i in np.flatnonzero(places < LANGUAGE_SAMPLE).tolist():
            self.language_sample[int(places[i])] = texts[i].as_py()[:SAMPLE_CHARACTERS]
        self.n_documents += len(texts)

    def _duplicate(self, at: int, shown: str, earlier: Earlier, same: bool, queries: bool) -> Rejected:
        (row_file, line), (file, before) = (divmod(placed, 1 << _LINE_BITS) for placed in (at, earlier.place))
        where = "" if file == row_file else f" in {self._files[file]}"
        where += f" on line {before}" if before else ""  # 0 where the file is the row
        what = "the same document stands" if same else "another document has this id"
        remark = "; its queries were kept" if same and queries else ""
        return Rejected(self._files[row_file], line or None, "duplicate id", f"{what}{where}{remark}", shown)

    def close(self) -> None:
        """Close the file, after the row group that is being written."""
        self._thread.shutdown()
        self._documents.close()

    def finish(self) -> tuple[DocumentFile, str]:
        """Return the documents, and the content hash (hex SHA-256 over id, title, text in order)."""
        self.flush()
        self._wait()
        self.close()
        return DocumentFile(self._documents_path), self._hash.hexdigest()


def lengths(texts: pa.StringArray) -> NDArray[np.int64]:
    """Return the characters of each text. Shape (n,)."""
    import pyarrow.compute as pc

    return np.from_dlpack(pc.utf8_length(texts)).astype(np.int64)


def _slices(*columns: pa.StringArray) -> Iterator[list[pa.StringArray]]:
    """Yield the same rows of each column, few enough to stay in a processor's cache."""
    for begin in range(0, len(columns[0]), SLICE_ROWS):
        yield [column[begin : begin + SLICE_ROWS] for column in columns]


def _content_hashes(titles: pa.StringArray, texts: pa.StringArray) -> list[int]:
    """``hash((title, text))`` of each row, by which a repeated id is told from a repeated document."""
    hashes: list[int] = []
    for columns in _slices(titles, texts):
        hashes += map(hash, zip(*(column.to_pylist() for column in columns), strict=True))
    return hashes


def hashed(*columns: pa.StringArray) -> Iterator[pa.Buffer]:
    """What is hashed of ids, titles and texts: each as UTF-8 after its length, so that the boundaries count."""
    import pyarrow.compute as pc

    colon, nothing = arrow_texts([":", ""])
    for few in _slices(*columns):
        parts = [part for column in few for part in (pc.binary_length(column).cast(pa.string()), colon, column)]
        joined = pc.binary_join_element_wise(*parts, nothing)
        offsets, _ = buffers(joined)
        yield joined.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
