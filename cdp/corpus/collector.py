"""Takes accepted rows of an import, drops repeated ids, and writes documents through to disk in batches."""

from __future__ import annotations

import hashlib
import random
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cdp.corpus.documents import ROW_GROUP_CHARACTERS, ROW_GROUP_ROWS, DocumentFile, DocumentWriter
from cdp.corpus.lengths import Distribution, count_words
from cdp.corpus.queries import FoundQueries, QueryWriter
from cdp.corpus.rejections import EXCERPT_CHARACTERS, Rejected, Rejections, excerpt
from cdp.corpus.seen import Earlier, SeenIds

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

    def __init__(self, folder: Path, rejections: Rejections, on_progress: Callable[[int], None] | None = None) -> None:
        self._documents_path = folder / "documents.parquet"
        self._documents = DocumentWriter(self._documents_path)
        self._queries = QueryWriter(folder / "queries.parquet")
        self._rejections = rejections
        self._on_progress = on_progress
        self._files: list[str] = []
        self._seen = SeenIds()
        self._hash = hashlib.sha256()
        self._random = random.Random(0)
        self._batch: list[CheckedRow] = []
        self._batch_characters = 0
        self.n_documents = 0
        self.characters = array("I")
        self.words = array("I")
        self.language_sample: list[str] = []

    def begin(self, file: str) -> int:
        """The number by which entries name the file that comes next."""
        self._files.append(file)
        return len(self._files) - 1

    def add(self, entry: CheckedRow) -> None:
        self._batch.append(entry)
        self._batch_characters += len(entry.text) + len(entry.title)
        if len(self._batch) >= ROW_GROUP_ROWS or self._batch_characters >= ROW_GROUP_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        batch, self._batch, self._batch_characters = self._batch, [], 0
        contents = [hash((entry.title, entry.text)) for entry in batch]
        positions = [entry.file << _LINE_BITS | (entry.line or 0) for entry in batch]
        repeated = self._seen.add([entry.id for entry in batch], positions, contents)
        fresh = [entry for i, entry in enumerate(batch) if i not in repeated]
        if fresh:
            self._documents.write(*([getattr(entry, name) for entry in fresh] for name in ("id", "title", "text")))
            parts = (part for entry in fresh for part in hash_parts(entry.id, entry.title, entry.text))
            self._hash.update(b"".join(parts))
            self.characters.extend(len(entry.text) for entry in fresh)
            self.words.extend(count_words(entry.text) for entry in fresh)
            for entry in fresh:
                self._sample(entry.text)
        self._queries.write([(entry.id, entry.queries) for entry in fresh if entry.queries], repeated=False)
        more = []
        for i, earlier in sorted(repeated.items()):
            same = earlier.content == contents[i]
            self._rejections.add(self._duplicate(batch[i], earlier, same))
            if same and batch[i].queries:
                more.append((batch[i].id, batch[i].queries))
        self._queries.write(more, repeated=True)
        if self._on_progress is not None:
            self._on_progress(self.n_documents)

    def _sample(self, text: str) -> None:
        """Reservoir sampling: every document has the same chance, the same import gives the same sample."""
        self.n_documents += 1
        if len(self.language_sample) < LANGUAGE_SAMPLE:
            self.language_sample.append(text[:SAMPLE_CHARACTERS])
        elif (i := int(self._random.random() * self.n_documents)) < LANGUAGE_SAMPLE:
            self.language_sample[i] = text[:SAMPLE_CHARACTERS]

    def _duplicate(self, entry: CheckedRow, earlier: Earlier, same: bool) -> Rejected:
        file, line = earlier.place >> _LINE_BITS, earlier.place & ((1 << _LINE_BITS) - 1)
        where = "" if file == entry.file else f" in {self._files[file]}"
        where += f" on line {line}" if line else ""
        what = "the same document stands" if same else "another document has this id"
        remark = "; its queries were kept" if same and entry.queries else ""
        shown = excerpt(f"{entry.id} | {entry.text[:EXCERPT_CHARACTERS]}")
        return Rejected(self._files[entry.file], entry.line, "duplicate id", f"{what}{where}{remark}", shown)

    def close(self) -> None:
        """Let go of the files, whatever was written."""
        self._documents.close()
        self._queries.close()

    def finish(self) -> tuple[DocumentFile, FoundQueries, str]:
        """The documents, the queries, and the content hash (hex SHA-256 over id, title, text in order)."""
        if self._batch:
            self._flush()
        self.close()
        documents = DocumentFile(self._documents_path)
        return documents, self._queries.finish(documents), self._hash.hexdigest()

    def distributions(self) -> tuple[Distribution, Distribution]:
        """Lengths of the texts in characters and in words; at least one document is needed."""
        return Distribution.of(self.characters), Distribution.of(self.words)


def hash_parts(*texts: str) -> list[bytes]:
    """What is hashed for a document: each text as UTF-8 after its length, so that the boundaries count."""
    parts = []
    for text in texts:
        data = text.encode("utf-8")
        parts += [f"{len(data)}:".encode(), data]
    return parts
