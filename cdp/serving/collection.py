"""Collections that can be searched: the documents of a corpus or of a benchmark, in memory as Arrow tables.

A collection's id is the corpus's id, or ``benchmark:<name>``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from cdp.base.errors import InputError, NotFoundError, WorkspaceError
from cdp.base.records import Document
from cdp.base.text import storable
from cdp.base.workspace import Workspace, is_name
from cdp.benchmarks import beir_files, library
from cdp.benchmarks.benchmark import part, texts_hash
from cdp.corpus import CorpusManifest, list_corpora, load_manifest, open_corpus, resolve_corpus
from cdp.corpus.documents import ROW_GROUP_ROWS, SCHEMA, to_documents

BENCHMARK = "benchmark:"


@dataclass(frozen=True)
class Collection:
    """A corpus, or the documents of a benchmark: ``language`` of their words, ``state`` a hash of their contents."""

    id: str
    name: str
    language: str
    n_documents: int
    state: str
    benchmark: str = ""


def list_collections(workspace: Workspace) -> list[Collection]:
    """Return all corpora, newest first, then the readable benchmarks."""
    corpora = [_of_corpus(manifest) for manifest in list_corpora(workspace)]
    infos = [info for info in library.list_benchmarks(workspace) if not info.problem]
    return corpora + [_of_benchmark(info) for info in infos]


def resolve_collection(workspace: Workspace, name: str) -> Collection:
    """Return the corpus of this id, name or unique id prefix, else the benchmark of this name. NotFoundError."""
    name = name.strip()
    if name.startswith(BENCHMARK):
        return _named_benchmark(workspace, name.removeprefix(BENCHMARK))
    if is_name(name) and workspace.corpus(name).is_dir():  # an id: other manifests need not be read
        return _of_corpus(load_manifest(workspace, name))
    try:
        return _of_corpus(resolve_corpus(workspace, name))
    except NotFoundError:
        if name not in library.list_names(workspace):
            raise
    return _named_benchmark(workspace, name)


def _of_corpus(manifest: CorpusManifest) -> Collection:
    state = manifest.content_hash
    return Collection(manifest.id, manifest.name, manifest.counted_language, manifest.n_documents, state)


def _named_benchmark(workspace: Workspace, name: str) -> Collection:
    if name not in library.list_names(workspace):
        raise NotFoundError("benchmark", name, known=library.list_names(workspace))
    info = library.describe(library.resolve_benchmark(name, workspace), workspace)
    if info.problem:
        raise InputError(info.problem)
    return _of_benchmark(info)


def _of_benchmark(info: library.BenchmarkInfo) -> Collection:
    name = info.name
    return Collection(f"{BENCHMARK}{name}", name, info.language or "en", info.n_documents, info.content_hash, name)


class Documents:
    """The documents of a collection in memory, in order, without a Python object for each."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self.table = pa.concat_tables(tables) if tables else SCHEMA.empty_table()
        self.hash = texts_hash(self.contents())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)

    def contents(self) -> Iterator[str]:
        """Yield the text that is encoded for each document."""
        for batch in self.table.to_batches(max_chunksize=ROW_GROUP_ROWS):
            for document in to_documents(pa.table(batch)):
                yield document.content

    def sample(self, n: int) -> list[str]:
        """Return the content of about ``n`` documents, evenly spread."""
        numbers = np.linspace(0, len(self) - 1, min(n, len(self))).astype(int)
        return [document.content for document in self.take(sorted({int(number) for number in numbers}))]

    def take(self, numbers: Sequence[int]) -> list[Document]:
        """Return the documents at these positions, in the order given."""
        return [document for number in numbers for document in to_documents(self.table.slice(number, 1))]


def open_documents(workspace: Workspace, collection: Collection) -> Documents:
    """Read all documents. InputError for an empty collection, WorkspaceError if it cannot be read."""
    if collection.benchmark:
        file = part(library.resolve_benchmark(collection.benchmark, workspace), "corpus")
        tables = list(_tables(beir_files.iter_corpus(file)))
    else:
        try:
            tables = list(open_corpus(workspace, collection.id).batches())
        except (pa.ArrowException, OSError) as error:
            raise WorkspaceError(
                f"The documents of {collection.name} cannot be read: {str(error).splitlines()[0]}.",
                hint="Add the corpus again.",
            ) from error
    documents = Documents(tables)
    if not len(documents):
        raise InputError(f"{collection.name} has no documents.", hint="Choose another corpus.")
    return documents


def _tables(documents: Iterator[Document]) -> Iterator[pa.Table]:
    while rows := list(islice(documents, ROW_GROUP_ROWS)):
        columns = ([_plain(getattr(row, name)) for row in rows] for name in SCHEMA.names)
        yield pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], schema=SCHEMA)


def _plain(text: str) -> str:
    # Arrow strings are UTF-8: they cannot hold half of a surrogate pair.
    return text if storable(text) else text.encode("utf-8", "replace").decode()
