"""Read what a user brings: any path to documents, checked row by row, written through to a temporary Parquet file."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from cdp.base.errors import InputError
from cdp.base.failures import FILE, Failures, describe
from cdp.base.staging import scratch as own_scratch
from cdp.base.workspace import sha256_file, sha256_text
from cdp.corpus.checks import (
    BROKEN_OFF,
    UNREADABLE,
    FieldMap,
    RefusedValueError,
    Rejected,
    Rejections,
    checked_id,
    checked_text,
    checked_title,
    excerpt,
    queries_of,
    resolve_fields,
    storable,
)
from cdp.corpus.collector import CheckedRow, Collector
from cdp.corpus.documents import Distribution, DocumentFile, FoundQueries
from cdp.corpus.extraction import reading_process
from cdp.corpus.languages import language_shares
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import (
    BadRow,
    ContainerContents,
    Note,
    Row,
    container_of,
    row_format_of,
    row_suffixes,
)
from cdp.corpus.sources import Budget, Source, existing

# The kind of a row that our own code could not handle.
UNEXPECTED = "unexpected error"

# The fields of a file are those of its first rows, for JSON objects need not all have the same.
ROWS_FOR_FIELDS = 100

# Values of a rejected row that are shown, as far as there is room.
SHOWN_VALUES = 20

_OWN_FIELDS = FieldMap(text="text", id="_id", title="title")


@dataclass
class ReadResult:
    """What was read. Its documents and queries lie in a temporary folder until ``close`` (or the end of ``with``)."""

    source: str
    source_sha256: str
    options: ReadOptions
    formats: tuple[str, ...]
    documents: DocumentFile
    queries: FoundQueries
    content_hash: str
    characters: Distribution
    words: Distribution
    languages: dict[str, float]
    rejected: list[Rejected]
    rejected_counts: dict[str, int]
    notes: list[str]
    found_fields: list[str]
    folder: Path
    _finalizer: weakref.finalize = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)

    @property
    def n_documents(self) -> int:
        return len(self.documents)

    @property
    def n_rejected(self) -> int:
        """All rejected rows; ``rejected`` holds the first thousand."""
        return sum(self.rejected_counts.values())

    def close(self) -> None:
        """Remove the temporary files. What was stored is not touched."""
        self._finalizer()

    def __enter__(self) -> ReadResult:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_documents(
    path: Path,
    options: ReadOptions | None = None,
    *,
    scratch: Path | None = None,
) -> ReadResult:
    """Read a file, a zip or a folder of documents.

    Temporary files go to ``scratch`` (made if needed; by default the process's own folder in the workspace).
    Raises InputError if not a single document can be
    read, or if a file cannot be read to its end; single bad rows, and unreadable files among others, are in
    ``rejected``.
    """
    path = Path(path)
    options = ReadOptions.from_dict((options or ReadOptions()).to_dict())
    if not (existing(path).is_file() or path.is_dir()):
        raise InputError("It is neither a file nor a folder.", file=path)
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="cdp-corpus-", dir=scratch or own_scratch()))
    try:
        return _Import(path, options, folder).run()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


class _Import:
    """One run of ``read_documents``."""

    def __init__(self, path: Path, options: ReadOptions, folder: Path) -> None:
        self.path, self.options, self.folder = path, options, folder
        self.rejections = Rejections()
        self.budget = Budget.of(path, options.max_uncompressed_mb * 10**6)
        self.failures = Failures(folder / FILE, "import", unit="row")
        self.collector = Collector(folder, self.rejections)
        self.found_fields: dict[str, None] = {}
        self.formats: dict[str, None] = {}
        self.notes: list[str] = []
        self.numbered: list[str] = []
        self.n_rows = 0
        self.n_repaired = 0
        self.n_unusable_queries = self.n_repaired_queries = 0

    def run(self) -> ReadResult:
        with ExitStack() as stack:
            stack.callback(self.collector.close)
            stack.enter_context(reading_process())
            container = container_of(self.path, self.options)
            if container is None:
                contents = ContainerContents([Source.of_file(self.path, self.path.name, self.budget)])
                self._read(contents.sources[0], alone=True)
            else:
                contents = stack.enter_context(container.contents(self.path, self.options, row_suffixes(), self.budget))
                self._read_all(contents)
            self.notes += contents.notes
            documents, queries, content_hash = self.collector.finish()
        if not documents:
            raise self._nothing()
        self._take_notes()
        characters, words = self.collector.distributions()
        return ReadResult(
            source=self.path.name,
            source_sha256=_source_hash(self.path, contents.sources),
            options=self.options,
            formats=tuple(self.formats),
            documents=documents,
            queries=queries,
            content_hash=content_hash,
            characters=characters,
            words=words,
            languages=language_shares(self.collector.language_sample),
            rejected=self.rejections.kept(),
            rejected_counts=dict(self.rejections.counts.most_common()),
            notes=self.notes,
            found_fields=list(self.found_fields),
            folder=self.folder,
        )

    def _read_all(self, contents: ContainerContents) -> None:
        """A file that cannot be read is rejected, with what stands behind the fault where there were rows before it."""
        for rejected in contents.rejected:
            self.rejections.add(rejected)
        for source in contents.sources:
            before, line = self.n_rows, None
            try:
                self._read(source, alone=False)
                continue
            except InputError as error:
                if error.file is None:  # it is about the import and not about this file
                    raise
                line = error.line
                where = Path(str(error.file)).name + ("" if line is None else f", line {line}")
                reason = str(error).removeprefix(f"{where}: ")
            except Exception as error:
                self.failures.record(source.name, error, file=source.name)
                reason = describe(error)
            kind = UNREADABLE
            if self.n_rows > before:
                kind, reason = BROKEN_OFF, f"the {self.n_rows - before:,} rows before were read; {reason}"
            self.rejections.add(Rejected(source.name, line, kind, reason))

    def _read(self, source: Source, *, alone: bool) -> None:
        reader = row_format_of(source, self.options)
        rows = reader.rows(source, self.options)
        numbered = enumerate(rows, start=1)
        number = 0
        head: list[tuple[int, Row]] = []
        for number, row in numbered:
            if isinstance(row, BadRow):
                self.rejections.add(Rejected(source.name, *row))
            elif isinstance(row, Note):
                self.notes.append(row.text)
            elif isinstance(row, Row):
                head.append((number, row))
            if len(head) == ROWS_FOR_FIELDS:
                break
        if not number:
            raise InputError(_why_empty(source), hint="Check that the right file was chosen.", file=source.name)
        self.formats[reader.name] = None
        if not head:
            return
        fields = _OWN_FIELDS
        if not reader.own_fields:
            names = list(dict.fromkeys(name for _, row in head if isinstance(row, Row) for name in row.values))
            fields = resolve_fields(names, self.options, source.name)
            self.found_fields.update(dict.fromkeys(names))
        if fields.id is None:
            self.numbered.append(source.name)
        file = self.collector.begin(source.name)
        prefix = "" if alone else f"{source.plain_name.removesuffix(source.suffix)}-"
        for number, row in itertools.chain(head, numbered):
            if isinstance(row, Note):
                self.notes.append(row.text)
                continue
            self.n_rows += 1
            if isinstance(row, BadRow):
                self.rejections.add(Rejected(source.name, *row))
                continue
            try:
                entry = self._entry(row, fields, file, f"{prefix}{number}")
            except RefusedValueError as refused:
                shown = "" if self.rejections.full else _shown(row)
                self.rejections.add(Rejected(source.name, row.line, refused.kind, refused.reason, shown))
            except Exception as error:  # a fault of ours: it costs this row, and is written down with its traceback
                shown = _shown(row)
                self.failures.record(f"{source.name}:{row.line}", error, shown, file=source.name, line=row.line)
                self.rejections.add(Rejected(source.name, row.line, UNEXPECTED, describe(error), shown))
            else:
                self.failures.done()
                self.collector.add(entry)

    def _entry(self, row: Row, fields: FieldMap, file: int, made_id: str) -> CheckedRow:
        values = row.values
        id = made_id if fields.id is None else checked_id(values.get(fields.id), fields.id)
        text, text_repaired = storable(checked_text(values.get(fields.text), fields.text))
        title, title_repaired = "", False
        if fields.title is not None:
            title, title_repaired = storable(checked_title(values.get(fields.title), fields.title))
        self.n_repaired += text_repaired or title_repaired
        queries: list[str] = []
        if fields.queries is not None:
            queries, unusable, repaired = queries_of(values.get(fields.queries))
            self.n_unusable_queries += unusable
            self.n_repaired_queries += repaired
        return CheckedRow(id, title, text, file, row.line, queries)

    def _take_notes(self) -> None:
        if self.numbered:
            files = f" in {len(self.numbered):,} files" if len(self.numbered) > 1 else f" in {self.numbered[0]}"
            self.notes.append(f"No id field was found{files}: the documents were numbered by their rows.")
        if self.n_repaired:
            self.notes.append(
                f"{_documents(self.n_repaired)} held characters that cannot be stored (NUL or half of a surrogate "
                "pair); each was replaced by U+FFFD."
            )
        if self.n_repaired_queries:
            self.notes.append(f"{self.n_repaired_queries:,} queries held such characters, replaced likewise by U+FFFD.")
        if self.n_unusable_queries:
            self.notes.append(f"{self.n_unusable_queries:,} entries among the queries were empty or no text, left out.")

    def _nothing(self) -> InputError:
        if not self.rejections.counts:
            return InputError("It holds no file of a known format.", hint=f"{' '.join(self.notes)}", file=self.path)
        first = self.rejections.kept()[0]
        where = first.file if first.line is None else f"{first.file}, line {first.line}"
        problem = f"No document could be read: {self.rejections.summary()}; the first, {where}: {first.reason}"
        doubtful = first.kind in ("broken JSON", "not an object", "wrong number of cells", "broken quoting")
        hint = "Check that the format is the right one." if doubtful else ""
        return InputError(f"{problem.rstrip('.')}.", hint=hint, file=self.path)


def _shown(row: Row) -> str:
    shown = (excerpt(value) for value in itertools.islice(row.values.values(), SHOWN_VALUES) if value is not None)
    return excerpt(" | ".join(shown))


def _documents(n: int) -> str:
    return "1 document" if n == 1 else f"{n:,} documents"


def _why_empty(source: Source) -> str:
    with source.open() as stream:
        return "It holds no rows." if source.read_block(stream, 1) else "The file is empty."


def _source_hash(path: Path, sources: list[Source]) -> str:
    """SHA-256 of the file as it was given; for a folder, of the names and hashes of the files read."""
    if path.is_file():
        return sha256_file(path)
    return sha256_text(*itertools.chain.from_iterable(_named_hashes(sources)))


def _named_hashes(sources: list[Source]) -> Iterator[tuple[str, str]]:
    for source in sources:
        if source.path is not None:
            yield source.name, sha256_file(source.path)
