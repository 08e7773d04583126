"""The queries of the benchmarks that judge a collection's documents, and what they judge relevant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cdp.base.errors import CdpError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.benchmarks import beir_files, library, manifests
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.corpus import get_documents
from cdp.serving.engine import Collection

COMPARED = 20
"""Documents of a benchmark that are looked up in a corpus: one that is there, word for word, makes them the same."""

Wanted = Callable[[str], bool]


@dataclass(frozen=True)
class Judgment:
    """What a benchmark says of one query: {document: grade}. A grade from ``relevant_from`` on means relevant."""

    benchmark: str
    query_id: str
    grades: Mapping[str, int]
    relevant_from: int

    @property
    def relevant(self) -> frozenset[str]:
        return frozenset(document for document, grade in self.grades.items() if grade >= self.relevant_from)


def candidates(workspace: Workspace, collection: Collection, wanted: Wanted = lambda name: True) -> list[str]:
    """The benchmarks that may judge these documents, by their names alone; ``list_benchmarks`` looks into them."""
    return [collection.benchmark] if collection.benchmark else list(filter(wanted, library.list_names(workspace)))


def list_benchmarks(workspace: Workspace, collection: Collection, wanted: Wanted = lambda name: True) -> list[str]:
    """The benchmarks whose judgments are about these documents, among those that ``wanted`` says yes to."""
    names = candidates(workspace, collection, wanted)
    return [name for name in names if collection.benchmark or _shares(workspace, name, collection.id)]


def list_queries(workspace: Workspace, benchmark: str) -> list[str]:
    """The texts of a benchmark's judged queries, in its order; none where it cannot be read."""
    folder = library.resolve_benchmark(benchmark, workspace)
    with suppress(CdpError):
        texts = _texts(folder)
        judged = {query for file in qrels_files(folder).values() for query in _grades(file)}
        return list(dict.fromkeys(text for query, text in texts.items() if query in judged))
    return []


def judgments(
    workspace: Workspace, collection: Collection, query: str, wanted: Wanted = lambda name: True
) -> list[Judgment]:
    """What benchmarks say of a query with exactly this text. Usually nothing: then it is nobody's."""
    texts = query.strip()
    answers = []
    for name in list_benchmarks(workspace, collection, wanted):
        folder = library.resolve_benchmark(name, workspace)
        with suppress(CdpError):  # a benchmark that cannot be read judges nothing here; its own page says why
            relevant_from = manifests.read(folder).relevant_from
            for query_id in [q for q, text in _texts(folder).items() if text.strip() == texts]:
                grades: dict[str, int] = {}
                for file in qrels_files(folder).values():
                    grades |= _grades(file).get(query_id, {})
                if grades:
                    answers.append(Judgment(name, query_id, grades, relevant_from))
    return answers


def _texts(folder: Path) -> Mapping[str, str]:
    file = part(folder, "queries")
    return ANSWERS.get(file, "texts", lambda: {q: line.text for q, line in beir_files.read_queries(file).items()})


def _grades(file: Path) -> Mapping[str, Mapping[str, int]]:
    return ANSWERS.get(file, "grades", lambda: beir_files.read_qrels(file).grades)


def _shares(workspace: Workspace, benchmark: str, corpus: str) -> bool:
    """Whether the first documents of a benchmark are in a corpus, with the same ids and texts."""
    with suppress(CdpError):
        file = part(library.resolve_benchmark(benchmark, workspace), "corpus")
        return ANSWERS.get(file, ("shared with", str(workspace.root), corpus), lambda: _same(workspace, file, corpus))
    return False


def _same(workspace: Workspace, file: Path, corpus: str) -> bool:
    first = {document.id: document for document in islice(beir_files.iter_corpus(file), COMPARED)}
    there = get_documents(workspace, corpus, list(first))
    return any(document.content.split() == first[name].content.split() for name, document in there.items())
