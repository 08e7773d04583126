"""Test leakage: a training on judged queries is refused, or its results stay marked as leaked.

Leaked are queries that the evaluated split judges, in the same words or with the same content words, for any document.
Queries of another split are no leak. Neither are other queries for the split's documents: that is in-domain training,
and such a result says so (``retrievers.leakage.findings``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp import benchmarks, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace
from cdp.benchmarks import beir_files
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.query_sets import QuerySet
from cdp.retrievers import leakage as room
from cdp.services import access

LEAKAGE = room.LEAKAGE
FLAG = "--allow-leakage"
FOLLOWS = "The training and every result of it, now and later, are then marked as leaked."

# What is trained on: its name, its query set (empty for a retriever's earlier training), the hashes of its queries.
Source = tuple[str, str, room.Hashes]


@dataclass(frozen=True)
class Leak:
    """Overlap of a training source (query set or retriever) with one split of a benchmark.

    ``queries`` of the ``judged`` ones are in the source, ``near`` of them reworded (the same content words).
    ``query_set`` is empty for a retriever's earlier training.
    """

    source: str
    benchmark: str
    split: str
    queries: int
    judged: int
    query_set: str = ""
    near: int = 0

    @property
    def sentence(self) -> str:
        reworded = f", {self.near:,} of them reworded (the same content words)" if self.near else ""
        return (
            f"{self.source} holds {self.queries:,} of the {self.judged:,} queries that {self.benchmark} {self.split} "
            f"judges{reworded}."
        )


def find_leaks(workspace: Workspace, names: Iterable[str], benchmark_splits: Iterable[tuple[str, str]]) -> list[Leak]:
    """Return the leaks between query sets (by id or name, empty ones skipped) and (benchmark, split) places."""
    return _leaks(workspace, _of_sets(workspace, names), benchmark_splits)


def among(workspace: Workspace, names: Iterable[str], texts: Iterable[str], benchmark: str, split: str) -> list[Leak]:
    """Return the leaks between query sets and the queries of a planned split."""
    return _in_split(_of_sets(workspace, names), room.distinct(room.keys(texts)), benchmark, split)


@access.reads
def of_training(
    workspace: Workspace, config: TrainingConfig, benchmark_splits: Iterable[tuple[str, str]]
) -> list[Leak]:
    """Return the leaks of a training with these evaluations and its dev benchmark, by its query set and by the earlier
    training of the retriever that it starts from."""
    wanted = [*benchmark_splits, *([(config.dev.benchmark, config.dev.split)] if config.dev.benchmark else [])]
    if not wanted:
        return []
    before = (f"The training of {config.retriever}", "", room.seen(workspace, config.retriever))
    return _leaks(workspace, [*_of_sets(workspace, [config.query_set], config.per_doc), before], wanted)


def _of_sets(workspace: Workspace, names: Iterable[str], per_doc: int | None = None) -> list[Source]:
    sets = [query_sets.resolve_query_set(workspace, name) for name in dict.fromkeys(names) if name]
    return [(each.name, each.id, _hashes(workspace, each.id, per_doc)) for each in sets]


def _leaks(workspace: Workspace, sources: Sequence[Source], benchmark_splits: Iterable[tuple[str, str]]) -> list[Leak]:
    places = [_place(workspace, name, split) for name, split in dict.fromkeys(benchmark_splits)]
    return [leak for at in places for leak in _in_split(sources, _judged(*at), at[0].name, at[1])]


def _in_split(sources: Sequence[Source], judged: room.Hashes, benchmark: str, split: str) -> list[Leak]:
    """The leaks into one split by the keys of its queries, shape (n, 2)."""
    leaks = []
    for source, query_set, hashes in sources:
        shared, near = room.n_known(judged, hashes)
        if shared:
            leaks.append(Leak(source, benchmark, split, shared, len(judged), query_set, near))
    return leaks


@access.writes
def leave_out(
    workspace: Workspace, name: str, benchmark_splits: Iterable[tuple[str, str]], *, called: str = ""
) -> tuple[QuerySet, int]:
    """Return a copy of a query set without the queries that these (benchmark, split) places judge, and their number;
    the set itself and 0 if there are none."""
    # A model sometimes writes a benchmark's own query by chance: a few short ones in thousands.
    query_set = query_sets.resolve_query_set(workspace, name)
    chosen = [_place(workspace, benchmark, split) for benchmark, split in dict.fromkeys(benchmark_splits)]
    judged = np.unique(np.concatenate([_judged(folder, split) for folder, split in chosen]))
    return query_sets.leave_out(
        workspace,
        query_set,
        lambda texts: room.any_known(room.keys(texts), judged).tolist(),
        called or f"{query_set.name} without judged queries",
        {"judged_by": [f"{folder.name}:{split}" for folder, split in chosen]},
    )


def require(leaks: Iterable[Leak], allow_leakage: bool) -> None:
    """Raise ConfigError for the first leak, unless leaks are allowed."""
    for leak in () if allow_leakage else leaks:
        raise ConfigError(
            f"{leak.sentence} Its score there would not say how it answers queries that it has never seen.",
            hint="Make a copy of the set without them (queries leave-out), train on other queries (of a BEIR folder "
            f"import the train split alone: --split train), or evaluate elsewhere. Or allow it: {FLAG}. {FOLLOWS}",
        )


def links(leaks: Iterable[Leak]) -> dict[str, Any]:
    """Return the record of allowed leaks for a job's inputs; empty without any."""
    records = [dataclasses.asdict(leak) for leak in leaks]
    return {room.LEAKAGE: records} if records else {}


def _place(workspace: Workspace, name: str, split: str) -> tuple[Path, str]:
    folder = benchmarks.resolve_benchmark(access.benchmark(workspace, name), workspace)
    return folder, benchmarks.choose_split(benchmarks.describe(folder, workspace), split)


def _hashes(workspace: Workspace, query_set: str, per_doc: int | None = None) -> room.Hashes:
    def compute() -> room.Hashes:
        return room.set_hashes(workspace, query_set, per_doc)

    path = query_sets.files(workspace, query_set).queries
    return ANSWERS.get(path, ("query hashes", per_doc), compute)


def _judged(folder: Path, split: str) -> room.Hashes:
    """Return the keys of a split's queries, shape (n, 2), cached while its judgments are unchanged."""
    path, queries = qrels_files(folder)[split], part(folder, "queries")

    def compute() -> room.Hashes:
        judged, lines = beir_files.read_qrels(path).grades, beir_files.read_queries(queries)
        return room.distinct(room.keys(lines[query].text for query in judged if query in lines))

    return ANSWERS.get(path, ("judged", str(queries)), compute)
