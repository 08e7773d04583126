"""Means of a comparison: over all benchmarks and over groups of them, always over the same benchmarks for everyone.

A mean over other benchmarks than its neighbour's says nothing, so each mean runs over the benchmarks that *every*
compared retriever was evaluated on, and says how many these are of how many there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from cdp.evaluation import registry
from cdp.principle.published import datasets
from cdp.services.published import is_dataset
from cdp.services.results import Comparison, Row

ALL = "All"
OWN = "Own"
"""The group of benchmarks that the paper does not have."""

Place = tuple[str, str, str]


@dataclass(frozen=True)
class Mean:
    """NDCG@10 in percent by retriever, over the ``n_shared`` benchmarks of the group that all of them have.

    ``values`` is empty where they share none. ``n_benchmarks`` is how many the group has.
    """

    group: str
    n_shared: int
    n_benchmarks: int
    values: dict[str, float]

    @property
    def coverage(self) -> str:
        """``1 of 2``: how much of the group the mean stands for."""
        return f"{self.n_shared} of {self.n_benchmarks}"


def means(comparison: Comparison) -> list[Mean]:
    """The mean over all benchmarks, then one per group where there is more than one group."""
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in comparison.rows:
        by_group[group_of(row.benchmark)].append(row)
    everyone = list(dict.fromkeys(row.retriever for row in comparison.rows))
    found = [_mean(ALL, comparison.rows, everyone)] if comparison.rows else []
    if len(by_group) > 1:
        groups = sorted(by_group, key=lambda group: group == OWN)
        found += [_mean(group, by_group[group], everyone) for group in groups]
    return found


def only(comparison: Comparison, benchmarks: Collection[str]) -> Comparison:
    """The comparison on these benchmarks alone; without any, as it is."""
    if not benchmarks:
        return comparison
    return comparison.narrowed([row for row in comparison.rows if row.benchmark in benchmarks])


def shared(comparison: Comparison) -> Comparison:
    """The comparison on the benchmarks that all of its retrievers have; as it is where they share none."""
    having: dict[Place, set[str]] = defaultdict(set)
    for row in comparison.rows:
        having[_place(row)].add(row.retriever)
    everyone = {row.retriever for row in comparison.rows}
    rows = [row for row in comparison.rows if having[_place(row)] == everyone]
    return comparison.narrowed(rows) if rows else comparison


def group_members(benchmarks: Collection[str]) -> dict[str, list[str]]:
    """The groups of these benchmarks, each with all that it has: those given, and the paper's others by their names.

    One's own come last, in a group without others.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for benchmark in sorted(benchmarks):
        groups[group_of(benchmark)].append(benchmark)
    for row in datasets():
        here = groups.get(row["group"])
        if here is not None and not any(is_dataset(one, row["dataset"]) for one in here):
            here.append(row["dataset"])
    for entry in registry.entries():
        group = "" if entry.paper else _registered(entry)
        if group in groups and entry.name not in groups[group]:
            groups[group].append(entry.name)
    return dict(sorted(groups.items(), key=lambda item: item[0] == OWN))


def group_of(benchmark: str) -> str:
    """The group in which the paper reports a benchmark (BEIR, Multi-hop …), else the one that the registry knows it in
    (NanoBEIR; a forum is in CQADupStack, whose score is their mean); ``Own`` for any other."""
    found = [row["group"] for row in datasets() if is_dataset(benchmark, row["dataset"])]
    if found:
        return found[-1]  # HotpotQA stands twice: the multi-hop group is the narrower one
    entry = registry.find(benchmark)
    return OWN if entry is None else _registered(entry) or OWN


def _registered(entry: registry.Entry) -> str:
    """What an entry of the registry counts towards: the benchmark that it is a part of, or its narrowest group."""
    whole = registry.find(entry.part_of) if entry.part_of else None
    return whole.title if whole is not None else entry.groups[-1] if entry.groups else ""


def _mean(group: str, rows: list[Row], everyone: list[str]) -> Mean:
    scores: dict[str, dict[Place, float]] = {name: {} for name in everyone}
    for row in rows:
        scores[row.retriever][_place(row)] = row.ndcg
    places = {place for by_place in scores.values() for place in by_place}
    shared = {place for place in places if all(place in by_place for by_place in scores.values())}
    values = {
        name: sum(by_place[place] for place in shared) / len(shared) for name, by_place in scores.items() if shared
    }
    return Mean(group, len(shared), len(places), values)


def _place(row: Row) -> Place:
    return row.benchmark, row.split, row.protocol
