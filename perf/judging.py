"""Does the corrected difference of two systems cover the true one, whatever errors the judge model makes?

A collection's judgments of people play the people. A simulated judge errs on the pooled first ten of BM25 and an
untrained retriever; each draw takes the collection's queries with replacement, judges them all, and labels a random
sample of them. The true difference is people's, over the whole collection.

    python -m perf.judging [FOLDER] [--retriever static-minilm] [--draws 2000]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp.base.statistics import stdtrit
from cdp.base.workspace import REPOSITORY, Workspace
from cdp.evaluation.calibration import Corrected, estimate

Floats = NDArray[np.float64]
K = 10
LABELS = (30, 60, 120, 240)
COLLECTION = REPOSITORY.parent / "shared" / "data" / "hotpotqa_sample"
_DISCOUNTS = 1 / np.log2(np.arange(2, K + 2))
_AT_ONCE = 100  # draws held in memory together


@dataclass(frozen=True)
class Pool:
    """The pooled documents of Q queries, padded to P: arrays (Q, P).

    ``first`` and ``second`` hold each system's discount for a document (0 outside its first ten), ``relevant`` people's
    judgments, ``overlap`` the share of the query's content words in the document, ``there`` what is no padding.
    """

    first: Floats
    second: Floats
    relevant: NDArray[np.bool_]
    overlap: Floats
    there: NDArray[np.bool_]

    def differences(self, grades: NDArray[np.bool_], rows: NDArray[np.int64]) -> Floats:
        """Return NDCG@10 of the second minus the first system in points: grades (…, P) of the queries ``rows``."""
        found = np.minimum(grades.sum(-1), K)
        ideal = np.concatenate([[0.0], _DISCOUNTS.cumsum()])[found]
        gains = (grades * (self.second - self.first)[rows]).sum(-1)
        return 100 * np.divide(gains, ideal, out=np.zeros_like(gains), where=ideal > 0)


Judge = Callable[[Pool], Floats]


def _errs(finds: float, mistakes: float) -> Judge:
    return lambda pool: np.where(pool.relevant, finds, mistakes)


# Each gives the probability (Q, P) with which the judge takes a document for relevant.
JUDGES: dict[str, Judge] = {
    "finds 90%, takes 5% of the rest for relevant": _errs(0.9, 0.05),
    "finds 70%, takes 1% of the rest for relevant": _errs(0.7, 0.01),
    "lenient: finds 98%, takes 30% of the rest": _errs(0.98, 0.3),
    "biased to the dense retriever: 40% of its results": lambda pool: np.where(
        pool.relevant, 0.9, np.where(pool.second > 0, 0.4, 0.02)
    ),
    "biased to lexical overlap: up to 60%": lambda pool: np.where(pool.relevant, 0.9, 0.6 * pool.overlap**2),
}


def simulate(pool: Pool, judge: Judge, n_labelled: int, draws: int, seed: int) -> dict[str, float]:
    """Return coverage of both intervals, their half-widths in points, λ, and the labels that ±2 points take."""
    draw = np.random.default_rng(seed)
    n_queries = len(pool.relevant)
    truth = pool.differences(pool.relevant, np.arange(n_queries)).mean()

    chance = judge(pool)
    rows: list[Any] = []
    for start in range(0, draws, _AT_ONCE):
        drawn = draw.integers(0, n_queries, (min(_AT_ONCE, draws - start), n_queries))
        grades = (draw.random((*drawn.shape, pool.relevant.shape[1])) < chance[drawn]) & pool.there[drawn]
        model = pool.differences(grades, drawn)
        # Queries are drawn in random order, so the first n are a random sample.
        sample = slice(0, n_labelled)
        people = pool.differences(pool.relevant[drawn[:, sample]], drawn[:, sample])
        found = [estimate(*values) for values in zip(model, people, model[:, sample], strict=True)]
        mean, half, weight, sd_people, sd_residual = np.array(
            [(one.mean, one.half, one.weight, one.sd_people, one.sd_residual) for one in found]
        ).T
        own, own_half = model.mean(-1), stdtrit(n_queries - 1, 0.975) * model.std(-1, ddof=1) / np.sqrt(n_queries)
        rows.append([mean, half, own, own_half, weight, sd_people, sd_residual])

    mean, half, own, own_half, weight, sd_people, sd_residual = np.concatenate(rows, axis=1)
    usual = Corrected(
        n_queries, n_labelled, n_labelled, 0.0, float(half.mean()), 1.0,
        float(np.sqrt((sd_people**2).mean())), float(np.sqrt((sd_residual**2).mean())),
    )  # fmt: skip

    alone = people.std(-1, ddof=1).mean()
    return {
        "truth": float(truth),
        "judge": float(own.mean()),
        "corrected": float(mean.mean()),
        "uncorrected covers": float((np.abs(own - truth) <= own_half).mean()),
        "covers": float((np.abs(mean - truth) <= half).mean()),
        "half": float(half.mean()),
        "half of labels alone": float(1.96 * alone / np.sqrt(n_labelled)),
        "weight": float(weight.mean()),
        "labels for ±2": float(n_labelled + usual.more_labels(2.0)),
    }


def pool_of(folder: Path, retriever: str) -> Pool:
    """Pool the first ten of BM25 and a retriever on all splits of a benchmark."""
    from cdp.benchmarks.benchmark import load_benchmark, qrels_files
    from cdp.complexity import content_words
    from cdp.evaluation.evaluate import evaluate_bm25, evaluate_model
    from cdp.retrievers import load, resolve

    model = load(resolve(retriever, Workspace.default()), "cpu")
    queries: list[tuple[list[int], list[int], set[int], list[float]]] = []
    for split in qrels_files(folder):
        benchmark = load_benchmark(folder, split)
        numbers = {document: i for i, document in enumerate(benchmark.document_ids)}
        rankings = [evaluate_bm25(benchmark, top_k=K).ranking, evaluate_model(model, benchmark, top_k=K).ranking]
        for row, query in enumerate(benchmark.query_ids):
            first, second = ([int(d) for d in ranking.documents[row] if d >= 0] for ranking in rankings)
            relevant = {numbers[d] for d, grade in benchmark.qrels[query].items() if grade > 0 and d in numbers}
            words = content_words(benchmark.queries[row])
            pooled = list(dict.fromkeys([*first, *second]))
            shared = [len(words & content_words(benchmark.documents[d])) / max(1, len(words)) for d in pooled]
            queries.append((first, second, relevant, shared))
    return arrays(queries)


def arrays(queries: Sequence[tuple[list[int], list[int], set[int], list[float]]]) -> Pool:
    """Pad (first ten, second ten, relevant, overlap of the pooled in order) of each query to arrays."""
    shape = len(queries), 2 * K
    pool = Pool(np.zeros(shape), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape), np.zeros(shape, bool))
    for row, (first, second, relevant, overlap) in enumerate(queries):
        for at, document in enumerate(dict.fromkeys([*first, *second])):
            pool.there[row, at] = True
            pool.relevant[row, at] = document in relevant
            pool.overlap[row, at] = overlap[at]
            for side, ranked in ((pool.first, first), (pool.second, second)):
                if document in ranked:
                    side[row, at] = _DISCOUNTS[ranked.index(document)]
    return pool


def run(folder: Path, retriever: str, draws: int) -> str:
    """Return the table of docs/METHODS.md: cells with several values are those of ``LABELS`` in order."""
    pool = pool_of(folder, retriever)
    lines = [
        f"| judge (labelled queries: {', '.join(map(str, LABELS))}) | says (true) | covers, uncorrected "
        "| covers, corrected "
        "| ± corrected | ± labels alone | labels for ±2 |",
        "|---|---|---|---|---|---|---|",
    ]
    for number, (name, judge) in enumerate(JUDGES.items()):
        rows = [simulate(pool, judge, n, draws, seed=number * 1000 + n) for n in LABELS]
        cells = (
            name,
            f"{rows[0]['judge']:.1f} ({rows[0]['truth']:.1f})",
            f"{rows[0]['uncorrected covers']:.0%}",
            ", ".join(f"{row['covers']:.1%}" for row in rows),
            ", ".join(f"{row['half']:.1f}" for row in rows),
            ", ".join(f"{row['half of labels alone']:.1f}" for row in rows),
            f"{rows[-1]['labels for ±2']:,.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")

    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=COLLECTION)
    parser.add_argument("--retriever", default="static-minilm")
    parser.add_argument("--draws", type=int, default=2000)
    given = parser.parse_args()
    print(run(given.folder, given.retriever, given.draws))
