"""Test leakage: a training on judged queries is refused, or its results stay marked as leaked.

Leaked are queries that the evaluated split judges, in the same words or with the same content words, for any document;
of imported sets also documents that are the split's positives by queries of that benchmark. Queries of another split
are no leak. Neither are other queries for the split's documents: that is in-domain training, and such a result says so
(``retrievers.leakage.in_domain``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp import benchmarks, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.file_cache import ANSWERS
from cdp.base.workspace import Workspace, sha256_text
from cdp.benchmarks import beir_files
from cdp.benchmarks.benchmark import part, qrels_files
from cdp.query_sets import QuerySet
from cdp.retrievers import leakage as room
from cdp.services import access

LEAKAGE = room.LEAKAGE
FLAG = "--allow-leakage"
FOLLOWS = "The training and every result of it, now and later, are then marked as leaked."


@dataclass(frozen=True)
class Leak:
    """Overlap of a training source (query set or retriever) with one split of a benchmark.

    ``queries`` of the ``judged`` ones are in the source, ``near`` of them reworded (the same content words), and
    ``documents`` of the source are the split's positives. ``query_set`` is empty for a retriever's earlier training.
    """

    source: str
    benchmark: str
    split: str
    queries: int
    judged: int
    documents: int = 0
    query_set: str = ""
    near: int = 0

    @property
    def sentence(self) -> str:
        judging = f"{self.benchmark} {self.split}"
        if self.queries:
            reworded = f", {self.near:,} of them reworded (the same content words)" if self.near else ""
            return (
                f"{self.source} holds {self.queries:,} of the {self.judged:,} queries that {judging} judges{reworded}."
            )
        noun = "document" if self.documents == 1 else "documents"
        return (
            f"{self.source} has human queries of {self.benchmark} for {self.documents:,} {noun} that {judging} judges."
        )


@dataclass(frozen=True)
class _JudgedSplit:
    """One split of a benchmark: keys of its queries, shape (n, 2), hashes of the queries of the other splits
    (``other``) and of all (``every``), and its relevant documents. ``key`` identifies the state of the files."""

    key: str
    queries: room.Hashes
    other: room.Hashes
    every: room.Hashes
    positives: frozenset[str]


def find_leaks(
    workspace: Workspace,
    names: Iterable[str],
    benchmark_splits: Iterable[tuple[str, str]],
    *,
    per_doc: int | None = None,
) -> list[Leak]:
    """Return the leaks between query sets (by id or name, empty ones skipped) and (benchmark, split) places."""
    sets = [query_sets.resolve_query_set(workspace, name) for name in dict.fromkeys(names) if name]
    leaks = []
    for name, split in dict.fromkeys(benchmark_splits):
        where, chosen = _place(workspace, name, split)
        judged = _judged(where, chosen)
        for query_set in sets:
            shared, near = room.n_known(judged.queries, _hashes(workspace, query_set.id, per_doc))
            documents = _documents(workspace, query_set, judged, chosen) if query_set.generator == "import" else 0
            if shared or documents:
                leaks.append(
                    Leak(query_set.name, where.name, chosen, shared, len(judged.queries), documents, query_set.id, near)
                )
    return leaks


def among(workspace: Workspace, names: Iterable[str], texts: Iterable[str], benchmark: str, split: str) -> list[Leak]:
    """Return the leaks between query sets and the queries of a planned split."""
    judged = room.distinct(room.keys(texts))
    leaks = []
    for name in dict.fromkeys(names):
        query_set = query_sets.resolve_query_set(workspace, name)
        shared, near = room.n_known(judged, _hashes(workspace, query_set.id))
        if shared:
            leaks.append(Leak(query_set.name, benchmark, split, shared, len(judged), query_set=query_set.id, near=near))
    return leaks


@access.reads
def of_training(
    workspace: Workspace, config: TrainingConfig, benchmark_splits: Iterable[tuple[str, str]]
) -> list[Leak]:
    """Return the leaks of a training with these evaluations and its dev benchmark, by its query set and by the earlier
    training of the retriever that it starts from."""
    wanted = [*benchmark_splits, *([(config.benchmark, config.split)] if config.benchmark else [])]
    if not wanted:
        return []
    leaks = find_leaks(workspace, [config.query_set], wanted, per_doc=config.per_doc)
    before = room.seen(workspace, config.retriever)
    for name, split in dict.fromkeys(wanted) if len(before) else ():
        where, chosen = _place(workspace, name, split)
        judged = _judged(where, chosen)
        shared, near = room.n_known(judged.queries, before)
        if shared:
            source = f"The training of {config.retriever}"
            leaks.append(Leak(source, where.name, chosen, shared, len(judged.queries), near=near))
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
    judged = np.unique(np.concatenate([_judged(folder, split).queries for folder, split in chosen]))
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


def _judged(folder: Path, split: str) -> _JudgedSplit:
    """Return one split of a benchmark, cached while its judgments are unchanged."""

    def compute() -> _JudgedSplit:
        grades = {name: beir_files.read_qrels(path).grades for name, path in qrels_files(folder).items()}
        texts = dict(room.query_texts(folder))
        by_split = {
            name: room.distinct(room.keys(texts[query] for query in judged if query in texts))
            for name, judged in grades.items()
        }
        others = [judged[:, 0] for name, judged in by_split.items() if name != split]
        positives = frozenset(
            d for query_grades in grades[split].values() for d, grade in query_grades.items() if grade > 0
        )
        none = np.empty(0, dtype=np.uint64)
        other = np.unique(np.concatenate([none, *others]))
        every = np.unique(room.hashes(texts.values()))
        key = sha256_text(split, by_split[split].tobytes().hex(), other.tobytes().hex(), *sorted(positives))
        return _JudgedSplit(key, by_split[split], other, every, positives)

    path = qrels_files(folder)[split]
    return ANSWERS.get(path, ("judged", str(part(folder, "queries"))), compute)


def _documents(workspace: Workspace, query_set: QuerySet, judged: _JudgedSplit, split: str) -> int:
    """Count documents of an imported set that are positives of the split, by queries of the benchmark that no other
    split judges, or by any other query of a set that was imported with this split."""
    whole = split in query_set.parameters.get("splits", ())
    path = query_sets.files(workspace, query_set.id).queries

    def compute() -> int:
        n = 0
        for line in query_sets.iter_lines(workspace, query_set.id):
            if line["document_id"] in judged.positives:
                query_hashes = room.hashes(line["queries"])
                own = np.isin(query_hashes, judged.every) | whole
                n += bool((own & ~np.isin(query_hashes, judged.other)).any())
        return n

    return ANSWERS.get(path, ("documents judged", judged.key), compute)
