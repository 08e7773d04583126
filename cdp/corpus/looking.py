"""Preview a file before its import: columns, first rows, the guessed role of a column."""

from __future__ import annotations

import itertools
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError, NotFoundError, some
from cdp.base.failures import FILE, FailedItems, failed_items
from cdp.base.records import Document
from cdp.base.text import counted, encodable
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest, iter_documents, open_corpus, resolve_corpus
from cdp.corpus.checks import (
    GUESSES,
    LONGEST_SHOWN,
    RefusedValueError,
    Rejected,
    beginning,
    column_named,
    excerpt,
    html_columns,
    without_tags,
)
from cdp.corpus.extraction import reading_process
from cdp.corpus.folders import BEIR_CORPUS, contents_of, is_single
from cdp.corpus.grades import SHOWN_VALUES, grade_columns, grade_of
from cdp.corpus.options import ReadOptions
from cdp.corpus.passages import Block, Passage, cut
from cdp.corpus.readers import BadRow, DocumentFormat, Report, Row, RowFormat, file_suffixes, format_of
from cdp.corpus.reading import REPEATED
from cdp.corpus.sources import Budget, Source, existing

# How many rows a look keeps, and takes the columns and their gaps from.
LOOKED_AT = 200

# How many blocks of a document are looked at, and how many documents are tried.
BLOCKS, TRIED = 1_000, 5

# How many PDFs are asked whether they are encrypted, and how many of these are tried to open.
ASKED, OPENED = 500, 20
TRAILER_BYTES = 1 << 16

# Reasons that are shown, and files for each.
MAX_REASONS, SHOWN = 10, 5

# Characters of a value that are shown.
LONGEST_CELL = 300


@dataclass(frozen=True)
class FilePreview:
    """The first rows of a file (of the first table among several): every value as text without HTML, long ones cut.

    ``blocks`` are the first of ``document``, a file that is cut into passages, its pages ``apart``; ``locked`` names
    PDFs that need another password. ``gaps`` counts for each column the rows among those ``looked_at`` in which it is
    empty; ``unreadable`` rows are no rows of the format.
    """

    file: str
    n_files: int
    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]
    looked_at: int
    gaps: dict[str, int]
    unreadable: int
    notes: tuple[str, ...]
    document: str = ""
    blocks: tuple[Block, ...] = ()
    apart: bool = False
    locked: tuple[str, ...] = ()

    def passages(self, words: int) -> list[Passage]:
        """How the document is cut into passages of about ``words`` words, as far as it was looked at."""
        return list(cut(self.blocks, words, self.apart))

    def guess(self, role: str) -> str | None:
        """The first column that is called as columns of this role (``GUESSES``), upper and lower case alike."""
        return column_named(self.columns, GUESSES[role])

    @property
    def text(self) -> str | None:
        """The column that seems to hold the text: by its name, else the one with the longest values by far."""
        named = self.guess("text")
        if named is not None:
            return named

        # A number names no column: the "header" is the first row of a file without one, such as MS MARCO's collection.
        numbered = [str(number) for number in range(1, len(self.columns) + 1)]
        if any(map(str.isdigit, self.columns)) and list(self.columns) != numbered:
            return None

        lengths: Counter[str] = Counter()
        for row in self.rows:
            lengths.update({column: len(value) for column, value in row.items()})
        for column in map(self.guess, ("id", "title", "question")):
            lengths.pop(column or "", None)

        longest = max(lengths, key=lengths.__getitem__, default=None)
        if longest is None or lengths[longest] < 20 * len(self.rows):
            return None
        # The first document of a table without a header is no name.
        return None if len(longest) > LONGEST_SHOWN or longest.endswith(".") else longest

    @property
    def queries(self) -> str | None:
        """The column with queries."""
        return self.guess("question")

    @property
    def asked(self) -> str | None:
        """In a file of queries: the column with them."""
        return self.queries or column_named(self.columns, ("text",))

    @property
    def document_id(self) -> str | None:
        """In a file of queries: the column with the id or text of each one's document."""
        # Beside a text alone, as in BEIR's queries, an id is the query's own.
        own = ("_id", "id") if self.queries else ()
        named = column_named(self.columns, (*GUESSES["document"], *GUESSES["named-document"]))
        text = self.guess("text") if self.queries else None
        return named or text or column_named(self.columns, own)

    @property
    def grade(self) -> str | None:
        """The first column with grades."""
        return next(iter(grade_columns(self.rows)), None)

    def grades(self, column: str) -> dict[str, int | None]:
        """{value of a column in the first rows: the grade that it is read as, None for no grade}."""
        found = {excerpt(row[column]): grade_of(row[column]) for row in self.rows if row.get(column)}
        return dict(list(found.items())[:SHOWN_VALUES])

    @property
    def of_queries(self) -> bool:
        """Return True if the rows are queries for documents that stand elsewhere: beside each an id or a file."""
        text, named = self.guess("text"), self.guess("named-document")
        if self.queries is None or text not in (None, named):
            return False
        if self.guess("document") is not None:
            return text is None
        return named is not None and all(_names_document(row.get(named, "")) for row in self.rows)


def _names_document(value: str) -> bool:
    """Return True for an id or the name of a file: a single word, or one that ends like a file."""
    return bool(value) and (" " not in value or value.lower().endswith(file_suffixes()))


def look(path: Path, options: ReadOptions | None = None, passwords: Sequence[str] = ()) -> FilePreview:
    """The columns and first rows of a file, or of the first in a folder or a zip. InputError where there is none."""
    options = options or ReadOptions()
    seen: list[Row | BadRow] = []
    table: Source | None = None
    with reading_process(passwords), contents_of(path, options) as contents:
        sources = contents.sources
        if not sources:
            raise InputError("It holds no file of a known format.", hint=" ".join(contents.notes), file=path)

        for source in sources:
            reader = format_of(source, options)
            if isinstance(reader, RowFormat):
                seen = list(itertools.islice(reader.rows(source, options), LOOKED_AT))
                table = source
                break

        document, blocks, apart = _first_document([s for s in sources if s is not table], options)
        locked = tuple(_locked(sources, options))

    rows = [row for row in seen if isinstance(row, Row)]
    names = tuple(dict.fromkeys(itertools.chain.from_iterable(row.values for row in rows)))
    # As the import does: BEIR's files are taken as they are.
    beir = table is not None and Path(table.name).name in BEIR_CORPUS
    tagged = set[str]() if beir else html_columns(names, [row.values for row in rows])
    # A page shows what UTF-8 can hold.
    columns = tuple(dict.fromkeys(map(encodable, names)))
    cells = [{encodable(name): _cell(value, name in tagged) for name, value in row.values.items()} for row in rows]

    return FilePreview(
        file=sources[0].name if table is None else table.name,
        n_files=len(sources),
        columns=columns,
        rows=tuple(cells),
        looked_at=len(seen),
        gaps={name: sum(not row.get(name) for row in cells) for name in columns},
        unreadable=len(seen) - len(rows),
        notes=(*contents.notes, *(f"{line}." for line in by_reason(contents.rejected))),
        document=document,
        blocks=blocks,
        apart=apart,
        locked=locked,
    )


def by_reason(rejected: Iterable[Rejected], *, all_kept: bool = True) -> list[str]:
    """Rejected files and rows, a line for each reason; ``all_kept`` is False where there are more of them."""
    named: dict[str, list[str]] = {}
    for one in rejected:
        named.setdefault(one.reason, []).append(one.file if one.whole_file else one.where)

    lines = []
    for reason, names in named.items():
        shown = some(names, SHOWN)
        if len(names) > SHOWN and not all_kept:
            shown = ", ".join(names[:SHOWN]) + " and more"
        lines.append(f"{shown}: {reason}")

    beyond = len(lines) - MAX_REASONS
    if beyond > 0:
        lines[MAX_REASONS:] = [f"{beyond:,} more reasons"]
    return lines


def _locked(sources: Sequence[Source], options: ReadOptions) -> Iterator[str]:
    """The names of PDFs that none of the passwords opens."""
    pdfs = [source for source in sources if source.suffix == ".pdf"][:ASKED]
    for source in itertools.islice(filter(_encrypted, pdfs), OPENED):
        reader = format_of(source, options)
        try:
            if isinstance(reader, DocumentFormat):  # to the end: a reading process that is left before is ended
                deque(reader.blocks(source, options, Report()), maxlen=0)
        except (RefusedValueError, InputError) as error:
            if isinstance(error, RefusedValueError) and error.kind == "encrypted":
                yield source.name


def _encrypted(source: Source) -> bool:
    """Return True if a trailer, at either end of a PDF, names an encryption; many such files need no password."""
    with suppress(InputError, OSError, ValueError), source.open() as file:
        head = file.read(TRAILER_BYTES)
        file.seek(max(0, file.seek(0, 2) - TRAILER_BYTES))
        return b"/Encrypt" in head or b"/Encrypt" in file.read()
    return False


def _first_document(sources: Sequence[Source], options: ReadOptions) -> tuple[str, tuple[Block, ...], bool]:
    """(name, first blocks, whether its pages are cut apart) of the first document that can be read, if there is one."""
    readers = ((source, format_of(source, options)) for source in sources)
    documents = [(source, reader) for source, reader in readers if isinstance(reader, DocumentFormat)]
    for source, reader in documents[:TRIED]:
        try:
            blocks = tuple(itertools.islice(reader.blocks(source, options, Report()), BLOCKS))
        except (RefusedValueError, InputError) as error:
            if len(sources) == 1 and isinstance(error, InputError):
                raise
        else:
            return source.name, blocks, reader.apart
    return "", (), False


def iter_rows(path: Path, options: ReadOptions | None = None) -> Iterator[Row | BadRow]:
    """Every row of a single file, with all its columns. InputError for a folder or a zip."""
    options = options or ReadOptions()
    if not is_single(existing(path)):
        raise InputError("It holds several files.", hint="Name a single file.", file=path)
    source = Source.of_file(path, path.name, Budget.of(path))
    reader = format_of(source, options)
    if not isinstance(reader, RowFormat):
        raise InputError("It has no rows.", hint="Give a table or JSON Lines.", file=path)
    yield from reader.rows(source, options)


def _cell(value: Any, tagged: bool = False) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = without_tags(text) if tagged else text
    return beginning(" ".join(text[: 4 * LONGEST_CELL].split()), LONGEST_CELL)


def name_of(source: Path) -> str:
    """Return a corpus's name for a file or folder: without the endings that readers know."""
    name = source.name.removesuffix(".gz")
    if name.endswith((*file_suffixes(), ".zip")):
        name = name.rpartition(".")[0]
    return name or "corpus"


def scanned(manifest: CorpusManifest) -> list[str]:
    """Return the notes on PDFs most of whose pages have no text."""
    scans = (file for file in manifest.files if 2 * file.n_scanned > file.n_pages)
    begin = tuple(f"{file.name}: {file.n_scanned:,} of {file.n_pages:,} pages" for file in scans)
    return [note for note in manifest.notes if note.startswith(begin)]


def losses(manifest: CorpusManifest) -> list[str]:
    """Return the files of which less than 98% of the words came out, each with what is missing."""
    return [f"{file.name}: {file.loss}" for file in manifest.files if file.loss]


def problem(manifest: CorpusManifest) -> str:
    """Return which share was not read, in a sentence; empty where nothing is missing but a few rows."""
    failed, said = manifest.n_files_failed, []
    if failed:
        said.append(f"{failed:,} of {counted(manifest.n_files + failed, 'file')} could not be read.")
    rows = manifest.n_rejected - manifest.rejected_counts.get(REPEATED, 0) - failed
    if 10 * rows > manifest.n_documents:
        said.append(f"{counted(rows, 'row')} could not be read.")
    if scans := scanned(manifest):
        said.append(f"Most pages of {counted(len(scans), 'PDF')} have no text: run OCR first, or see `cdp doctor`.")
    if lost := losses(manifest):
        said.append(f"Words of {counted(len(lost), 'file')} are missing.")
    return " ".join(said)


def titles(manifests: Sequence[CorpusManifest]) -> dict[str, str]:
    """Return {id: name}, with the version of a corpus that has others."""
    grown = {manifest.previous for manifest in manifests}
    named = {}
    for manifest in manifests:
        version = " (newest version)" if manifest.previous else ""
        if manifest.id in grown:
            size = counted(manifest.n_documents, manifest.unit)
            version = f" (earlier version of {manifest.created[:10]}, {size})"
        named[manifest.id] = manifest.name + version
    return named


def failed(workspace: Workspace, corpus: str) -> FailedItems:
    """Return the rows that failed by an unexpected error, with their texts and tracebacks."""
    manifest = resolve_corpus(workspace, corpus)
    return failed_items(workspace.corpus(manifest.id) / FILE)


def page(workspace: Workspace, corpus: str, offset: int = 0, limit: int = 20, search: str = "") -> list[Document]:
    """Return documents ``offset`` … ``offset + limit - 1`` in corpus order; with ``search`` those that contain it."""
    manifest = resolve_corpus(workspace, corpus)
    if search:
        return open_corpus(workspace, manifest.id).search(search, offset + limit)[offset:]
    return list(iter_documents(workspace, manifest.id, start=offset, limit=limit))


def document(workspace: Workspace, corpus: str, document_id: str) -> Document:
    """Return one document. NotFoundError if the corpus has none of that id."""
    manifest = resolve_corpus(workspace, corpus)
    documents = open_corpus(workspace, manifest.id).get([document_id])
    if document_id not in documents:
        first = [item.id for item in iter_documents(workspace, manifest.id, limit=5)]
        raise NotFoundError("document", document_id, hint=f"The first ids are: {', '.join(first)}.")
    return documents[document_id]
