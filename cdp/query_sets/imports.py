"""Queries that exist already, as a query set: from a file with a document per row, or from a folder in BEIR layout.

Rows are streamed. A row that cannot be used is rejected with its line and reason, counted, and kept in
``failures.jsonl``; nothing is dropped silently.
"""

from __future__ import annotations

import dataclasses
import errno
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.base.errors import SHOWN_PROBLEMS, InputError, WorkspaceError
from cdp.base.failures import Failures, describe
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, append_jsonl, sha256_file, slug, write_json
from cdp.corpus import CorpusManifest, load_documents, load_manifest
from cdp.corpus.checks import storable
from cdp.corpus.origin import KIND_OF, UNKNOWN, described
from cdp.corpus.sources import shown_name
from cdp.query_sets import store
from cdp.query_sets.rows import ImportOptions, QueryRow, beir_splits, read_pairs, read_path
from cdp.query_sets.store import Files, QuerySet, known_language, put_in_order

BLOCK = 1000
UNSTORABLE = "the query holds NUL or half of a surrogate pair, which cannot be stored"


@dataclass(frozen=True)
class ImportedQueries:
    """The new set, and what was rejected: the number of rows (or queries) and the first 20 with line and reason."""

    query_set: QuerySet
    n_rejected: int
    rejected: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What was left out on purpose."""


def import_queries(
    source: Path | Iterable[tuple[str, str | Iterable[str]]],
    workspace: Workspace,
    corpus_id: str,
    name: str = "",
    *,
    kind: str = "",
    method: str = "imported",
    language: str = "",
    options: ImportOptions | None = None,
) -> ImportedQueries:
    """Store the queries of ``source`` (a file, a BEIR folder, or (document id, query or queries) pairs) as a set.

    ``options`` say how a file is read and who wrote the queries; ``kind``, where it is given, is what the set is. The
    same queries under the same name are stored once; whoever says where they are from changes what was said before.
    InputError where nothing could be used.
    """
    options = options or ImportOptions()
    stated = described(options.origin, options.model, options.prompt, options.licence, {})
    corpus, name = load_manifest(workspace, corpus_id), shown_name(name)
    ids = load_documents(workspace, corpus.id, columns=["id"]).column("id").to_pylist()
    positions = {document_id: at for at, document_id in enumerate(ids)}
    splits_read: list[str] = []
    left_out: list[str] = []
    if isinstance(source, Path):
        splits_read, left_out = beir_splits(source, options)
        rows, label = read_path(source, options), name or shown_name(source.name.split(".")[0])
    else:
        rows, label = read_pairs(source), name or "imported"
    try:
        with staging(workspace.queries) as folder:
            set_folder = folder / "set"
            set_folder.mkdir()
            rejected = _Rejections(Files(set_folder).failures)
            negatives = _write(rows, positions, set_folder, rejected, corpus.id, source)
            query_set = _described(set_folder, corpus, label, negatives, rejected.n, language)
            stated["parameters"] |= query_set.parameters
            query_set = dataclasses.replace(query_set, method=method, **{**stated, "kind": kind or stated["kind"]})
            if splits_read:  # says later what a benchmark of the same folder judges
                splits = {"splits": splits_read, **({"left_out": left_out} if left_out else {})}
                query_set = dataclasses.replace(query_set, parameters={**query_set.parameters, **splits})
            notes = tuple(f"Left out: the split {split}, which is for measuring." for split in left_out)
            stored = install(workspace, query_set, set_folder)
            return ImportedQueries(stored, rejected.n, tuple(rejected.first), notes)
    except OSError as error:
        raise WorkspaceError(
            f"The queries could not be stored in {workspace.queries}: {error.strerror or error}.",
            hint="Is the disk full or read-only?",
        ) from error


def _write(
    rows: Iterable[QueryRow],
    positions: Mapping[str, int],
    folder: Path,
    rejected: _Rejections,
    corpus_id: str,
    source: object,
) -> int:
    """Write ``queries.jsonl`` and ``failures.jsonl``; how many hard negatives there are. InputError without a query."""
    staged = folder / "staged.jsonl"
    unknown, negatives = _stage(rows, positions, staged, rejected)
    if not staged.exists():
        many = rejected.n > 0 and unknown == rejected.n
        raise InputError(
            f"None of the {rejected.n} rows belongs to a document of {corpus_id}."
            if many
            else f"There is no query to import ({rejected.n} rows rejected).",
            hint=" ".join(rejected.first[:3]) or "The file is empty.",
            file=source if isinstance(source, Path) else None,
        )
    put_in_order(staged, merge=_Merge(rejected), destination=Files(folder).queries)
    staged.unlink()
    rejected.flush()
    return negatives


def _described(
    folder: Path, corpus: CorpusManifest, label: str, negatives: int, n_rejected: int, language: str
) -> QuerySet:
    """The manifest of what was written."""
    totals = store.count(Files(folder).queries)
    # The hash of a set is over ids and queries; with negatives, over the whole lines.
    content_hash = sha256_file(Files(folder).queries)[:16] if negatives else totals.content_hash
    return QuerySet(
        id=f"{slug(label)}-{content_hash[:8]}",
        name=label,
        corpus_id=corpus.id,
        corpus_hash=corpus.content_hash,
        generator="import",
        per_doc=totals.most_per_document,
        language=language or known_language(corpus),
        complete=True,
        n_documents=totals.n_documents,
        n_queries=totals.n_queries,
        n_failures=n_rejected,
        content_hash=content_hash,
        parameters={"hard_negatives": negatives} if negatives else {},
    )


def install(workspace: Workspace, query_set: QuerySet, set_folder: Path) -> QuerySet:
    """Give the finished set its place, manifest and all; the same queries under the same name are there already."""
    write_json(Files(set_folder).manifest, dataclasses.asdict(query_set))
    folder = workspace.query_set(query_set.id)
    while True:
        if Files(folder).manifest.exists():
            present = store.load(workspace, query_set.id)
            if present.corpus_id == query_set.corpus_id:
                return _with_origin(workspace, present, query_set)
            raise InputError(
                f"A query set {query_set.id!r} of another corpus has the same queries.", hint="Name it anew."
            )
        try:
            set_folder.rename(folder)
            return query_set
        except OSError as error:  # another import was faster, or a folder without a manifest is in the way
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if not Files(folder).manifest.exists():  # no set: a process was killed while it made or removed one
            with suppress(FileNotFoundError):
                folder.rename(set_folder.with_name(f"unfinished-{secrets.token_hex(4)}"))


def _with_origin(workspace: Workspace, present: QuerySet, stated: QuerySet) -> QuerySet:
    """The set that was there, with what its second import says of its origin and licence, if it says anything."""
    if stated.kind == KIND_OF[UNKNOWN] and not stated.licence:
        return present
    fields = ("kind", "model", "prompt_hash", "licence", "parameters")
    changes = {name: getattr(stated, name) for name in fields if getattr(stated, name) != getattr(present, name)}
    return store.update(workspace, present.id, **changes) if changes and present.imported else present


class _Rejections:
    """Counts, keeps the first 20 for people and writes all to a file."""

    def __init__(self, path: Path) -> None:
        self.n = 0
        self.first: list[str] = []
        self.failures = Failures(path, "import", unit="row")
        self._path = path
        self._buffer: list[dict[str, Any]] = []

    def add(self, reason: str, *, line: int | None = None, document_id: str = "") -> None:
        self.n += 1
        if len(self.first) < SHOWN_PROBLEMS:
            self.first.append(f"Line {line}: {reason}." if line is not None else f"{document_id}: {reason}.")
        self._buffer.append({"line": line, "document_id": document_id, "reason": reason})
        if len(self._buffer) >= BLOCK:
            self.flush()

    def unexpected(self, error: Exception, row: QueryRow) -> None:
        """A row that our own code could not handle; RepeatedFailureError after twenty of them in a row."""
        self.failures.record(f"line {row.line}", error, " | ".join(row.queries), line=row.line)
        self.n += 1
        if len(self.first) < SHOWN_PROBLEMS:
            self.first.append(f"Line {row.line}: {describe(error)}")

    def flush(self) -> None:
        append_jsonl(self._path, self._buffer)
        self._buffer = []


def _stage(
    rows: Iterable[QueryRow], positions: Mapping[str, int], path: Path, rejected: _Rejections
) -> tuple[int, int]:
    """Write the usable rows, in the order of the source; how many named an unknown document, and how many hard
    negatives there are. A row that our own code cannot handle is written down with its traceback, and rejected."""
    unknown = negatives = 0
    block: list[dict[str, Any]] = []
    for row in rows:
        if not row.reason and row.document_id not in positions:
            unknown += 1
            rejected.add(f"there is no document {row.document_id!r}", line=row.line, document_id=row.document_id)
            continue
        try:
            line = _line_of(row, positions, rejected)
        except Exception as error:
            rejected.unexpected(error, row)
            continue
        rejected.failures.done()
        if line is None:
            continue
        negatives += sum(map(len, line.get("negatives", ())))
        block.append(line)
        if len(block) >= BLOCK:
            append_jsonl(path, block)
            block = []
    append_jsonl(path, block)
    return unknown, negatives


def _line_of(row: QueryRow, positions: Mapping[str, int], rejected: _Rejections) -> dict[str, Any] | None:
    """What is stored of a row; None where nothing of it can be used. What cannot is rejected."""
    texts = [" ".join(query.split()) for query in row.queries]
    problems = ["" if text and not storable(text)[1] else UNSTORABLE if text else "a query is empty" for text in texts]
    usable = [index for index, problem in enumerate(problems) if not problem]
    if row.reason or not usable:
        reason = row.reason or (UNSTORABLE if any(texts) else "the query is empty")
        rejected.add(reason, line=row.line, document_id=row.document_id)
        return None
    for problem in filter(None, problems):
        rejected.add(problem, line=row.line, document_id=row.document_id)
    line = {
        "document_id": row.document_id,
        "position": positions[row.document_id],
        "queries": [texts[index] for index in usable],
    }
    if row.negatives:
        line["negatives"] = [_known(row.negatives[index], positions, row, rejected) for index in usable]
    return line


def _known(names: Iterable[str], positions: Mapping[str, int], row: QueryRow, rejected: _Rejections) -> list[str]:
    """The hard negatives that are documents of the corpus; the others are counted as rejected."""
    negatives = []
    for name in names:
        if name in positions:
            negatives.append(name)
        else:
            rejected.add(f"there is no document {name!r}, named as a negative", line=row.line)
    return negatives


class _Merge:
    """All queries of one document in one line; a repeated query is counted as rejected."""

    def __init__(self, rejected: _Rejections) -> None:
        self._rejected = rejected

    def __call__(self, lines: list[dict[str, Any]]) -> dict[str, Any]:
        queries = [query for line in lines for query in line["queries"]]
        distinct = list(dict.fromkeys(queries))
        for _ in range(len(queries) - len(distinct)):
            self._rejected.add("a query is repeated", document_id=lines[0]["document_id"])
        merged = {**lines[0], "queries": distinct}
        if any("negatives" in line for line in lines):
            named: dict[str, dict[str, None]] = {query: {} for query in distinct}
            for line in lines:
                for query, names in zip(line["queries"], line.get("negatives", ()), strict=False):
                    named[query].update(dict.fromkeys(names))
            merged["negatives"] = [list(names) for names in named.values()]
        return merged
