"""An import from files to rows and passages (temporary Parquet): ids, which repeats stay, notes, progress, failures."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
import pyarrow as pa

from cdp.base.errors import InputError
from cdp.base.failures import FILE, Failures, describe
from cdp.base.text import Progress, counted, silent
from cdp.base.workspace import sha256_file, sha256_text
from cdp.complexity.guessing import guess_language, language_shares
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
    html_columns,
    listed,
    queries_of,
    resolve_fields,
    storable,
    without_tags,
)
from cdp.corpus.collector import SAMPLE_CHARACTERS, CheckedRow, Collector, Columns, lengths, place
from cdp.corpus.columns import odd_rows, word_counts
from cdp.corpus.documents import Distribution, DocumentFile, arrow_texts
from cdp.corpus.extraction import reading_process
from cdp.corpus.folders import BEIR_CORPUS, FileList, contents_of, is_single
from cdp.corpus.grades import Grades, grade_columns
from cdp.corpus.options import AUTO, PASSAGE_WORDS, ROWS_FOR_FIELDS, ReadOptions
from cdp.corpus.passages import LONGEST_HEADING, cut
from cdp.corpus.readers import (
    READERS,
    BadRow,
    Block,
    Chunk,
    DocumentFormat,
    Item,
    Report,
    Row,
    RowFormat,
    format_of,
)
from cdp.corpus.repeats import NearDuplicates, RepeatedLines
from cdp.corpus.sources import Source, existing

# The kind of a row that our own code could not handle.
UNEXPECTED = "unexpected error"

# Of rows that were parsed together, the share of odd ones above which all are taken singly.
MAX_ODD = 0.25

# Values of a rejected row that are shown, as far as there is room.
SHOWN_VALUES = 20

_OWN_FIELDS = FieldMap(text="text", id="_id", title="title")

# Files that a manifest names; all are counted.
KEPT_FILES = 1_000
# A file of whose words fewer came out is named to the person.
ENOUGH = 0.98
REPEATED = "repeated passage"
EMPTY = "It is empty, or holds no rows."
SHARES = 1_000  # of an import, as which its progress is told: files differ too much to be counted


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was read: its format, encoding (of text), language, and the documents or passages in it."""

    name: str
    format: str
    encoding: str
    language: str
    n_documents: int
    # Of a PDF, those of them that are images without text, and the numbers of those that were recognised.
    n_pages: int = 0
    n_scanned: int = 0
    recognised: tuple[int, ...] = ()
    # Words that stand in the file, those left out on purpose, and those that did not come out, by kind.
    n_words: int = 0
    removed: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def loss(self) -> str:
        """What of the words is missing, in words; empty where at least 98% came out."""
        n = sum(self.missing.values())
        if n <= (1 - ENOUGH) * self.n_words:
            return ""

        kinds = ", ".join(f"{kind} ({n:,})" for kind, n in self.missing.items())
        return f"{n:,} of {counted(self.n_words, 'word')} ({n / self.n_words:.0%}) did not come out: {kinds}"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What an import read and what it left out, as the manifest of its corpus keeps it.

    ``content_hash`` is the hex SHA-256 over id, title and text of all documents in order. ``files`` are the first
    thousand that were read, ``rejected`` the first thousand rows and files that were not taken, ``rejected_counts`` all
    of them by kind. ``languages`` are shares of a sample; ``n_queries`` came with the documents.
    """

    source: str
    source_sha256: str
    options: dict[str, Any]
    formats: tuple[str, ...]
    n_documents: int
    content_hash: str
    characters: Distribution
    words: Distribution
    languages: dict[str, float]
    n_queries: int
    rejected: tuple[Rejected, ...]
    rejected_counts: dict[str, int]
    notes: tuple[str, ...]
    found_fields: tuple[str, ...]
    files: tuple[FileRead, ...] = ()
    n_files: int = 0
    n_files_failed: int = 0
    n_cut: int = 0  # rows that became several passages

    @property
    def n_rejected(self) -> int:
        """All rejected rows; ``rejected`` holds the first thousand."""
        return sum(self.rejected_counts.values())


@dataclass(frozen=True, kw_only=True)
class ReadResult(Imported):
    """What was read, with its documents and their queries. The documents lie in a temporary folder until ``close``, or
    the end of ``with``."""

    documents: DocumentFile
    queries: dict[str, list[str]]
    folder: Path

    def close(self) -> None:
        """Remove the temporary files. What was stored is not touched."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> ReadResult:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_documents(
    path: Path,
    options: ReadOptions | None = None,
    *,
    scratch: Path | None = None,
    watch: Progress = silent,
    passwords: Sequence[str] = (),
    earlier: Collection[int] = (),
) -> ReadResult:
    """Read a file, a zip or a folder of documents.

    ``passwords`` are tried on encrypted PDFs, and stored nowhere. Temporary files go to ``scratch`` (made if needed; by
    default the system's). ``earlier`` holds ``hash((title, text))`` of the documents of an earlier version: of passages
    that repeat one another, one of these stays. Raises InputError if not a single document can be read, or if a
    file cannot be read to its end; single bad rows, and unreadable files among others, are in ``rejected``.
    """
    path = Path(path)
    options = ReadOptions.from_dict((options or ReadOptions()).to_dict())
    if not (existing(path).is_file() or path.is_dir()):
        raise InputError("It is neither a file nor a folder.", file=path)
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)

    folder = Path(tempfile.mkdtemp(prefix="cdp-corpus-", dir=scratch))

    try:
        with reading_process(passwords):
            return _Reading(path, options, folder, watch).run(earlier)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@dataclass(frozen=True)
class _Spooled:
    """A document whose blocks wait on disk. ``title`` is its own, else its only top heading, else its file's name."""

    format: str
    start: int
    end: int
    title: str
    report: Report


class _Reading:
    """One run of ``read_documents``: documents are read to blocks, for what returns in most of them is left out of
    each; then, in the order of the files, rows are taken and documents cut."""

    def __init__(self, path: Path, options: ReadOptions, folder: Path, watch: Progress) -> None:
        self.path, self.options, self.folder, self.watch = path, options, folder, watch
        self.rejections = Rejections()
        self.failures = Failures(folder / FILE, "import", unit="row")
        self.collector = Collector(folder, self.rejections)

        # Of all files.
        self.alone = is_single(path)
        self.found_fields: dict[str, None] = {}
        self.formats: dict[str, None] = {}
        self.notes: list[str] = []
        self.numbered: list[str] = []
        self.files: list[FileRead] = []
        self.n_files = self.n_files_failed = self.n_rows = self.n_repaired = self.n_unusable_queries = 0
        self.n_cut = self.n_cut_queries = 0

        # Of documents.
        self.spool = open(folder / "blocks.jsonl", "w+b")  # noqa: SIM115 (closed by run)
        self.spooled: dict[str, _Spooled] = {}
        self.repeated = RepeatedLines()
        self.duplicates = NearDuplicates()
        self.stayed: set[str] = set()

        # Of the file that is read.
        self.place = (0.0, 0.0)
        self.sample = ""
        self.grades = Grades(())
        self.tagged: set[str] = set()

    def run(self, earlier: Collection[int]) -> ReadResult:
        with ExitStack() as stack:
            stack.callback(self.collector.close)
            stack.callback(self.spool.close)

            contents = stack.enter_context(contents_of(self.path, self.options))
            for rejected in contents.rejected:
                self._reject_file(rejected)

            readable: list[Source] = []
            for number, source in enumerate(contents.sources):
                with self._taken(source, 0.5 * number / len(contents.sources), len(contents.sources)):
                    self._spool(source)
                    readable.append(source)

            self._find_stayed(readable, earlier)

            for number, source in enumerate(readable):
                with self._taken(source, 0.5 + 0.5 * number / len(readable), len(readable)):
                    self._read(source)

            self.notes += [*contents.notes, *self.repeated.notes([s.report.running for s in self.spooled.values()])]
            self.collector.flush()
            source_sha256 = _source_hash(self.path, contents)  # while the last rows are written
            documents, content_hash = self.collector.finish()

        if not documents:
            raise self._nothing()

        self._take_notes()
        queries = self.collector.queries

        return ReadResult(
            source=self.path.name,
            source_sha256=source_sha256,
            options=self.options.to_dict(),
            formats=tuple(self.formats),
            n_documents=len(documents),
            documents=documents,
            queries=queries,
            n_queries=sum(map(len, queries.values())),
            content_hash=content_hash,
            characters=Distribution.of(self.collector.characters),
            words=Distribution.of(self.collector.words),
            languages=language_shares(self.collector.language_sample.values()),
            rejected=tuple(self.rejections.kept()),
            rejected_counts=dict(self.rejections.counts.most_common()),
            notes=tuple(self.notes),
            found_fields=tuple(self.found_fields),
            files=tuple(self.files),
            n_files=self.n_files,
            n_files_failed=self.n_files_failed,
            n_cut=self.n_cut,
            folder=self.folder,
        )

    @contextmanager
    def _taken(self, source: Source, begins: float, n_files: int) -> Iterator[None]:
        """Reject a file that cannot be read, with what stands behind the fault where there were rows before it."""
        before = self.n_rows
        self.place = (begins, 0.5 / n_files)
        self._tell(0.0, source)

        try:
            yield
        except RefusedValueError as refused:
            self._reject_file(Rejected(source.name, None, refused.kind, refused.reason))
        except Exception as error:
            # Alone, or where the fault is the import's and not the file's, it ends the import.
            if self.alone or (isinstance(error, InputError) and error.file is None):
                raise

            line, reason = None, describe(error)

            if isinstance(error, InputError):
                line = error.line
                where = Path(str(error.file)).name + ("" if line is None else f", line {line}")
                reason = str(error).removeprefix(f"{where}: ")
            else:
                self.failures.record(source.name, error, file=source.name)

            kind, n = UNREADABLE, self.n_rows - before
            if n:
                kind, reason = BROKEN_OFF, f"the {n:,} rows before were read; {reason}"

            self._reject_file(Rejected(source.name, line, kind, reason))

    def _tell(self, share: float, source: Source) -> None:
        """Report what is done, with so much of this file."""
        begins, part = self.place
        self.watch(source.name, round(SHARES * (begins + part * share)), SHARES)

    def _reject_file(self, rejected: Rejected) -> None:
        self.n_files_failed += 1
        self.rejections.add(rejected)

    def _spool(self, source: Source) -> None:
        """Read a document to blocks."""
        reader = format_of(source, self.options)
        if not isinstance(reader, DocumentFormat):
            return

        report = Report(progress=lambda done, total: self._tell(done / total, source))
        start = self.spool.tell()
        tops: list[str] = []
        lines: set[int] = set()

        try:
            for block in reader.blocks(source, self.options, report):
                self.spool.write(json.dumps(block).encode() + b"\n")
                tops += [block.text] if block.level == 1 else []
                lines.update(self.repeated.hashes(block))
        except BaseException:
            self.spool.seek(start)
            raise

        if self.spool.tell() == start:
            raise InputError(EMPTY, hint="Check that the right file was chosen.", file=source.name)

        self.repeated.add(reader.name, lines)
        # Several headings of the first level are chapters, and none of them is the title.
        title = report.title or (tops[0] if len(tops) == 1 else source.stem)
        spooled = _Spooled(reader.name, start, self.spool.tell(), title[:LONGEST_HEADING], report)
        self.spooled[source.name] = spooled
        report.compare(block.text for block in self._blocks(spooled))
        self.spool.seek(spooled.end)

    def _blocks(self, spooled: _Spooled) -> Iterator[Block]:
        self.spool.seek(spooled.start)
        while self.spool.tell() < spooled.end:
            yield Block(*json.loads(self.spool.readline()))

    def _read(self, source: Source) -> None:
        reader = format_of(source, self.options)
        self.formats[reader.name] = None
        file = self.collector.begin(source.name)
        n, self.sample = self.collector.n_added, ""

        if isinstance(reader, DocumentFormat):
            self._cut(source, self.spooled[source.name], file)
        else:
            self._take_rows(source, reader, file)
            self.tagged = set()

        self.n_files += 1

        if len(self.files) < KEPT_FILES:
            n_documents = self.collector.n_added - n
            language = guess_language(self.sample)
            spooled = self.spooled.get(source.name)
            said = spooled.report if spooled else Report()
            pages = (said.pages, said.scanned, tuple(said.recognised))
            counts = (*pages, said.n_words, said.removed, said.missing)
            self.files.append(FileRead(source.name, reader.name, source.encoding, language, n_documents, *counts))

    def _find_stayed(self, sources: Sequence[Source], earlier: Collection[int]) -> None:
        """Register the passages of the earlier version first: files that come before them may repeat them."""
        for source in sources if earlier else ():
            with suppress(Exception):  # a table, or a file with a fault that _read names
                for row in self._passages(source):
                    id, title, text = row.values.values()
                    if hash((title, text)) in earlier and not self.duplicates.earlier(id, text):
                        self.stayed.add(id)

    def _cut(self, source: Source, spooled: _Spooled, file: int) -> None:
        """Take the passages of a document that repeat no other."""
        self.notes += [f"{source.name}: {note}." for note in spooled.report.notes]
        for row in self._passages(source):
            id, _, text = row.values.values()
            unique = self.options.keep_repeated or id in self.stayed
            if other := "" if unique else self.duplicates.earlier(id, text):
                self.rejections.add(Rejected(source.name, row.line, REPEATED, f"it repeats {other}", excerpt(text)))
            else:
                self._take(source, row, _OWN_FIELDS, file, "")

    def _passages(self, source: Source) -> Iterator[Row]:
        """The passages of a document. ``report.pdf#p12-3`` is its third, on page 12; ``#p12..13-3`` ends on 13."""
        spooled = self.spooled[source.name]
        keep = self.options.keep_repeated
        running = set[int]() if keep else self.repeated.running(source.name, spooled.format, self._blocks(spooled))
        words = PASSAGE_WORDS if self.options.passages is None else self.options.passages
        apart = cast(DocumentFormat, READERS[spooled.format]).apart
        passages = cut(self.repeated.without(running, self._blocks(spooled)), words, apart, spooled.title)

        first, second = next(passages, None), next(passages, None)
        if first is None:
            raise RefusedValueError("empty text", "it holds no text")

        for n, passage in enumerate(itertools.chain(filter(None, (first, second)), passages), start=1):
            line: int | None = None
            place = ""
            if passage.page:
                last = f"..{passage.last}" if passage.last > passage.page else ""
                line, place = passage.page, f"#p{passage.page}{last}-{n}"
            elif second:
                line, place = n, f"#{n}"

            sections = [name for name in passage.section if name != spooled.title]
            title = " › ".join([spooled.title, *sections])
            yield Row(line, {"_id": source.name + place, "title": title, "text": passage.text})

    def _take_rows(self, source: Source, reader: RowFormat, file: int) -> None:
        items = (reader.stream or reader.rows)(source, self.options)
        looked: list[Item] = []
        head: list[Row] = []
        for item in items:
            looked.append(item)

            if isinstance(item, BadRow):
                self.rejections.add(Rejected(source.name, *item))
            elif isinstance(item, Row):
                head.append(item)
            else:
                head += map(item.row, range(min(len(item.lines), ROWS_FOR_FIELDS - len(head))))

            if len(head) == ROWS_FOR_FIELDS:
                break

        if not looked:
            raise InputError(EMPTY, hint="Check that the right file was chosen.", file=source.name)
        if not head:
            return

        values = [row.values for row in head]
        names = list(dict.fromkeys(itertools.chain.from_iterable(values)))
        fields = resolve_fields(names, self.options, source.name)
        self.found_fields.update(dict.fromkeys(names))

        self.grades = Grades(())
        if fields.grade and fields.grade in grade_columns(values, self.options.grade_field):
            self.grades = Grades((fields.grade,))

        if fields.id is None:
            self.numbered.append(source.name)

        if PurePosixPath(source.name).name not in BEIR_CORPUS:  # which is taken as it is
            self.tagged = html_columns(filter(None, (fields.text, fields.title)), values)

        if self.tagged:
            self.notes.append(f"HTML tags were removed from {listed(sorted(self.tagged))} in {source.name}.")

        prefix = "" if self.alone else f"{source.plain_name.removesuffix(source.suffix)}-"
        number = 1
        for n, item in enumerate(itertools.chain(looked, items)):
            if isinstance(item, BadRow):
                if n >= len(looked):  # else rejected above
                    self.n_rows += 1
                    self.rejections.add(Rejected(source.name, *item))
            elif isinstance(item, Row):
                self.n_rows += 1
                self._take(source, item, fields, file, f"{prefix}{number}")
            else:
                self.n_rows += len(item.lines)
                self._take_chunk(source, item, fields, file, prefix, number)

            number += len(item.lines) if isinstance(item, Chunk) else 1

        if said := self.grades.sentence():
            self.notes.append(f"{source.name}: {said}")

    def _take_chunk(self, source: Source, chunk: Chunk, fields: FieldMap, file: int, prefix: str, number: int) -> None:
        """Take rows as columns, the odd ones singly. The first has this ``number``."""
        import pyarrow.compute as pc

        n = len(chunk.lines)
        odd: Sequence[int] = range(n)
        if not self.tagged:
            texts = chunk.columns[fields.text]
            titles = chunk.columns[fields.title] if fields.title else pa.nulls(n, pa.string())
            words = word_counts(texts)
            found = odd_rows(chunk.columns[fields.id] if fields.id else None, titles, texts, words)
            if len(found) <= n * MAX_ODD:
                odd = found.tolist()

        if len(odd) < n:
            if fields.id:
                ids = chunk.columns[fields.id]
            else:
                ids = arrow_texts([f"{prefix}{at}" for at in range(number, number + n)])
            titles = pc.fill_null(titles, arrow_texts([""])[0])
            numbers = np.array([place(file, chunk.lines), lengths(texts), words])
            taken = Columns(ids, titles, texts, numbers, {})

        begin = 0
        for at in (*odd, n):
            if begin < at:
                self.collector.add_columns(taken.slice(begin, at))
                self.failures.done(at - begin)
                while begin < at and len(self.sample) < SAMPLE_CHARACTERS:
                    self.sample += texts[begin].as_py()[:SAMPLE_CHARACTERS] + "\n"
                    begin += 1
            if at < n:
                self._take(source, chunk.row(at), fields, file, f"{prefix}{number + at}")
            begin = at + 1

    def _take(self, source: Source, row: Row, fields: FieldMap, file: int, made_id: str) -> None:
        try:
            entry = self._entry(row, fields, file, made_id)
        except RefusedValueError as refused:
            shown = "" if self.rejections.full else _shown(row)
            self.rejections.add(Rejected(source.name, row.line, refused.kind, refused.reason, shown))
        except Exception as error:  # a fault of ours: it costs this row, and is written down with its traceback
            shown = _shown(row)
            self.failures.record(f"{source.name}:{row.line}", error, shown, file=source.name, line=row.line)
            self.rejections.add(Rejected(source.name, row.line, UNEXPECTED, describe(error), shown))

        else:
            self.failures.done()
            for part in [entry] if fields is _OWN_FIELDS else self._parts(entry):
                self.collector.add(part)
            if len(self.sample) < SAMPLE_CHARACTERS:
                self.sample += entry.text[:SAMPLE_CHARACTERS] + "\n"

    def _entry(self, row: Row, fields: FieldMap, file: int, made_id: str) -> CheckedRow:
        values = row.values
        if self.tagged:
            tagged = {name: values[name] for name in self.tagged if isinstance(values.get(name), str)}
            values = {**values, **{name: without_tags(text) for name, text in tagged.items()}}

        id = made_id if fields.id is None else checked_id(values.get(fields.id), fields.id)
        text, text_repaired = storable(checked_text(values.get(fields.text), fields.text))
        title, title_repaired = "", False

        if fields.title is not None:
            title, title_repaired = storable(checked_title(values.get(fields.title), fields.title))

        queries, unusable, n_repaired = queries_of(values.get(fields.queries)) if fields.queries else ([], 0, 0)
        if queries and (self.grades.of(values) or 0) <= 0:
            queries = []

        self.n_unusable_queries += unusable
        self.n_repaired += text_repaired or title_repaired or n_repaired > 0

        return CheckedRow(id, title, text, file, row.line, queries)

    def _parts(self, entry: CheckedRow) -> list[CheckedRow]:
        """A row; the passages of a long one where a length was chosen. Its queries are about all of it."""
        if not self.options.passages:
            return [entry]
        blocks = (Block(text) for text in entry.text.split("\n\n") if text.strip())
        passages = list(cut(blocks, self.options.passages))
        if len(passages) < 2:
            return [entry]
        self.n_cut += 1
        self.n_cut_queries += len(entry.queries)
        return [entry._replace(id=f"{entry.id}#{n}", text=p.text, queries=[]) for n, p in enumerate(passages, 1)]

    def _take_notes(self) -> None:
        if self.n_cut_queries:
            queries = counted(self.n_cut_queries, "query", "queries")
            self.notes.append(f"{queries} of rows that were cut left out: keep rows whole for them.")

        encodings = Counter(file.encoding for file in self.files)
        others = [(found, n) for found, n in encodings.most_common() if found not in ("", "utf-8")]
        if self.options.encoding == AUTO and others:
            found = ", ".join(f"{counted(n, 'file')} as {encoding}" for encoding, n in others)
            self.notes.append(f"Not UTF-8, read in the encoding that was found: {found}.")

        if self.numbered:
            files = self.numbered[0] if len(self.numbered) == 1 else f"{len(self.numbered):,} files"
            self.notes.append(f"No id field was found in {files}: the documents were numbered by their rows.")

        if self.n_repaired:
            self.notes.append(
                f"{counted(self.n_repaired, 'document')} held characters that cannot be stored (NUL or half of a "
                "surrogate pair), in the text or in a query; each was replaced by U+FFFD."
            )

        if self.n_unusable_queries:
            self.notes.append(f"{self.n_unusable_queries:,} entries among the queries were empty or no text, left out.")

    def _nothing(self) -> InputError:
        if not self.rejections.counts:
            return InputError("It holds no file of a known format.", hint=f"{' '.join(self.notes)}", file=self.path)
        first = self.rejections.kept()[0]
        why = f"{self.rejections.summary()}; the first, {first.where}: {first.reason}"
        if first.whole_file and self.rejections.counts.total() == 1 and first.where == self.path.name:
            why = first.reason

        problem, hint = f"No document could be read: {why}", ""
        if first.kind in ("broken JSON", "not an object", "wrong number of cells", "broken quoting"):
            hint = "Check that the format is the right one."
        elif first.kind in ("unusable id", "text is not text") and " is a" in first.reason:
            hint = (
                "Write an object for each document, in which text and id are no objects or lists: from pandas by "
                "to_json(orient='records', lines=True), else by jq."
            )
        return InputError(f"{problem.rstrip('.')}.", hint=hint, file=self.path)


def _shown(row: Row) -> str:
    shown = (excerpt(value) for value in itertools.islice(row.values.values(), SHOWN_VALUES) if value is not None)
    return excerpt(" | ".join(shown))


def _source_hash(path: Path, contents: FileList) -> str:
    """SHA-256 of the file as it was given; for a folder, of the names and hashes of the files read and zips opened."""
    if path.is_file():
        return sha256_file(path)
    files = [(source.name, source.path) for source in contents.sources if source.path is not None]
    files += contents.archives.items()
    return sha256_text(*(part for name, path in files for part in (name, sha256_file(path))))
