"""The units of every interval: queries that share a relevant document, or its file, are one cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from cdp.base.errors import CdpError
from cdp.base.records import place_of
from cdp.base.workspace import ANSWERS, Workspace
from cdp.benchmarks import manifests
from cdp.benchmarks.beir_files import read_qrels
from cdp.benchmarks.benchmark import qrels_files
from cdp.benchmarks.library import resolve_benchmark

# A component with more than this share of all queries is cut.
GIANT = 0.25


def units_of(workspace: Workspace, benchmark: str, split: str, queries: Sequence[str]) -> tuple[int, ...] | None:
    """Return the cluster of each query by the judgments as they are now; empty where each stands alone, None where the
    benchmark cannot be read."""
    with suppress(CdpError, KeyError, OSError):
        folder = resolve_benchmark(benchmark, workspace)
        path, passages = qrels_files(folder)[split], manifests.read(folder).of_passages

        def load() -> tuple[int, ...]:
            grades = read_qrels(path).grades
            return shared_units([grades.get(query, {}) for query in queries], passages=passages)

        return ANSWERS.get(path, ("units", passages, tuple(queries)), load)
    return None


def shared_units(grades: Sequence[Mapping[str, float]], *, passages: bool) -> tuple[int, ...]:
    """Return the cluster of each query by its ``grades`` {document: grade}; empty where each stands alone.

    With ``passages`` the documents were cut from files, and the file is what is shared.
    """
    relevant = []
    for of_query in grades:
        documents = {document for document, grade in of_query.items() if grade > 0}
        if passages:
            documents = {place_of(document)[0] for document in documents}
        relevant.append(documents)

    found = clusters_of(relevant)
    return tuple(found) if len(set(found)) < len(found) else ()


def clusters_of(documents: Sequence[Collection[str]]) -> list[int]:
    """Return the cluster of each query by its relevant ``documents``: a connected component of queries that share one.

    A component with more than ``GIANT`` of the queries hangs together by chains: each of its queries then goes with the
    one document that it shares with most others, so that what hangs together most stays together.
    """
    found = _components(documents)
    sizes = Counter(found)
    giant = {name for name, size in sizes.items() if size > GIANT * len(documents)}
    if not giant:
        return found

    shared = Counter(chain.from_iterable(documents))
    cut: dict[tuple[int, str], int] = {}
    for number, names in enumerate(documents):
        if names and found[number] in giant:
            hub = max(names, key=lambda name: (shared[name], name))
            found[number] = cut.setdefault((found[number], hub), len(documents) + len(cut))
    return found


def _components(documents: Sequence[Collection[str]]) -> list[int]:
    parent = list(range(len(documents)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    holders: dict[str, list[int]] = defaultdict(list)
    for number, names in enumerate(documents):
        for name in names:
            holders[name].append(number)
    for first, *others in holders.values():
        for other in others:
            parent[root(other)] = root(first)

    return list(map(root, range(len(documents))))
