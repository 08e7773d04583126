"""Error analysis of a study, in the paper's categories: where one query per document gets the first place wrong and the
best number gets it right, what stood there instead; and the other way round.

Of every evaluation a letter per query is kept: whether the first document is relevant, and if not, whether it is of the
source of one that is. A source is a title, or without titles an id but for the number at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdp.base.statistics import randomisation_test
from cdp.benchmarks import Benchmark
from cdp.benchmarks.beir_files import iter_corpus
from cdp.benchmarks.benchmark import part
from cdp.evaluation.evaluate import Ranking
from cdp.studies.plan import UNTRAINED, Cell

RIGHT, SAME, OTHER, NOTHING = "r", "s", "o", "n"

_NUMBER = re.compile(r"[-_:#.]?\d+$")


@dataclass(frozen=True, slots=True)
class RankOne:
    """Queries of a benchmark at rank 1 under one query per document and under ``per_doc``, over the seeds that both
    have. ``wins`` are right under ``per_doc`` alone; ``same`` of them had another passage of the same source first,
    ``other`` one of a different source. ``losses`` likewise the other way round. ``p`` tests wins against losses, a
    query counted once: the randomisation test on its mean over seeds."""

    retriever: str
    source: str
    benchmark: str
    per_doc: int
    n: int
    seeds: int
    wins: int
    losses: int
    wins_same: int
    wins_other: int
    losses_same: int
    losses_other: int
    p: float


class Sources:
    """The source of each document of benchmarks, read once per benchmark."""

    def __init__(self) -> None:
        self._of: dict[str, list[str]] = {}

    def letters(self, benchmark: Benchmark, ranking: Ranking) -> str:
        """One letter per query, in the order of the benchmark's queries."""
        sources = self._sources(benchmark)
        number = {identifier: i for i, identifier in enumerate(benchmark.document_ids)}
        letters = []
        for row, query in enumerate(benchmark.query_ids):
            first = int(ranking.documents[row, 0]) if ranking.documents.shape[1] else -1
            relevant = {number[d] for d, grade in benchmark.qrels[query].items() if grade > 0 and d in number}
            if first < 0:
                letters.append(NOTHING)
            elif first in relevant:
                letters.append(RIGHT)
            else:
                letters.append(SAME if sources[first] in {sources[d] for d in relevant} else OTHER)
        return "".join(letters)

    def _sources(self, benchmark: Benchmark) -> list[str]:
        if benchmark.hash not in self._of:
            titles = {document.id: document.title for document in iter_corpus(part(benchmark.folder, "corpus"))}
            self._of[benchmark.hash] = [
                titles.get(identifier) or _NUMBER.sub("", identifier) or identifier
                for identifier in benchmark.document_ids
            ]
        return self._of[benchmark.hash]


def rank_one(
    records: Iterable[Mapping[str, Any]], name_of: Mapping[str, str], best: Mapping[tuple[str, str], Cell]
) -> list[RankOne]:
    """Q/Doc 1 against the best cell of each (retriever, source), benchmark by benchmark. ``name_of`` maps the place of
    an evaluation to the benchmark's name; records from before letters were kept give nothing."""
    letters: dict[tuple[Cell, str], dict[int, str]] = {}
    for record in records:
        condition = record.get("condition")
        if record.get("failure") or condition is None:
            continue
        names = ("retriever", "source", "per_doc", "weighting")
        cell: Cell = (*(condition[name] for name in names), condition.get("held", ""))
        for place, name in name_of.items():
            evaluation = record["evaluations"].get(place)
            if evaluation is not None and evaluation.get("rank_1"):
                letters.setdefault((cell, name), {})[int(condition["seed"])] = evaluation["rank_1"]
    compared = []
    for (retriever, source), cell in best.items():
        for name in name_of.values():
            before = letters.get(((retriever, source, 1, "none", ""), name), {})
            after = letters.get((cell, name), {})
            seeds = sorted(set(before) & set(after))
            if seeds and source != UNTRAINED and cell[2] > 1:
                pairs = [(before[seed], after[seed]) for seed in seeds]
                compared.append(_compared(retriever, source, name, cell[2], pairs))
    return compared


def _compared(retriever: str, source: str, benchmark: str, per_doc: int, pairs: Sequence[tuple[str, str]]) -> RankOne:
    import numpy as np

    n = len(pairs[0][0])
    wins = [(a, b) for first, second in pairs for a, b in zip(first, second, strict=True) if a != RIGHT and b == RIGHT]
    losses = [
        (a, b) for first, second in pairs for a, b in zip(first, second, strict=True) if a == RIGHT and b != RIGHT
    ]
    moved = np.mean(
        [[(b == RIGHT) - (a == RIGHT) for a, b in zip(first, second, strict=True)] for first, second in pairs], axis=0
    )
    return RankOne(
        retriever, source, benchmark, per_doc, n, len(pairs), len(wins), len(losses),
        sum(a == SAME for a, _ in wins), sum(a == OTHER for a, _ in wins),
        sum(b == SAME for _, b in losses), sum(b == OTHER for _, b in losses),
        randomisation_test(np.asarray(moved, np.float64)),
    )  # fmt: skip
