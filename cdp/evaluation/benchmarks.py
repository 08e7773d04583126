"""Benchmarks in BEIR layout: documents, the queries of one split, and who judged what relevant.

::

    corpus.jsonl[.gz]   queries.jsonl[.gz]   qrels/<split>.tsv      and, as a courtesy, SOURCE.md or README.md
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cdp.errors import InputError
from cdp.evaluation.beir_files import Judgments, QueryLine, digest_of, read_corpus, read_qrels, read_queries
from cdp.records import Document

_LAYOUT = "A benchmark is a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv."
_QRELS_ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
_NAMED = 5


@dataclass(frozen=True)
class Benchmark:
    """One split of a benchmark, ready to be evaluated on.

    ``documents`` holds what is encoded (title, space, text) in the order of the corpus file, ``queries`` the texts of
    the judged queries in the order of the queries file. ``qrels`` {query: {document: grade}} names no other query; a
    document may be missing from the corpus only where ``allow_unknown`` was asked for. ``excluded`` {query: documents}
    are never retrieved for that query. ``hash`` covers the whole benchmark: documents, queries and the judgments of
    all its splits; ``documents_hash`` covers the documents' texts alone, so that equal texts share embeddings.
    """

    name: str
    folder: Path
    split: str
    document_ids: list[str] = field(repr=False)
    documents: list[str] = field(repr=False)
    query_ids: list[str] = field(repr=False)
    queries: list[str] = field(repr=False)
    qrels: dict[str, dict[str, int]] = field(repr=False)
    excluded: dict[str, tuple[str, ...]] = field(repr=False)
    hash: str
    documents_hash: str
    licence: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def n_documents(self) -> int:
        return len(self.documents)

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    def excluded_numbers(self) -> list[list[int]] | None:
        """Per query the positions of the documents that it must not retrieve; None if there are none at all."""
        if not self.excluded:
            return None
        numbers = {document: i for i, document in enumerate(self.document_ids)}
        return [sorted({numbers[d] for d in self.excluded.get(query, ())}) for query in self.query_ids]


def texts_hash(texts: Iterable[str]) -> str:
    """Hex SHA-256 of texts in order; the boundaries between them count."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def part(folder: Path, name: str) -> Path:
    """``corpus.jsonl`` or ``queries.jsonl`` of a folder, compressed or not. InputError says what is missing."""
    for ending in ("", ".gz"):
        path = folder / f"{name}.jsonl{ending}"
        if path.is_file():
            return path
    raise InputError(f"{folder} has no {name}.jsonl (or {name}.jsonl.gz).", hint=_LAYOUT)


def qrels_files(folder: Path) -> dict[str, Path]:
    """{split: its file}, ``test`` first, then by name. InputError where there is none."""
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.", hint=_LAYOUT)
    found: dict[str, Path] = {}
    for path in sorted((folder / "qrels").glob("*")):
        ending = next((e for e in sorted(_QRELS_ENDINGS, key=len, reverse=True) if path.name.endswith(e)), None)
        if ending and path.is_file() and not path.name.startswith("."):
            found.setdefault(path.name.removesuffix(ending), path)
    if not found:
        raise InputError(f"{folder} has no judgments: no qrels/<split>.tsv.", hint=_LAYOUT)
    return {split: found[split] for split in sorted(found, key=lambda s: (s != "test", s))}


def list_splits(folder: Path | str) -> list[str]:
    """The splits of a benchmark, ``test`` first. InputError if the folder is missing or has no qrels."""
    return list(qrels_files(Path(folder)))


def pick_split(name: str, splits: Sequence[str], split: str) -> str:
    """The split asked for; if none was, ``test``, or the only one. InputError where that does not settle it."""
    if split:
        if split not in splits:
            raise InputError(f"{name} has no split {split!r}.", hint=f"There is: {', '.join(splits)}.")
        return split
    if "test" in splits or len(splits) == 1:
        return "test" if "test" in splits else splits[0]
    raise InputError(f"{name} has several splits.", hint=f"Choose one of: {', '.join(splits)}.")


@dataclass(frozen=True)
class Parts:
    """The files of a benchmark as they were read, before a split is chosen."""

    folder: Path
    documents: list[Document]
    queries: dict[str, QueryLine]
    qrels: dict[str, Path]
    hash: str
    warnings: tuple[str, ...]


def read_parts(folder: Path | str) -> Parts:
    """Documents and queries of a benchmark, and where its judgments are. InputError as for ``load_benchmark``."""
    folder = Path(folder).expanduser()
    qrels = qrels_files(folder)
    queries = read_queries(part(folder, "queries"))
    documents, warnings = read_corpus(part(folder, "corpus"))
    digest = hashlib.sha256()
    for texts in (
        (document.id for document in documents),
        (document.content for document in documents),
        (text for query, line in queries.items() for text in (query, line.text, *line.excluded)),
        (text for split in sorted(qrels) for text in (split, digest_of(qrels[split]))),
    ):
        digest.update(texts_hash(texts).encode())
    return Parts(folder, documents, queries, qrels, digest.hexdigest(), tuple(warnings))


def load_benchmark(folder: Path | str, split: str = "", *, allow_unknown: bool = False) -> Benchmark:
    """Read and check one split of a benchmark.

    InputError, with file and line, for a missing part, bytes that are not UTF-8, broken JSON, ids used twice, empty
    queries, and judgments that name a query or document that does not exist. With ``allow_unknown`` such judgments
    become a warning: unknown queries are left out, unknown documents stay and count as never retrieved (as in
    trec_eval). It stays an error if no judged query, or no judged document, is known.
    """
    splits = list_splits(folder)
    split = pick_split(Path(folder).name, splits, split)
    return split_of(read_parts(folder), split, allow_unknown=allow_unknown)


def split_of(parts: Parts, split: str, *, allow_unknown: bool = False) -> Benchmark:
    """One split of a benchmark that was read. Raises as ``load_benchmark`` does."""
    judgments, lines = read_qrels(parts.qrels[split]), parts.queries
    document_ids = [document.id for document in parts.documents]
    known = set(document_ids)
    warnings = [*parts.warnings]
    warnings += _check_known("query", judgments, judgments.query_lines, lines, allow_unknown)
    warnings += _check_known("document", judgments, judgments.document_lines, known, allow_unknown)
    if judgments.repeated:
        warnings.append(f"{judgments.file}: {judgments.repeated:,} judgments are written more than once.")
    query_ids = [query for query in lines if query in judgments.grades]
    qrels = {query: judgments.grades[query] for query in query_ids}
    excluded, notes = _exclusions(query_ids, lines, qrels, known)
    texts = [document.content for document in parts.documents]
    return Benchmark(
        name=parts.folder.resolve().name,
        folder=parts.folder,
        split=split,
        document_ids=document_ids,
        documents=texts,
        query_ids=query_ids,
        queries=[lines[query].text for query in query_ids],
        qrels=qrels,
        excluded=excluded,
        hash=parts.hash,
        documents_hash=texts_hash(texts),
        licence=licence_note(parts.folder),
        warnings=(*warnings, *notes),
    )


def _check_known(
    what: str, judgments: Judgments, named: dict[str, int], known: Container[str], allowed: bool
) -> list[str]:
    """A warning, or InputError, for judgments that name a query or document that does not exist."""
    unknown = [(identifier, line) for identifier, line in named.items() if identifier not in known]
    if not unknown:
        return []
    examples = ", ".join(f"{identifier!r} in line {line}" for identifier, line in unknown[:_NAMED])
    source = "queries.jsonl" if what == "query" else "corpus.jsonl"
    ids = "id" if len(unknown) == 1 else "ids"
    sentence = f"The judgments name {len(unknown):,} {what} {ids} that {source} does not have ({examples})."
    if len(unknown) == len(named):
        raise InputError(sentence, hint="Not one is known: the qrels belong to other files.", file=judgments.file)
    if not allowed:
        hint = f"Add what is missing to {source}, or remove these lines from the qrels."
        raise InputError(sentence, hint=hint, file=judgments.file)
    return [f"{judgments.file}: {sentence}"]


def _exclusions(
    query_ids: list[str], lines: dict[str, QueryLine], qrels: dict[str, dict[str, int]], known: set[str]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """What each query must not retrieve: the documents its line excludes, and the document with its own id.

    Where a query's own id is judged relevant for it, ids of queries and documents are equal by accident, so nothing is
    left out for that reason in the whole benchmark.
    """
    same = [query for query in query_ids if query in known]
    accident = next((query for query in same if qrels[query].get(query, 0) > 0), None)
    notes = []
    if accident is not None:
        notes.append(
            f"Query {accident!r} has the document of the same id as its answer, so equal ids mean nothing here."
        )
        same = []
    excluded = {query: tuple(d for d in lines[query].excluded if d in known) for query in query_ids}
    for query in same:
        excluded[query] = (*excluded[query], query)
    return {query: documents for query, documents in excluded.items() if documents}, notes


def notes_file(folder: Path) -> Path | None:
    """SOURCE.md, README.md or LICENSE of a benchmark, if it has one."""
    names = ("SOURCE.md", "README.md", "README.txt", "README", "LICENSE.md", "LICENSE.txt", "LICENSE")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def licence_note(folder: Path) -> str:
    """What the notes of a benchmark say about its licence: the section of that name, else the first line with it."""
    path = notes_file(folder)
    if path is None:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(100_000)
    section = re.search(r"^#+[ \t]*licen[cs]e.*?$\n+(.+?)(?=^#|\Z)", text, re.IGNORECASE | re.MULTILINE | re.DOTALL)
    if section:
        return " ".join(section[1].split())[:600]
    line = re.search(r"^.*\blicen[cs]e.*$", text, re.IGNORECASE | re.MULTILINE)
    return " ".join(line[0].split())[:600] if line else ""
