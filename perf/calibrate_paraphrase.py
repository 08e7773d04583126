"""Where does the bi-encoder stand-in for CE cut between paraphrases and different questions?

The score is the cosine of two all-MiniLM-L6-v2 embeddings. Paraphrases are the pairs of the demo collection's recorded
paraphrase queries (96 documents, 8 wordings of one question each). Different questions are the pairs of its diverse
queries, and of the human questions of one paragraph in XQuAD (English) and FairytaleQA where those are beside the
repository. Documents are split in halves: the threshold with the best balanced accuracy is chosen on one and reported
on the other. Each of the sources of different questions weighs the same; some human questions of one paragraph do ask
the same, so their error rate is an upper bound.

    python -m perf.calibrate_paraphrase
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cdp.base.workspace import REPOSITORY, SHIPPED_DATA, Workspace
from cdp.metrics.scorers import CALIBRATED_THRESHOLD, load_scorer

HUMAN = ("xquad_en", "fairytaleqa_train_en")
MAX_DOCUMENTS = 800
MAX_QUERIES = 8
GRID = np.round(np.arange(0.40, 0.901, 0.01), 2)

Scores = list[NDArray[np.float64]]


def run() -> list[dict[str, object]]:
    """Calibrate, print what was found, and return it: one row per source and one for the choice."""
    scorer = load_scorer("bi-encoder", Workspace.default())

    def scored(documents: list[list[str]]) -> Scores:
        pairs = [(a, b) for queries in documents for i, a in enumerate(queries) for b in queries[i + 1 :]]
        sizes = [len(queries) * (len(queries) - 1) // 2 for queries in documents]
        return np.split(scorer.score(pairs), np.cumsum(sizes)[:-1])

    generations = SHIPPED_DATA / "demo" / "generations"
    same = scored(read(generations / "paraphrase.jsonl"))

    different = {"demo, diverse": scored(read(generations / "diverse.jsonl"))}
    for name in HUMAN:
        path = REPOSITORY.parent / "shared" / "data" / "multiquery" / f"{name}.jsonl.gz"
        if path.exists():
            different[f"{name}, human"] = scored(read(path))

    halves = (slice(0, None, 2), slice(1, None, 2))
    accuracy = [balanced_accuracy(GRID, same[halves[0]], [d[halves[0]] for d in different.values()])]
    chosen = float(GRID[int(np.argmax(accuracy[0]))])
    on_other = balanced_accuracy(np.array([chosen]), same[halves[1]], [d[halves[1]] for d in different.values()])[0]

    rows: list[dict[str, object]] = []
    for name, scores in {"demo, paraphrase": same, **different}.items():
        values = np.concatenate(scores[halves[1]])
        quartiles = np.percentile(values, [25, 50, 75]).round(3).tolist()
        rows.append(
            {
                "source": name,
                "pairs": len(values),
                "quartiles": quartiles,
                "above": round(float((values > chosen).mean()), 3),
            }
        )
        print(f"{name:30} {len(values):6} pairs   quartiles {quartiles}   above {chosen}: {rows[-1]['above']}")

    print(
        f"chosen on the development half: {chosen} (balanced accuracy {accuracy[0].max():.3f}); "
        f"on the other half: {on_other:.3f}; in use: {CALIBRATED_THRESHOLD}"
    )

    rows.append({"source": "choice", "threshold": chosen, "balanced_accuracy": round(float(on_other), 3)})
    return rows


def read(path: Path) -> list[list[str]]:
    """The queries of each document that has at least two."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:  # type: ignore[operator]
        documents: Iterable[list[str]] = [json.loads(line)["queries"][:MAX_QUERIES] for line in file]
    return [queries for queries in documents if len(queries) > 1][:MAX_DOCUMENTS]


def balanced_accuracy(thresholds: NDArray[np.float64], same: Scores, different: list[Scores]) -> NDArray[np.float64]:
    """(share of paraphrases above + mean share of different questions not above) / 2, for each threshold."""

    def above(scores: Scores) -> NDArray[np.float64]:
        return (np.concatenate(scores)[None, :] > thresholds[:, None]).mean(axis=1)

    return (above(same) + 1 - np.mean([above(scores) for scores in different], axis=0)) / 2


if __name__ == "__main__":
    run()
