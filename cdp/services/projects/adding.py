"""The one import: what somebody brings becomes a project with its corpus, its benchmark and the queries of people.

- A folder or a zip in BEIR layout gives all three: its judgments the benchmark, each split but test a query set.
- Rows with queries beside the text, or a second file with queries for the documents, give the corpus and the
  queries. Where a column names splits, they are kept; else documents are drawn whose queries become the split
  dev of a benchmark, and the queries of all others are the query set.
- Documents alone give a corpus, and it is said what is missing for a measured answer.

Nothing is thinned out in silence: what was not taken is counted by its reason.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import projects, query_sets
from cdp.base.errors import CdpError, InputError
from cdp.base.text import checked_title
from cdp.base.workspace import Workspace, disk_faults_told, slug
from cdp.benchmarks import BenchmarkInfo, add_benchmark, describe, library, made
from cdp.corpus import CorpusManifest, ReadOptions, iter_documents
from cdp.corpus.checks import FILE_KINDS, GUESSES
from cdp.corpus.looking import Glimpse, look
from cdp.corpus.storage import delete_corpus
from cdp.projects import Project
from cdp.query_sets import ImportOptions, QuerySet
from cdp.query_sets.rows import beir_layout
from cdp.services import corpora, queries
from cdp.services import projects as service
from cdp.services.projects import questions
from cdp.services.projects.questions import TEST, TRAIN, AddOptions, Answers, Judged
from cdp.services.projects.receiving import SHOWN, beside, folder_of
from cdp.services.sharing import access, paths


@dataclass(frozen=True)
class Look:
    """What somebody brings: splits of a BEIR layout, and the first rows of documents and of queries."""

    splits: tuple[str, ...]
    documents: Glimpse
    queries: Glimpse | None = None


@dataclass(frozen=True)
class Added:
    """What came of an import. ``left_out`` counts what was not taken by its reason; ``stated`` says what was decided
    and how; ``missing`` what a measured answer still lacks."""

    project: Project
    corpus: CorpusManifest
    existed: bool
    benchmark: BenchmarkInfo | None
    query_sets: tuple[QuerySet, ...]
    left_out: dict[str, int]
    stated: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass
class _Outcome:
    """What has come of an import so far."""

    benchmark: str = ""
    sets: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    stated: list[str] = field(default_factory=list)


@access.reads
def examine(
    workspace: Workspace, path: str | Path, queries: str | Path = "", *, reading: ReadOptions | None = None
) -> Look:
    """The first rows of what would be added, with what each column seems to be. Nothing is stored."""
    reading = reading or ReadOptions()
    source = folder_of(paths.to_read(workspace, path))
    splits = tuple(beir_layout(source))
    asked = None
    if queries:
        asked = look(paths.to_read(workspace, queries), ReadOptions.from_dict({"encoding": reading.encoding}))
    return Look(splits, look(source, reading), asked)


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
) -> Added:
    """Take in documents, with the queries and judgments that come with them or in the file ``queries``.

    They make a new project called ``name``, or join ``project`` (an id or a name). What was added before is there once.
    Where something fails, nothing new is left behind.
    ``reading`` says how files are read, ``options`` which column is what.
    """
    options, reading = options or AddOptions(), reading or ReadOptions()
    given = paths.to_read(workspace, path)
    source = folder_of(given)
    asked = paths.to_read(workspace, queries) if queries else None
    joined = service.resolve(workspace, project) if project else None
    title = checked_title(name).strip() or corpora.name_of(source)
    splits = beir_layout(source)
    outcome = _Outcome(stated=beside(given, source))
    if not splits:
        options = _completed(options, reading, source, asked, outcome)
        reading = (options.replace(query_field=None) if asked else options).reading(reading)
        if asked:
            questions.columns_of(asked, options, reading.encoding)  # before anything is stored
    with (
        corpora.read(workspace, source, name=title, options=reading) as (corpus, existed, written),
        _all_or_nothing(workspace, corpus, existed, outcome),
    ):
        outcome.left_out.update({f"rows not taken ({kind})": n for kind, n in corpus.rejected_counts.items()})
        _files_not_read(corpus, outcome)
        if splits:
            _beir(workspace, source, corpus, splits, options, outcome)
        else:
            _unused(corpus, options, outcome)
            judged = _of_file(workspace, corpus, asked, options, reading) if asked else Judged()
            if not asked and options.with_queries:
                for document, texts in written:
                    for text in texts:
                        judged.add("", questions.one_line(text), document, 1)
            _questions(workspace, corpus, judged, options, outcome)
        made_project = _project(workspace, joined, title, corpus, outcome)
    sets = tuple(query_sets.load(workspace, set_id) for set_id in outcome.sets)
    benchmark = describe(workspace.benchmark(outcome.benchmark), workspace) if outcome.benchmark else None
    left_out = {reason: n for reason, n in outcome.left_out.items() if n}
    # Of a BEIR layout the queries and judgments are left out of the documents, and taken all the same.
    notes = [note for note in corpus.notes if not (splits and "of a BEIR folder" in note)]
    stated = (*notes, *outcome.stated)
    return Added(made_project, corpus, existed, benchmark, sets, left_out, stated, _missing(benchmark, sets))


@contextlib.contextmanager
def _all_or_nothing(workspace: Workspace, corpus: CorpusManifest, existed: bool, outcome: _Outcome) -> Iterator[None]:
    """Delete what this import has stored so far if it fails; what was there before stays."""
    earlier = {q.id for q in query_sets.list_query_sets(workspace)} | set(library.list_names(workspace))
    try:
        yield
    except BaseException:
        with contextlib.suppress(CdpError, OSError):
            for set_id in set(outcome.sets) - earlier:
                query_sets.delete(workspace, set_id)
            if outcome.benchmark and outcome.benchmark not in earlier:
                library.remove_benchmark(outcome.benchmark, workspace)
            if not existed:
                delete_corpus(workspace, corpus.id)
        raise


def _completed(
    options: AddOptions, reading: ReadOptions, source: Path, asked: Path | None, outcome: _Outcome
) -> AddOptions:
    """The options with the columns that the first rows show where none was named."""
    seen = look(source, reading)
    if seen.texts:
        if seen.n_files == 1 and reading.split == "file" and seen.parts > 1:
            outcome.stated.append(
                f"{seen.file} is one document, though it has {seen.parts:,} parts between blank lines. To make "
                "documents of them, set split to paragraphs, or to headings."
            )
        return options
    changes = {"text_field": options.text_field or reading.text_field or seen.text}
    if asked is None:
        changes["query_field"] = options.query_field or reading.query_field or seen.queries
    return options.replace(**changes)


def _files_not_read(corpus: CorpusManifest, outcome: _Outcome) -> None:
    """Whole files that were not taken are named, each with its reason."""
    not_read = [rejected for rejected in corpus.rejected if rejected.kind in FILE_KINDS]
    for kind in FILE_KINDS:
        outcome.left_out.pop(f"rows not taken ({kind})", None)
    outcome.stated += [f"Not read: {rejected.file}. {rejected.reason}" for rejected in not_read[:SHOWN]]
    if len(not_read) > SHOWN:
        outcome.stated.append(f"Nor were {len(not_read) - SHOWN:,} more files: the corpus's page lists them.")


def _unused(corpus: CorpusManifest, options: AddOptions, outcome: _Outcome) -> None:
    """Columns that became nothing are named."""
    named = {"id": options.id_field, "title": options.title_field, "text": options.text_field}
    guessed = {name for role, field in named.items() if field is None for name in GUESSES[role]} | {*GUESSES["queries"]}
    known = {*named.values(), options.query_field}
    unused = [name for name in corpus.found_fields if name not in known and name.strip().lower() not in guessed]
    if unused:
        shown = ", ".join(unused[:10]) + (f" and {len(unused) - 10} more" if len(unused) > 10 else "")
        how = (
            "If one holds ids, titles or queries, name it (id_field, title_field, query_field) and add the file again."
        )
        outcome.stated.append(f"Columns that were not taken: {shown}. {how}")


def _beir(
    workspace: Workspace,
    source: Path,
    corpus: CorpusManifest,
    splits: Sequence[str],
    options: AddOptions,
    outcome: _Outcome,
) -> None:
    """The benchmark of a BEIR layout, and a query set of each split but test."""

    def take(name: str) -> str:
        return add_benchmark(source, workspace, name)

    outcome.benchmark = _under_a_free_name(workspace, corpus, take)
    for split in splits:
        if split == TEST:
            continue
        wanted = ImportOptions.from_dict({"split": split, "origin": options.origin})
        with _counted(outcome, f"the split {split} as queries"):
            done = queries.import_file(
                workspace, source, corpus.id, name=f"{corpus.name} {split} queries", options=wanted
            )
            outcome.sets.append(done.query_set.id)
            outcome.left_out[f"judgments of {split} that gave no query"] += done.n_rejected
    if TEST in splits:
        outcome.stated.append("The split test is for measuring: its queries are in the benchmark alone.")


def _of_file(
    workspace: Workspace, corpus: CorpusManifest, path: Path, options: AddOptions, reading: ReadOptions
) -> Judged:
    """The queries of a file of their own, as far as their documents are in the corpus."""
    known = {document.id for document in iter_documents(workspace, corpus.id)}
    return questions.of_file(path, known, options, reading.encoding)


def _questions(
    workspace: Workspace, corpus: CorpusManifest, judged: Judged, options: AddOptions, outcome: _Outcome
) -> None:
    """The benchmark and the query sets of such queries, by the splits that they name or by documents that are drawn."""
    outcome.left_out.update(judged.left_out)
    if not any(judged.splits.values()):
        return
    facts: dict[str, Any] = {"made_of": corpus.source, "corpus": corpus.id}
    splits = judged.splits
    if not judged.named:
        splits, drawn, said = questions.divided(splits.get("", {}), options)
        facts |= drawn
        outcome.stated += filter(None, [said])
    measured = {split: texts for split, texts in splits.items() if split != TRAIN}
    if measured:
        outcome.benchmark = _benchmark(workspace, corpus, measured, facts, outcome)
    for split, texts in splits.items():
        if split == TRAIN:
            usable = questions.without(texts, measured)
            outcome.left_out["training queries that the benchmark asks too"] += len(texts) - len(usable)
        elif split == TEST or not judged.named:
            continue
        else:
            usable = texts
        pairs = questions.by_document(usable)
        if pairs:
            with _counted(outcome, f"the split {split} as queries"):
                _query_set(workspace, corpus, split, pairs, {"splits": [split], **facts}, options.origin, outcome)


def _query_set(
    workspace: Workspace,
    corpus: CorpusManifest,
    split: str,
    pairs: Mapping[str, list[str]],
    facts: Mapping[str, Any],
    origin: str,
    outcome: _Outcome,
) -> None:
    """Store the queries of one split as a query set."""
    done = query_sets.import_queries(
        pairs.items(),
        workspace,
        corpus.id,
        f"{corpus.name} {split} queries",
        options=ImportOptions.from_dict({"origin": origin}),
    )
    outcome.sets.append(done.query_set.id)
    parameters = {**done.query_set.parameters, **facts}
    query_sets.update(workspace, done.query_set.id, parameters=parameters)
    queries.measure(workspace, done.query_set.id)
    outcome.left_out[f"queries of {split} that could not be stored"] += done.n_rejected


def _benchmark(
    workspace: Workspace,
    corpus: CorpusManifest,
    splits: Mapping[str, Answers],
    facts: Mapping[str, Any],
    outcome: _Outcome,
) -> str:
    """The benchmark of these queries over the whole corpus."""
    ids = {text: f"q{n}" for n, text in enumerate(dict.fromkeys(t for texts in splits.values() for t in texts), 1)}
    judged = {split: {ids[text]: grades for text, grades in texts.items()} for split, texts in splits.items()}
    texts_by_id = {query: text for text, query in ids.items()}

    def take(name: str) -> str:
        return made.make(
            workspace,
            name,
            iter_documents(workspace, corpus.id),
            texts_by_id,
            judged,
            source=dict(facts),
            notes=tuple(outcome.stated),
        )

    return _under_a_free_name(workspace, corpus, take)


def _under_a_free_name(workspace: Workspace, corpus: CorpusManifest, take: Any) -> str:
    """The benchmark under the corpus's name, or the next free one; the same content again is the one that is there."""
    refused: InputError | None = None
    for name in made.free_name(workspace, slug(corpus.name, fallback="benchmark")):
        taken = name in library.list_names(workspace)
        try:
            with disk_faults_told("The import"):
                return str(take(name))
        except InputError as error:
            if not taken:
                raise
            refused = error
    raise refused or InputError("The benchmark could not be named.")


@contextlib.contextmanager
def _counted(outcome: _Outcome, what: str) -> Iterator[None]:
    """What cannot be taken of a part costs that part, and is said."""
    try:
        yield
    except InputError as error:
        outcome.stated.append(f"Not taken: {what}. {error}")


def _project(
    workspace: Workspace, joined: Project | None, title: str, corpus: CorpusManifest, outcome: _Outcome
) -> Project:
    """The project that the import joins: the one named, the one that has the corpus already, else a new one."""
    benchmarks = [outcome.benchmark] if outcome.benchmark else []
    owner = joined or next(
        (project for project in service.projects_of(workspace, "corpus", corpus.id) if not project.implied), None
    )
    if owner is not None:
        return service.add_members(workspace, owner.id, corpora=[corpus.id], benchmarks=benchmarks)
    taken = {project.name.casefold() for project in projects.list_projects(workspace)}
    numbers = range(2, len(taken) + 3)
    free = next(n for n in (title, *(f"{title} {number}" for number in numbers)) if n.casefold() not in taken)
    return service.create(workspace, free, corpora=[corpus.id], benchmarks=benchmarks)


def _missing(benchmark: BenchmarkInfo | None, sets: Sequence[QuerySet]) -> tuple[str, ...]:
    """What a measured answer still lacks."""
    missing = []
    if benchmark is None:
        missing.append(
            "A benchmark: queries with the documents that answer them, as a BEIR folder or a file with a query "
            "and a document's id in each row. Without one no retriever can be measured on these documents."
        )
    if not any("train" in q.parameters.get("splits", ["train"]) for q in sets):
        missing.append("Training queries of people. Queries that a model writes can take their place.")
    return tuple(missing)
