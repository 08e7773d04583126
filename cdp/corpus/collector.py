"""Takes accepted rows of an import, drops repeated ids, and writes documents through to disk in batches."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Container, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp.corpus.checks import EXCERPT_CHARACTERS, Rejected, Rejections, excerpt
from cdp.corpus.documents import (
    ROW_GROUP_CHARACTERS,
    ROW_GROUP_ROWS,
    Distribution,
    DocumentFile,
    DocumentWriter,
    FoundQueries,
    count_words,
)


class Earlier(NamedTuple):
    """The first row with an id: where it stood, and the hash of its content."""

    place: int
    content: int


class SeenIds:
    """A set of ids that grows in batches and tells where each came first.

    Ids are compared by Python's 64-bit string hash, which has another key in each process: among a million ids two
    different ones collide once in 37 million imports. The hashes lie in sorted runs, each at least twice as long as
    the next, so that n ids cost O(n log² n) time and no Python object stays.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.int64]] = []

    def add(self, ids: Sequence[str], positions: Sequence[int], contents: Sequence[int]) -> dict[int, Earlier]:
        """Add a batch; the rows whose id came before (in this batch or an earlier one), with its first row.

        ``positions`` and ``contents`` are numbers of the caller's, one per id, kept for the first of each.
        """
        if not ids:
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
            run = run[:, np.argsort(run[0], kind="stable")]
        self._runs.append(run)


LANGUAGE_SAMPLE = 1_000
SAMPLE_CHARACTERS = 2_000
_LINE_BITS = 40


class CheckedRow(NamedTuple):
    """A checked row: storable texts, and where it stood."""

    id: str
    title: str
    text: str
    file: int
    line: int | None
    queries: list[str]


class Collector:
    """Memory stays at one batch, 32 bytes per document, and a sample for the language guess."""

    def __init__(self, folder: Path, rejections: Rejections) -> None:
        self._documents_path = folder / "documents.parquet"
        self._documents = DocumentWriter(self._documents_path)
        self._queries = FoundQueries(folder / "found.jsonl")
        self._rejections = rejections
        self._files: list[str] = []
        self._seen = SeenIds()
        self._hash = hashlib.sha256()
        self._random = random.Random(0)
        self._batch = _Batch()
        self.n_documents = 0
        self.characters = array("I")
        self.words = array("I")
        self.language_sample: list[str] = []

    def begin(self, file: str) -> int:
        """The number by which entries name the file that comes next."""
        self._files.append(file)
        return len(self._files) - 1

    def add(self, entry: CheckedRow) -> None:
        """Take one row."""
        if entry.queries:
            self._batch.queries[len(self._batch.ids)] = entry.queries
        self.add_rows(entry.file, [entry.line or 0], [entry.id], [entry.title], [entry.text])

    def add_rows(self, file: int, lines: Sequence[int], ids: list[str], titles: list[str], texts: list[str]) -> None:
        """Take rows without queries that were checked together; a row group is as large as if they came one by one."""
        while ids:
            room = ROW_GROUP_ROWS - len(self._batch.ids)
            self._batch.add(
                [file << _LINE_BITS | line for line in lines[:room]], ids[:room], titles[:room], texts[:room]
            )
            if len(self._batch.ids) >= ROW_GROUP_ROWS or self._batch.characters >= ROW_GROUP_CHARACTERS:
                self._flush()
            lines, ids, titles, texts = lines[room:], ids[room:], titles[room:], texts[room:]

    def _flush(self) -> None:
        batch, self._batch = self._batch, _Batch()
        contents = list(map(hash, zip(batch.titles, batch.texts, strict=True)))
        repeated = self._seen.add(batch.ids, batch.positions, contents)
        fresh = batch.without(repeated) if repeated else batch
        if fresh.ids:
            self._documents.write(fresh.ids, fresh.titles, fresh.texts)
            self._hash.update(hashed(fresh.ids, fresh.titles, fresh.texts))
            self.characters.extend(map(len, fresh.texts))
            self.words.extend(map(count_words, fresh.texts))
            self._sample(fresh.texts)
        self._queries.write([(fresh.ids[i], queries) for i, queries in fresh.queries.items()], repeated=False)
        more = []
        for i, earlier in sorted(repeated.items()):
            same = earlier.content == contents[i]
            self._rejections.add(self._duplicate(batch, i, earlier, same))
            if same and i in batch.queries:
                more.append((batch.ids[i], batch.queries[i]))
        self._queries.write(more, repeated=True)

    def _sample(self, texts: list[str]) -> None:
        """Reservoir sampling: every document has the same chance, the same import gives the same sample."""
        sample, n, draw = self.language_sample, self.n_documents, self._random.random
        for text in texts:
            n += 1
            if n <= LANGUAGE_SAMPLE:
                sample.append(text[:SAMPLE_CHARACTERS])
            elif (i := int(draw() * n)) < LANGUAGE_SAMPLE:
                sample[i] = text[:SAMPLE_CHARACTERS]
        self.n_documents = n

    def _duplicate(self, batch: _Batch, i: int, earlier: Earlier, same: bool) -> Rejected:
        (own, line), (file, before) = _file_and_line(batch.positions[i]), _file_and_line(earlier.place)
        where = "" if file == own else f" in {self._files[file]}"
        where += f" on line {before}" if before else ""
        what = "the same document stands" if same else "another document has this id"
        remark = "; its queries were kept" if same and i in batch.queries else ""
        shown = excerpt(f"{batch.ids[i]} | {batch.texts[i][:EXCERPT_CHARACTERS]}")
        return Rejected(self._files[own], line or None, "duplicate id", f"{what}{where}{remark}", shown)

    def close(self) -> None:
        """Close the file."""
        self._documents.close()

    def finish(self) -> tuple[DocumentFile, FoundQueries, str]:
        """The documents, the queries, and the content hash (hex SHA-256 over id, title, text in order)."""
        if self._batch:
            self._flush()
        self.close()
        documents = DocumentFile(self._documents_path)
        self._queries.documents = documents
        return documents, self._queries, self._hash.hexdigest()

    def distributions(self) -> tuple[Distribution, Distribution]:
        """Lengths of the texts in characters and in words; at least one document is needed."""
        return Distribution.of(self.characters), Distribution.of(self.words)


class _Batch:
    """Rows that wait to be written, as columns; ``queries`` by row, of those that have some."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.ids: list[str] = []
        self.titles: list[str] = []
        self.texts: list[str] = []
        self.queries: dict[int, list[str]] = {}
        self.characters = 0

    def add(self, positions: list[int], ids: list[str], titles: list[str], texts: list[str]) -> None:
        self.positions += positions
        self.ids += ids
        self.titles += titles
        self.texts += texts
        self.characters += sum(map(len, titles)) + sum(map(len, texts))

    def without(self, rows: Container[int]) -> _Batch:
        rest = _Batch()
        for i, values in enumerate(zip(self.positions, self.ids, self.titles, self.texts, strict=True)):
            if i not in rows:
                if i in self.queries:
                    rest.queries[len(rest.ids)] = self.queries[i]
                rest.add(*([value] for value in values))  # type: ignore[arg-type]
        return rest


def _file_and_line(position: int) -> tuple[int, int]:
    """The line is 0 where the file is the row."""
    return position >> _LINE_BITS, position & ((1 << _LINE_BITS) - 1)


def hashed(ids: list[str], titles: list[str], texts: list[str]) -> bytes:
    """What is hashed of documents: each text as UTF-8 after its length, so that the boundaries count."""
    parts: list[bytes] = []
    for row in zip(ids, titles, texts, strict=True):
        for text in row:
            data = text.encode("utf-8")
            parts += (b"%d:" % len(data), data)
    return b"".join(parts)
