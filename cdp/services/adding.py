"""One import of all that a person brings: uploads, BEIR folder, the next free name, what was left out."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from cdp import query_sets
from cdp.base import permission
from cdp.base.errors import CdpError, InputError, some
from cdp.base.locks import keep_upload, staging
from cdp.base.text import Progress, checked_title, counted, silent, tally
from cdp.base.workspace import Workspace, disk_faults_told, slug
from cdp.benchmarks import BenchmarkInfo, add_benchmark, beir_files, describe, library, manifests
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.benchmarks.download import beir_layout, tables_of
from cdp.corpus import CorpusManifest, ReadOptions, iter_documents, looking
from cdp.corpus.checks import GUESSES, column_named, not_taken
from cdp.corpus.folders import BEIR_CORPUS, hidden
from cdp.corpus.looking import SHOWN, FilePreview, by_reason, look
from cdp.corpus.options import AUTO
from cdp.corpus.readers import READERS, RowFormat
from cdp.corpus.reading import REPEATED
from cdp.corpus.storage import CorpusUpdate, delete_corpus
from cdp.projects import Project
from cdp.query_sets import ImportOptions, QuerySet
from cdp.query_sets.given import (
    TEST,
    TRAIN,
    AddOptions,
    Answers,
    GivenQueries,
    check_file,
    divided,
    names_texts_of,
    read_file,
)
from cdp.query_sets.imports import finder_of
from cdp.services import access, corpora, projects, queries

# Folders below the given one in which a BEIR layout is looked for.
DEEPEST = 3
# Tables among which a file of queries is looked for.
MOST_TABLES = 50


@dataclass(frozen=True)
class Look:
    """A preview of an import: splits of a BEIR layout, and the first rows of documents and of queries."""

    splits: tuple[str, ...]
    documents: FilePreview
    queries: FilePreview | None = None


@dataclass(frozen=True)
class Added:
    """The result of an import. ``left_out`` counts skipped rows by reason; ``stated`` says what was decided and how;
    ``missing`` what a measured answer still lacks."""

    project: Project
    corpus: CorpusManifest
    existed: bool
    benchmark: BenchmarkInfo | None
    query_sets: tuple[QuerySet, ...]
    left_out: dict[str, int]
    stated: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def not_read(self) -> list[str]:
        """The files and rows that were not read, together by reason, and files of which a part was not."""
        shown = [rejected for rejected in self.corpus.rejected if rejected.kind != REPEATED]
        lines = by_reason(shown, all_kept=len(self.corpus.rejected) == self.corpus.n_rejected)
        lines += [note.rstrip(".") for note in looking.scanned(self.corpus)[:SHOWN]]
        return lines + looking.losses(self.corpus)[:SHOWN]


@access.writes
@contextmanager
def received(workspace: Workspace, uploads: Sequence[tuple[str, BinaryIO]]) -> Iterator[tuple[Path, Path | None]]:
    """Keep uploaded files (name and content) on disk while they are read: (the documents, a file of queries).

    One file is itself. Files of a folder, whose names are paths, keep their places in it. Judgments beside the corpus
    and queries of a BEIR layout go where it has them; of several other files, one whose rows are queries for documents
    of another file is the file of queries.
    """
    with staging(workspace.uploads) as folder:
        documents = folder / "documents"
        names = [_inside(name) for name, _ in uploads]
        tops = {name.parent for name in names if name.name in BEIR_CORPUS}
        tops &= {name.parent for name in names if name.name in library.QUERIES}

        for name, (_, data) in zip(names, uploads, strict=True):
            place = name
            if name.parent in tops and name.suffix == ".tsv":  # judgments
                place = name.parent / "qrels" / name.name
            target = documents / place
            target.parent.mkdir(parents=True, exist_ok=True)
            free, number = target, 2
            while free.exists():  # of two files of one name the second gets a number
                free, number = target.with_name(f"{number}-{target.name}"), number + 1
            keep_upload(free, data)

        if tops:
            yield documents, None
            return

        files = list(filter(Path.is_file, sorted(documents.rglob("*"))))
        asked = _of_queries(files)
        queries = None
        if len(asked) == 1:
            files.remove(asked[0])
            queries = asked[0].rename(folder / asked[0].name)

        alone = len(uploads) - len(asked) == 1
        yield files[0] if alone else documents, queries


def _inside(name: str) -> Path:
    """Return an uploaded file's name as a relative path without ``..``."""
    parts = [part for part in name.replace("\\", "/").replace("\0", "").split("/") if part not in ("", ".", "..")]
    return Path(*parts or ["upload"])


def _of_queries(files: Sequence[Path]) -> list[Path]:
    """Return those of several files whose rows are queries for documents of the others, by id or by text."""
    found = []
    tables = _tables(files)
    for path in tables if len(files) > 1 else ():
        by_id = False
        with contextlib.suppress(InputError):
            by_id = look(path).of_queries
        if by_id or names_texts_of(path, [other for other in tables if other != path]):
            found.append(path)

    return found


def _tables(files: Iterable[Path]) -> list[Path]:
    """Return those of several files that hold rows; none of more than ``MOST_TABLES``."""
    readers = (reader for reader in READERS.values() if isinstance(reader, RowFormat))
    suffixes = tuple(suffix for reader in readers for suffix in reader.suffixes)
    tables = [path for path in files if path.name.lower().removesuffix(".gz").endswith(suffixes)]
    return tables if len(tables) <= MOST_TABLES else []


def _files_of(source: Path) -> list[Path]:
    """Return the files of a folder that are no system's."""
    return [path for path in sorted(source.rglob("*")) if path.is_file() and not hidden(path.name)]


def _queries_inside(source: Path) -> Iterator[str]:
    """Yield a sentence on each file of a folder that is read with the documents, and holds queries for them."""
    for path in _of_queries(_files_of(source)):
        yield (
            f"{path.name} holds queries for documents of the other files, and was read as documents. To take it as "
            "queries, keep it outside of the folder (projects add FOLDER --queries FILE), or upload one such file "
            "beside the documents."
        )


@access.reads
def examine(
    workspace: Workspace,
    path: str | Path,
    queries: str | Path = "",
    *,
    reading: ReadOptions | None = None,
    passwords: Sequence[str] = (),
) -> Look:
    """Return the first rows of an import with the role that each column seems to have. Nothing is stored."""
    reading = reading or ReadOptions()
    source = _folder_of(permission.to_read(workspace, path))
    preview = None
    if queries:
        preview = look(permission.to_read(workspace, queries), ReadOptions.from_dict({"encoding": reading.encoding}))
    splits = library.beir_splits(source) or (() if queries else tables_of(source))
    return Look(tuple(splits), look(source, reading, passwords), preview)


@access.writes
def add(
    workspace: Workspace,
    path: str | Path,
    queries: str | Path = "",
    *,
    name: str = "",
    project: str = "",
    options: AddOptions | None = None,
    reading: ReadOptions | None = None,
    passwords: Sequence[str] = (),
    watch: Progress = silent,
) -> Added:
    """Import documents, with the queries and judgments that come with them or in the file ``queries``.

    They make a new project called ``name``, or join ``project`` (an id or a name). The same content is stored once.
    Where something fails, nothing new is left behind. ``reading`` says how files are read, ``options`` the columns;
    ``passwords`` are tried on encrypted PDFs, and stored nowhere.
    """
    options, reading = options or AddOptions(), reading or ReadOptions()
    given = permission.to_read(workspace, path)
    source = _folder_of(given)
    queries_file = permission.to_read(workspace, queries) if queries else None
    joined = projects.resolve(workspace, project) if project else None
    title = checked_title(name).strip() or looking.name_of(source)
    splits = library.beir_splits(source)
    stated = _beside(given, source)

    if not splits and not queries_file:
        with beir_layout(source, workspace) as (folder, notes):
            if folder != source:
                added = add(
                    workspace, folder, name=title, project=project, options=options, reading=reading, watch=watch
                )
                return replace(added, stated=(*stated, *notes, *added.stated))

    if not splits:
        options = _completed(options, reading, source, queries_file)
        reading = (options.replace(query_field=None, grade_field=None) if queries_file else options).reading(reading)
        if queries_file:
            check_file(queries_file, options, reading.encoding)  # before anything is stored
        else:
            stated += _queries_inside(source)

    imported = corpora.read(workspace, source, name=title, options=reading, passwords=passwords, watch=watch)
    with imported as (corpus, existed, written, growth):
        taken = _Import(workspace, corpus, options, stated, existed)
        with taken.all_or_nothing():
            taken.count_rejected()

            if splits:
                taken.take_beir(source, splits)
            else:
                taken.name_unused_columns()
                judged = GivenQueries()

                if queries_file:
                    judged = taken.read(queries_file, reading.encoding)
                elif options.with_queries:
                    for document, texts in written.items():
                        for text in texts:
                            judged.add("", text, document, 1)

                taken.take_queries(judged)

            if growth:
                taken.carry(growth)

            made_project = taken.join_project(joined, title)

    of_corpus = corpus.notes
    if splits:  # of a BEIR layout the queries and judgments are left out of the documents, and taken all the same
        of_corpus = tuple(note for note in corpus.notes if "of a BEIR folder" not in note)
    return taken.result(made_project, of_corpus)


@access.writes
def add_queries(
    workspace: Workspace, corpus: str, path: str | Path, *, name: str = "", language: str = "",
    options: AddOptions | None = None,
) -> Added:  # fmt: skip
    """Make a benchmark of a file of queries that name documents of a corpus that is here; all of them measure.

    Splits that a column names are kept. InputError where no query names a document of the corpus.
    """
    manifest = corpora.resolve_corpus(workspace, corpus)
    file = permission.to_read(workspace, path)
    options = (options or AddOptions()).replace(held_out=1.0)
    check_file(file, options, AUTO)

    taken = _Import(workspace, manifest, options, [], existed=True, name=name, language=language.strip().lower())
    with taken.all_or_nothing():
        judged = taken.read(file, AUTO)
        if not any(judged.splits.values()):
            raise InputError(
                f"None of its queries names a document of {manifest.name} ({tally(+judged.left_out)}).",
                hint="Each row needs a query, and the ID of the document that answers it.", file=file,
            )  # fmt: skip
        taken.take_queries(judged)
        project = taken.join_project(None, manifest.name, told=False)

    return taken.result(project, ())


@access.reads
def n_answered(workspace: Workspace, corpus: str, path: str | Path, options: AddOptions) -> int:
    """Return how many queries of a file name a document of this corpus that answers them; 0 for a list of queries."""
    file = permission.to_read(workspace, path)
    try:
        if look(file).document_id is None:  # a long log is not read for nothing
            return 0
        judged = read_file(file, finder_of(workspace, corpus), options, AUTO)
    except InputError:
        return 0

    return sum(map(len, judged.splits.values()))


def _folder_of(source: Path) -> Path:
    """Return the folder itself, or the only one in it (as unpacked zips look); else the only BEIR layout below it."""
    while source.is_dir() and not library.beir_splits(source):
        inside = [path for path in source.iterdir() if not path.name.startswith((".", "__"))]
        if len(inside) == 1 and inside[0].is_dir():
            source = inside[0]
            continue
        below = [path.parent for name in BEIR_CORPUS for path in source.rglob(name)]
        near = {path for path in below if len(path.relative_to(source).parts) <= DEEPEST and library.beir_splits(path)}
        return near.pop() if len(near) == 1 else source
    return source


def _beside(given: Path, source: Path) -> list[str]:
    """Return a sentence on the given folder's files outside of the folder that is read; none if there are none."""
    if given == source or not given.is_dir():
        return []
    names = []
    for path in filter(Path.is_file, sorted(given.rglob("*"))):
        name = path.relative_to(given).as_posix()
        if not path.is_relative_to(source) and not hidden(name):
            names.append(name)
    if not names:
        return []

    return [f"{counted(len(names), 'file')} beside {source.name} left out: {some(names, SHOWN)}."]


def _completed(options: AddOptions, reading: ReadOptions, source: Path, queries_file: Path | None) -> AddOptions:
    """Return the options with the columns that the first rows show where none was named."""
    seen = look(source, reading)
    if not seen.columns:
        return options
    if (
        queries_file is None
        and seen.of_queries
        and seen.n_files == 1
        and not (options.text_field or reading.text_field)
    ):
        raise InputError(
            f"It holds queries, each with the {seen.document_id} that answers it, and no documents.",
            hint="Hand it in together with the documents, or for documents that are here: on Home, or by `benchmarks "
            "add FILE --corpus ID`.", file=source,
        )  # fmt: skip
    # What the first of several tables calls its columns, the others need not.
    others = _tables(_files_of(source)) if seen.n_files > 1 else []
    guessed = {"text_field": seen.text, "query_field": None if queries_file else seen.queries}
    changes = {}
    for name, column in guessed.items():
        chosen = getattr(options, name) or getattr(reading, name)
        if chosen or all(_has(other, column) for other in others):
            changes[name] = chosen or column

    return options.replace(**changes)


def _has(path: Path, column: str | None) -> bool:
    with contextlib.suppress(InputError):
        return column in look(path).columns
    return True


@dataclass
class _Import:
    """An import in progress: its corpus, and what was stored so far."""

    workspace: Workspace
    corpus: CorpusManifest
    options: AddOptions
    stated: list[str]
    existed: bool
    name: str = ""
    language: str = ""
    benchmark: str = ""
    earlier: str = ""
    sets: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Delete what this import has stored if it fails; earlier content stays."""
        workspace = self.workspace
        earlier = {q.id for q in query_sets.list_query_sets(workspace)} | set(library.list_names(workspace))

        try:
            yield
        except BaseException:
            with contextlib.suppress(CdpError, OSError):
                for made in query_sets.list_query_sets(workspace):
                    if made.corpus_id == self.corpus.id and made.id not in earlier:
                        query_sets.delete(workspace, made.id)
                if self.benchmark and self.benchmark not in earlier:
                    library.remove_benchmark(self.benchmark, workspace)
                if not self.existed:
                    delete_corpus(workspace, self.corpus.id)

            raise

    def carry(self, growth: CorpusUpdate) -> None:
        """Carry over queries and judgments of the earlier version, unless the import brought its own."""
        self.earlier = growth.previous.id
        sets, benchmarks, said = corpora.carry(
            self.workspace, growth, self.corpus, imported=not self.sets, judged=not self.benchmark
        )
        self.sets += sets
        self.benchmark = self.benchmark or next(iter(benchmarks), "")
        self.stated += said

    def count_rejected(self) -> None:
        """Count rejected rows, and texts that repeat another one."""
        corpus = self.corpus
        files = Counter(rejected.kind for rejected in corpus.rejected if rejected.whole_file)
        for kind, n in corpus.rejected_counts.items():
            if kind != REPEATED:
                self.left_out[f"rows not taken ({kind})"] += n - files[kind]

        self.left_out[f"{corpus.unit}s that repeat another one"] = corpus.rejected_counts.get(REPEATED, 0)

    def name_unused_columns(self) -> None:
        """State the columns that were not used."""
        options = self.options
        named = {"id": options.id_field, "title": options.title_field, "text": options.text_field}
        guessed = {name for role, column in named.items() if column is None for name in GUESSES[role]}
        known, guessed = {*named.values(), options.query_field}, guessed | {*GUESSES["queries"]}
        unused = [n for n in self.corpus.found_fields if n not in known and not column_named([n], [*guessed])]
        if unused:
            self.stated.append(
                f"{not_taken(unused)} If one holds ids, titles or queries, choose it and add the file again."
            )

    def take_beir(self, source: Path, splits: Sequence[str]) -> None:
        """Store the benchmark of a BEIR layout, and a query set of each split but test."""
        self._add_benchmark(lambda name: add_benchmark(source, self.workspace, name))
        folder = self.workspace.benchmark(self.benchmark)
        texts = beir_files.read_queries(part(folder, "queries"))
        for split, file in qrels_files(folder).items():
            if split == TEST:
                continue

            grades = beir_files.read_qrels(file).grades
            self._store_queries(split, ((texts[query].text, grades[query]) for query in grades), {"splits": [split]})

        if TEST in splits:
            self.stated.append("The split test is for measuring: its queries are in the benchmark alone.")

    def take_queries(self, judged: GivenQueries) -> None:
        """Store the benchmark and the query sets, by the splits that are named or by documents that are drawn."""
        self.left_out.update(judged.left_out)
        if not any(judged.splits.values()):
            return

        facts: dict[str, Any] = {"made_of": self.corpus.source, "corpus": self.corpus.id, "unit": self.corpus.unit}
        splits = judged.splits

        if not judged.named:
            splits, drawn, sentence = divided(splits.get("", {}), self.options)
            facts |= drawn
            self.stated += filter(None, [sentence])

        measured = {split: texts for split, texts in splits.items() if split != TRAIN}
        if measured:
            self._make_benchmark(measured, facts)

        asked = {text.casefold() for texts in measured.values() for text in texts}
        for split, texts in splits.items():
            usable = texts
            if split == TRAIN:
                usable = {text: grades for text, grades in texts.items() if text.casefold() not in asked}
                self.left_out["training queries that the benchmark asks too"] += len(texts) - len(usable)
            elif split == TEST or not judged.named:
                continue
            self._store_queries(split, usable.items(), {"splits": [split], **facts})

    def _store_queries(
        self, split: str, judged: Iterable[tuple[str, Mapping[str, int]]], facts: Mapping[str, Any]
    ) -> None:
        """Store the queries of (query, {document: grade}) as a set; a split without any is stated."""
        pairs: dict[str, list[str]] = {}
        for text, grades in judged:
            for document, grade in grades.items():
                if grade > 0:
                    pairs.setdefault(document, []).append(text)

        options = ImportOptions.from_dict({"origin": self.options.origin})
        title = f"{self.corpus.name} {split} queries"

        try:
            done = queries.take(self.workspace, pairs.items(), self.corpus.id, title, options=options, facts=facts)
        except InputError as error:
            self.stated.append(f"Not taken: the split {split} as queries. {error}")
            return

        self.sets.append(done.query_set.id)
        self.left_out[f"queries of {split} that could not be stored"] += done.n_rejected

    def _make_benchmark(self, splits: Mapping[str, Answers], facts: Mapping[str, Any]) -> None:
        ids: dict[str, str] = {}
        judged: dict[str, dict[str, Mapping[str, int]]] = {}
        for split, texts in splits.items():
            judged[split] = {ids.setdefault(text, f"q{len(ids) + 1}"): grades for text, grades in texts.items()}

        texts_by_id = {query: text for text, query in ids.items()}
        manifest = manifests.Manifest(language=self.language, source=dict(facts), notes=tuple(self.stated))

        def make(name: str) -> str:
            documents = iter_documents(self.workspace, self.corpus.id)
            return library.make(self.workspace, name, documents, texts_by_id, judged, manifest)

        self._add_benchmark(make)

    def _add_benchmark(self, make: Callable[[str], str]) -> None:
        """Add under the stated name, else the corpus's, or the next free one; the same content again is that one."""
        refused: InputError | None = None
        wanted = slug(self.name or self.corpus.name, fallback="benchmark")
        names = library.list_names(self.workspace)
        for name in (wanted, *(f"{wanted}-{number}" for number in range(2, len(names) + 3))):
            try:
                with disk_faults_told("The import"):
                    self.benchmark = make(name)
                    return
            except InputError as error:
                if name not in names:
                    raise
                refused = error
        raise refused or InputError("The benchmark could not be named.")

    def read(self, file: Path, encoding: str) -> GivenQueries:
        """Read a file of queries for documents of the corpus; how it was read is stated."""
        judged = read_file(file, finder_of(self.workspace, self.corpus.id), self.options, encoding)
        self.stated += judged.notes
        return judged

    def result(self, project: Project, notes: Sequence[str]) -> Added:
        """Return what was stored, and what a measured answer lacks; ``notes`` are of the corpus."""
        workspace = self.workspace
        sets = tuple(query_sets.load(workspace, set_id) for set_id in self.sets)
        benchmark = describe(workspace.benchmark(self.benchmark), workspace) if self.benchmark else None
        missing = []

        if benchmark is None:
            missing.append(
                "No judged queries: to measure retrievers on real queries, have a query log judged, or add a "
                "BEIR folder or a file with a query and a document's ID in each row."
            )

        if not any(q.kind == "human" and "train" in q.parameters.get("splits", ["train"]) for q in sets):
            missing.append("No human training queries (optional: an LLM can write them).")

        left_out = dict(+self.left_out)  # what was counted as 0 is no reason
        return Added(
            project, self.corpus, self.existed, benchmark, sets, left_out, (*notes, *self.stated), tuple(missing)
        )

    def join_project(self, joined: Project | None, title: str, *, told: bool = True) -> Project:
        """Return the project that the import joins: the named one, the one that has the corpus, else a new one. Where
        none was named, it is ``told`` which one was joined."""
        workspace, corpus = self.workspace, self.corpus.id
        benchmarks = list(filter(None, [self.benchmark]))
        owners: list[Project] = []
        for id in filter(None, (corpus, self.earlier)):
            owners += projects.projects_of(workspace, "corpus", id)

        owner = joined or next((p for p in owners if not p.implied), None)
        if owner is None:
            name = projects.free_name(workspace, title)
            return projects.create(workspace, name, corpora=[corpus], benchmarks=benchmarks)

        if told and joined is None and (self.earlier or self.existed):
            what = "the earlier version" if self.earlier else "these documents"
            self.stated.append(f"No new project: {owner.name} has {what}, and was joined.")

        return projects.add_members(workspace, owner.id, corpora=[corpus], benchmarks=benchmarks)
