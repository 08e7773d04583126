"""Loading a split of a benchmark in BEIR layout: which split, language, excluded documents, subset note.

::

    corpus.jsonl[.gz]   queries.jsonl[.gz]   qrels/<split>.tsv      and, as a courtesy, SOURCE.md or README.md

A benchmark that was downloaded or sampled has a ``manifest.json`` beside them (see ``manifests``) with its source and
what its protocol asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from cdp.base.errors import InputError, some
from cdp.base.text import counted, silent, typed_path
from cdp.benchmarks import manifests
from cdp.benchmarks.beir_files import Judgments, QueryLine, digest_of_qrels, iter_corpus, read_qrels, read_queries
from cdp.benchmarks.manifests import Manifest
from cdp.corpus import guess_language

UNKNOWN = "unknown"

# A language is guessed from the beginnings of so many texts.
TEXTS, CHARACTERS = 300, 500

# Taken where neither queries nor documents tell.
DEFAULT = "en"


def benchmark_language(stated: str, queries: Iterable[str], documents: Iterable[str]) -> str:
    """The code that was ``said``, else the guess from the queries, else from the documents; empty where none tells."""
    if stated:
        return stated
    for texts in (queries, documents):
        guessed = guess_language("\n".join(text[:CHARACTERS] for text in islice(texts, TEXTS)))
        if guessed != UNKNOWN:
            return guessed
    return ""


_LAYOUT = (
    "A benchmark is a folder with corpus.jsonl, queries.jsonl and qrels/<split>.tsv; or with tables corpus, queries "
    "and qrels in Parquet or JSON Lines, as MTEB has them. A listed one: benchmarks download NAME --folder FOLDER."
)
_QRELS_ENDINGS = (".tsv", ".txt", ".tsv.gz", ".txt.gz")
_NAMED = 5
_REPORT_EVERY = 20_000


@dataclass(frozen=True)
class Benchmark:
    """One split of a benchmark, ready to be evaluated on.

    ``documents`` holds what is encoded (title, space, text) in the order of the corpus file, ``queries`` the texts of
    the judged queries in the order of the queries file. ``qrels`` {query: {document: grade}} names no other query; a
    document may be missing from the corpus only where ``allow_unknown`` was asked for. ``excluded`` {query: documents}
    are never retrieved for that query. ``relevant_from`` is the lowest grade that the binary measures count as relevant
    (2 for TREC-DL); NDCG uses every grade. With ``passages``, documents are passages of files. ``hash`` covers the
    whole benchmark: documents, queries, the judgments of all its splits, and what its protocol asks for;
    ``documents_hash`` covers the documents' texts alone, so that equal texts share embeddings.
    """

    name: str
    folder: Path
    split: str
    document_ids: Sequence[str] = field(repr=False)
    documents: Sequence[str] = field(repr=False)
    query_ids: list[str] = field(repr=False)
    queries: list[str] = field(repr=False)
    qrels: dict[str, dict[str, int]] = field(repr=False)
    excluded: dict[str, tuple[str, ...]] = field(repr=False)
    hash: str
    documents_hash: str
    licence: str = ""
    warnings: tuple[str, ...] = ()
    relevant_from: int = 1
    passages: bool = False
    language: str = ""
    """As its manifest says or its texts tell; empty where neither does."""

    @property
    def counted_language(self) -> str:
        """The language in which its words are counted: English where nothing tells another one."""
        return self.language or DEFAULT

    @property
    def n_documents(self) -> int:
        return len(self.document_ids)

    @property
    def n_queries(self) -> int:
        return len(self.queries)

    def excluded_numbers(self) -> list[list[int]] | None:
        """Per query the positions of the documents that it must not retrieve; None if there are none at all."""
        if not self.excluded:
            return None

        named = set[str]().union(*self.excluded.values())
        numbers = {document: i for i, document in enumerate(self.document_ids) if document in named}
        return [sorted({numbers[d] for d in self.excluded.get(query, ())}) for query in self.query_ids]


def _bounded(text: str) -> bytes:
    """Return what a hash over several texts reads of each: its length first, so that the boundaries count."""
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(data), data)


def texts_hash(texts: Iterable[str]) -> str:
    """Hex SHA-256 of texts in order; the boundaries between them count."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(_bounded(text))
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
    by_split: dict[str, Path] = {}
    for path in sorted((folder / "qrels").glob("*")):
        ending = next((e for e in sorted(_QRELS_ENDINGS, key=len, reverse=True) if path.name.endswith(e)), None)
        if ending and path.is_file() and not path.name.startswith("."):
            by_split.setdefault(path.name.removesuffix(ending), path)
    if not by_split:
        if (folder / "pool.jsonl").is_file():
            hint = f"Label some: benchmarks label {folder.name}, or the tab Label."
            raise InputError(f"No query of {folder.name} is labelled as a whole yet.", hint=hint)
        raise InputError(f"{folder} has no judgments: no qrels/<split>.tsv.", hint=_LAYOUT)
    return {split: by_split[split] for split in sorted(by_split, key=lambda s: (s != "test", s))}


def pick_split(name: str, splits: Sequence[str], split: str) -> str:
    """The split asked for; if none was, ``test``, or the only one. InputError where that does not settle it."""
    if split:
        if split not in splits:
            raise InputError(f"{name} has no split {split!r}.", hint=f"There is: {', '.join(splits)}.")
        return split
    if "test" in splits:
        return "test"
    if len(splits) == 1:
        return splits[0]
    raise InputError(f"{name} has several splits.", hint=f"Choose one of: {', '.join(splits)}.")


@dataclass(frozen=True)
class Parts:
    """The files of a benchmark as they were read, before a split is chosen. ``texts`` are what is encoded; only the
    first ones where the benchmark is only described."""

    folder: Path
    document_ids: Sequence[str]
    texts: Sequence[str]
    queries: dict[str, QueryLine]
    qrels: dict[str, Path]
    characters: int
    hash: str
    documents_hash: str
    manifest: Manifest
    warnings: tuple[str, ...]


def read_parts(folder: Path | str, progress: Callable[[int], None] = silent, *, describe: bool = False) -> Parts:
    """Documents and queries of a benchmark, and where its judgments are. InputError as for ``load_benchmark``.

    ``progress`` is called with the documents read so far, now and then. To ``describe`` it, texts are not held.
    """
    folder = typed_path(folder)
    qrels = qrels_files(folder)
    queries = read_queries(part(folder, "queries"))
    manifest = manifests.read(folder)

    ids: list[str] = []
    texts: list[str] = []
    warnings: list[str] = []
    read = {path.name for path in qrels.values()}
    others = [path.name for path in (folder / "qrels").iterdir() if path.name not in read and path.name[0] != "."]
    if others:
        warnings.append(f"Not read in qrels: {some(sorted(others), _NAMED)}. Splits are .tsv or .txt files.")

    hash_of_ids, hash_of_texts, characters = hashlib.sha256(), hashlib.sha256(), 0
    for n, document in enumerate(iter_corpus(part(folder, "corpus"), warnings), 1):
        text = document.content
        ids.append(document.id)
        if n <= TEXTS or not describe:
            texts.append(text)

        hash_of_ids.update(_bounded(document.id))
        hash_of_texts.update(_bounded(text))
        characters += len(text)

        if n % _REPORT_EVERY == 0:
            progress(n)

    of_queries = ((query, line.text, *line.excluded) for query, line in queries.items())
    of_splits = ((split, digest_of_qrels(qrels[split])) for split in sorted(qrels))
    digest = hashlib.sha256(f"{hash_of_ids.hexdigest()}{hash_of_texts.hexdigest()}".encode())
    digest.update(texts_hash(chain.from_iterable(of_queries)).encode())
    digest.update(texts_hash(chain.from_iterable(of_splits)).encode())
    if manifest.protocol:
        digest.update(texts_hash(manifest.protocol).encode())

    return Parts(
        folder, ids, texts, queries, qrels, characters, digest.hexdigest(),
        hash_of_texts.hexdigest(), manifest, tuple(warnings),
    )  # fmt: skip


def load_benchmark(folder: Path | str, split: str = "", *, allow_unknown: bool = False) -> Benchmark:
    """Read and check one split of a benchmark.

    InputError, with file and line, for a missing part, bytes that are not UTF-8, broken JSON, ids used twice, empty
    queries, and judgments that name a query or document that does not exist. With ``allow_unknown`` such judgments
    become a warning: unknown queries are left out, unknown documents stay and count as never retrieved (as in
    trec_eval). It stays an error if no judged query, or no judged document, is known.
    """
    split = pick_split(Path(folder).name, list(qrels_files(Path(folder))), split)
    return split_of(read_parts(folder), split, allow_unknown=allow_unknown)


def split_of(parts: Parts, split: str, *, allow_unknown: bool = False) -> Benchmark:
    """One split of a benchmark that was read. Raises as ``load_benchmark`` does."""
    manifest, queries, judgments = parts.manifest, parts.queries, read_qrels(parts.qrels[split])
    named = judgments.document_lines.keys() | queries.keys()
    named.update(*(line.excluded for line in queries.values()))
    known_documents = named.intersection(parts.document_ids)
    allowed = allow_unknown or manifest.allow_unknown
    warnings = _check_known("query", judgments, judgments.query_lines, queries, allowed)
    warnings += _check_known("document", judgments, judgments.document_lines, known_documents, allowed)

    if judgments.repeated:
        warnings.append(f"{judgments.file}: {judgments.repeated:,} judgments are written more than once.")

    qrels = {query: judgments.grades[query] for query in queries if query in judgments.grades}
    if barren := [query for query, grades in qrels.items() if max(grades.values()) <= 0]:
        warnings.append(
            f"{judgments.file}: {len(barren):,} of {counted(len(qrels), 'judged query', 'judged queries')} have no "
            f"relevant document (first: {', '.join(barren[:_NAMED])}): they score 0 with every retriever."
        )

    licence = manifest.licence
    if manifest.licence_source:
        licence += f" ({manifest.licence_source})"

    excluded, notes = _exclusions(queries, qrels, known_documents, manifest.self_match)
    return Benchmark(
        name=parts.folder.resolve().name,
        folder=parts.folder,
        split=split,
        document_ids=parts.document_ids,
        documents=parts.texts,
        query_ids=list(qrels),
        queries=[queries[query].text for query in qrels],
        qrels=qrels,
        excluded=excluded,
        hash=parts.hash,
        documents_hash=parts.documents_hash,
        licence=licence,
        warnings=(*parts.warnings, *warnings, *notes, *subset_note(manifest)),
        relevant_from=manifest.relevant_from,
        passages=manifest.of_passages,
        language=benchmark_language(manifest.language, (line.text for line in queries.values()), parts.texts),
    )


def subset_note(manifest: Manifest) -> tuple[str, ...]:
    """What has to be said wherever a score on a subset is shown; nothing for a whole benchmark."""
    subset = manifest.subset
    if subset is None:
        return ()
    if subset.documents == subset.of_documents:
        return (f"These are {subset.queries:,} queries of {subset.of}, with all of its documents.",)
    return (
        f"This is a subset of {subset.of} ({subset.queries:,} queries, {subset.documents:,} documents): "
        "scores on it are higher than on the whole benchmark.",
    )


def _check_known(
    what: str, judgments: Judgments, named: dict[str, int], known_ids: Container[str], allowed: bool
) -> list[str]:
    """A warning, or InputError, for judgments that name a query or document that does not exist."""
    unknown = [(identifier, line) for identifier, line in named.items() if identifier not in known_ids]
    if not unknown:
        return []

    examples = ", ".join(f"{identifier!r} in line {line}" for identifier, line in unknown[:_NAMED])
    source = "queries.jsonl" if what == "query" else "corpus.jsonl"
    n = counted(len(unknown), f"{what} id")
    sentence = f"The judgments name {n} that {source} does not have ({examples})."

    if len(unknown) == len(named):
        raise InputError(sentence, hint="Not one is known: the qrels belong to other files.", file=judgments.file)

    if not allowed:
        hint = (
            f"Add what is missing to {source}, or remove these lines from the qrels; or evaluate on the folder itself "
            "with allow_unknown."
        )
        raise InputError(sentence, hint=hint, file=judgments.file)

    return [f"{judgments.file}: {sentence}"]


def _exclusions(
    lines: Mapping[str, QueryLine],
    qrels: Mapping[str, Mapping[str, int]],
    known_documents: Container[str],
    self_match: bool | None,
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """What each query must not retrieve: the documents its line excludes, and the document with its own id.

    ``self_match`` says what equal ids mean; where it is None, they mean nothing in the whole benchmark if a query's own
    id is judged relevant for it.
    """
    notes, means_itself = [], self_match is not False
    if self_match is None:
        accident = next((q for q in qrels if q in known_documents and qrels[q].get(q, 0) > 0), None)
        if accident is not None:
            means_itself = False
            notes.append(
                f"Query {accident!r} has the document of the same id as its answer, so equal ids mean nothing here."
            )

    excluded = {}
    for query in qrels:
        documents = [document for document in lines[query].excluded if document in known_documents]
        if means_itself and query in known_documents:
            documents.append(query)
        if documents:
            excluded[query] = tuple(documents)

    return excluded, notes
