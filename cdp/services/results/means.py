"""Means of a comparison: over all benchmarks and over groups of them, always over the same benchmarks for everyone.

A mean over other benchmarks than its neighbour's says nothing, so each mean runs over the benchmarks that *every*
compared retriever was evaluated on, and says how many these are of how many there are. Groups are the registry's. What
counts in one is a benchmark of the registry's or the paper's name at the registry's split: a sample does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cdp.benchmarks import registry
from cdp.benchmarks.schemas import Entry
from cdp.services.results import ComparedRow, Comparison, benchmark_label

ALL = "All"
OWN = "Own"
"""The group of benchmarks that count in none of the registry's."""


@dataclass(frozen=True)
class MeanGroup:
    """Benchmarks that are reported as one mean, all under one protocol.

    ``members`` are places as ``Row.place`` names them, those among them where nobody was evaluated.
    """

    title: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class SharedMean:
    """NDCG@10 in percent by retriever, over the ``n_shared`` benchmarks of the group that all of them have.

    ``values`` is empty where they share none. ``n_benchmarks`` is how many the group has, evaluated on or not; for
    ``ALL`` and ``OWN``, how many anyone was evaluated on.
    """

    group: str
    n_shared: int
    n_benchmarks: int
    values: dict[str, float]

    @property
    def coverage(self) -> str:
        """``1 of 2``: how much of the group the mean stands for."""
        return f"{self.n_shared} of {self.n_benchmarks}"


def means(comparison: Comparison) -> list[SharedMean]:
    """The mean over all benchmarks, then one per group where any of the registry's is there."""
    rows = comparison.rows
    if not rows:
        return []
    mean_groups = [MeanGroup(ALL, tuple(dict.fromkeys(row.place for row in rows)))]
    if any(_entry(row) is not None for row in rows):
        mean_groups += groups(rows)
    values, everyone = scores(rows), list(dict.fromkeys(row.retriever for row in rows))
    return [_mean(group, values, everyone) for group in mean_groups]


def only(comparison: Comparison, benchmarks: Collection[str]) -> Comparison:
    """The comparison on these benchmarks alone; without any, as it is."""
    if not benchmarks:
        return comparison
    return comparison.narrowed([row for row in comparison.rows if row.benchmark in benchmarks])


def shared(comparison: Comparison) -> Comparison:
    """The comparison on the benchmarks that all of its retrievers have; as it is where they share none."""
    having: dict[str, set[str]] = defaultdict(set)
    for row in comparison.rows:
        having[row.place].add(row.retriever)
    everyone = {row.retriever for row in comparison.rows}
    rows = [row for row in comparison.rows if having[row.place] == everyone]
    return comparison.narrowed(rows) if rows else comparison


def scores(rows: Sequence[ComparedRow]) -> dict[tuple[str, str], float]:
    """{(retriever, place): NDCG@10 in percent}; the mean of its parts (CQADupStack) beside them where all are there."""
    ndcg_by_label = {(row.retriever, row.place): row.ndcg for row in rows}
    ndcg_by_entry: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        entry = _entry(row)
        if entry is not None:
            ndcg_by_entry[row.retriever, row.protocol][entry.name] = row.ndcg
    for (retriever, protocol), values in ndcg_by_entry.items():
        for whole in _wholes():
            mean = registry.mean_of_parts(whole.name, values)
            if mean.value is not None and mean.covered == mean.total:
                ndcg_by_label[retriever, benchmark_label(whole.name, whole.split, protocol)] = mean.value
    return ndcg_by_label


def groups(rows: Sequence[ComparedRow]) -> list[MeanGroup]:
    """The groups that the rows belong to, each with all of its members; ``OWN`` last, without others.

    A group is there if it is the narrowest one of any row, and then counts all of its members: HotpotQA alone brings
    Multi-hop, and counts in BEIR too where another member of BEIR is.
    """
    mean_groups: list[MeanGroup] = []
    own: list[MeanGroup] = []
    labels = {label for _, label in scores(rows)}
    for protocol in sorted({row.protocol for row in rows}, key=lambda name: (name != "published", name)):
        there: dict[Entry, str] = {}
        mine: dict[str, None] = {}
        for row in rows:
            entry = _entry(row)
            if row.protocol == protocol and entry is not None:
                there[entry] = row.place
            elif row.protocol == protocol:
                mine[row.place] = None
        for whole in _wholes():
            label = benchmark_label(whole.name, whole.split, protocol)
            if label in labels:
                there[whole] = label
        wanted = {_narrowest(entry) for entry in there}
        suffix = "" if protocol == "published" else f" ({protocol})"
        for title, members in _members():
            if title in wanted:
                named = (
                    there.get(member) or benchmark_label(member.name, member.split, protocol) for member in members
                )
                mean_groups.append(MeanGroup(title + suffix, tuple(named)))
        if mine:
            own.append(MeanGroup(OWN + suffix, tuple(mine)))
    return mean_groups + own


def _entry(row: ComparedRow) -> Entry | None:
    """The entry of the registry that a row is of: by its name there or in the paper, at the registry's split."""
    name = row.benchmark.lower()
    entry = registry.find(name) or next(
        (candidate for candidate in registry.entries() if candidate.paper == name), None
    )
    whole = entry is not None and bool(entry.schema) and row.split == entry.split and not row.version
    return entry if whole else None


def _wholes() -> list[Entry]:
    """The entries that are the mean of their parts."""
    return [entry for entry in registry.entries() if not entry.schema]


def _narrowest(entry: Entry) -> str:
    """The title of the smallest group that an entry counts in; a part counts in the benchmark that it is a part of."""
    whole = registry.find(entry.part_of) if entry.part_of else None
    return whole.title if whole is not None else entry.groups[-1]


def _members() -> list[tuple[str, list[Entry]]]:
    """(title, members) of every group, and of every mean of parts."""
    entries = {entry.name: entry for entry in registry.entries()}
    named = [(group.title, [entries[name] for name in group.members]) for group in registry.groups().values()]
    return named + [(whole.title, list(registry.parts(whole.name))) for whole in _wholes()]


def _mean(group: MeanGroup, values: Mapping[tuple[str, str], float], everyone: Sequence[str]) -> SharedMean:
    labels = [label for label in group.members if all((name, label) in values for name in everyone)]
    means = {name: sum(values[name, label] for label in labels) / len(labels) for name in everyone if labels}
    return SharedMean(group.title, len(labels), len(group.members), means)
