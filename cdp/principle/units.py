"""The units of every interval: queries that share a relevant document, or its file, are one cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

# A component with more than this share of all queries is cut.
GIANT = 0.25


def clusters_of(documents: Sequence[Collection[str]], of_file: Mapping[str, str] | None = None) -> list[int]:
    """Return the cluster of each query by its relevant ``documents``: a connected component of queries that share one.

    ``of_file`` {document: the file that it was cut from}. A component with more than ``GIANT`` of the queries hangs
    together by chains: each of its queries then goes with the one document that it shares with most others, so that
    what hangs together most stays together.
    """
    places = [{(of_file or {}).get(name, name) for name in names} for names in documents]
    found = _components(places)
    sizes = Counter(found)
    giant = {name for name, size in sizes.items() if size > GIANT * len(places)}
    if not giant:
        return found
    shared = Counter(name for names in places for name in names)
    cut: dict[tuple[int, str], int] = {}
    for number, names in enumerate(places):
        if found[number] in giant:
            hub = max(names, key=lambda name: (shared[name], name))
            found[number] = cut.setdefault((found[number], hub), len(places) + len(cut))
    return found


def _components(places: Sequence[Collection[str]]) -> list[int]:
    parent = list(range(len(places)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    holders: dict[str, list[int]] = defaultdict(list)
    for number, names in enumerate(places):
        for name in names:
            holders[name].append(number)
    for first, *others in holders.values():
        for other in others:
            parent[root(other)] = root(first)
    return [root(number) for number in range(len(places))]
