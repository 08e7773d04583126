"""Accepted rows of an import: repeated ids, queries found inside rows kept, content hash, language sample, batches."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp.corpus.checks import EXCERPT_CHARACTERS, Rejected, Rejections, excerpt
from cdp.corpus.documents import (
    ROW_GROUP_CHARACTERS,
    ROW_GROUP_ROWS,
    DocumentFile,
    DocumentWriter,
    count_words,
)


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

    def add(self, ids: Sequence[str], positions: Sequence[int], contents: Sequence[int]) -> dict[int, Earlier]:
        """Add a batch; return {row: first row} of those whose id came before, in this batch or an earlier one.

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
    """A checked row: storable texts, its file and line."""

    id: str
    title: str
    text: str
    file: int
    line: int | None
    queries: list[str]


class Collector:
    """Memory stays at one batch, 32 bytes per document, its queries, and a sample for the language guess."""

    def __init__(self, folder: Path, rejections: Rejections) -> None:
        self._documents_path = folder / "documents.parquet"
        self._documents = DocumentWriter(self._documents_path)
        self.queries: dict[str, list[str]] = {}
        self._rejections = rejections
        self._files: list[str] = []
        self._seen = SeenIds()
        self._hash = hashlib.sha256()
        self._random = random.Random(0)
        self._batch: list[CheckedRow] = []
        self._batch_characters = 0
        self.n_documents = self.n_added = 0
        self.characters = array("I")
        self.words = array("I")
        self.language_sample: list[str] = []

    def begin(self, file: str) -> int:
        """Return the number by which rows name the file that comes next."""
        self._files.append(file)
        return len(self._files) - 1

    def add(self, row: CheckedRow) -> None:
        """Take one row."""
        self.n_added += 1
        self._batch.append(row)
        self._batch_characters += len(row.title) + len(row.text)
        if len(self._batch) >= ROW_GROUP_ROWS or self._batch_characters >= ROW_GROUP_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch, self._batch_characters = self._batch, [], 0
        contents = [hash((row.title, row.text)) for row in batch]
        positions = [(row.file << _LINE_BITS) + (row.line or 0) for row in batch]
        repeated = self._seen.add([row.id for row in batch], positions, contents)
        fresh = [row for i, row in enumerate(batch) if i not in repeated] if repeated else batch
        if fresh:
            ids = [row.id for row in fresh]
            titles, texts = [row.title for row in fresh], [row.text for row in fresh]
            self._documents.write(ids, titles, texts)
            self._hash.update(hashed(ids, titles, texts))
            self.characters.extend(map(len, texts))
            self.words.extend(map(count_words, texts))
            self._sample(texts)
        self.queries |= {row.id: list(row.queries) for row in fresh if row.queries}
        for i, earlier in sorted(repeated.items()):
            same = earlier.content == contents[i]
            self._rejections.add(self._duplicate(batch[i], earlier, same))
            if same and batch[i].queries:
                self.queries.setdefault(batch[i].id, []).extend(batch[i].queries)

    def _sample(self, texts: list[str]) -> None:
        # Reservoir sampling: every document has the same chance, the same import gives the same sample.
        sample, n, draw = self.language_sample, self.n_documents, self._random.random
        for text in texts:
            n += 1
            if n <= LANGUAGE_SAMPLE:
                sample.append(text[:SAMPLE_CHARACTERS])
            elif (i := int(draw() * n)) < LANGUAGE_SAMPLE:
                sample[i] = text[:SAMPLE_CHARACTERS]
        self.n_documents = n

    def _duplicate(self, row: CheckedRow, earlier: Earlier, same: bool) -> Rejected:
        file, before = divmod(earlier.place, 1 << _LINE_BITS)  # the line is 0 where the file is the row
        where = "" if file == row.file else f" in {self._files[file]}"
        where += f" on line {before}" if before else ""
        what = "the same document stands" if same else "another document has this id"
        remark = "; its queries were kept" if same and row.queries else ""
        shown = excerpt(f"{row.id} | {row.text[:EXCERPT_CHARACTERS]}")
        return Rejected(self._files[row.file], row.line, "duplicate id", f"{what}{where}{remark}", shown)

    def close(self) -> None:
        """Close the file."""
        self._documents.close()

    def finish(self) -> tuple[DocumentFile, str]:
        """Return the documents, and the content hash (hex SHA-256 over id, title, text in order)."""
        if self._batch:
            self._flush()
        self.close()
        return DocumentFile(self._documents_path), self._hash.hexdigest()


def hashed(ids: list[str], titles: list[str], texts: list[str]) -> bytes:
    """What is hashed of documents: each text as UTF-8 after its length, so that the boundaries count."""
    encoded = (text.encode("utf-8") for row in zip(ids, titles, texts, strict=True) for text in row)
    return b"".join(b"%d:%b" % (len(data), data) for data in encoded)
