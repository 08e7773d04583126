"""What a dev split would have chosen: the way of training that is best there, with its score on the test split.

The best of many conditions on a test split is too high by the luck of the best. Where a study evaluates another split
of the same benchmark besides, that split chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

REPORTED = ("test",)
"""Splits that report; another split of the same benchmark chooses."""


@dataclass(frozen=True, slots=True)
class Choice:
    """``chosen`` is the training that is best on ``chosen_on``; ``score`` its NDCG@10 (percent) on ``benchmark``,
    ``best`` what the luckiest reached there, ``untrained`` what the retriever had before (None without)."""

    benchmark: str
    chosen_on: str
    retriever: str
    chosen: str
    score: float
    best: str
    best_score: float
    untrained: float | None


def choices(
    benchmarks: Sequence[tuple[str, str, str]], scores: Mapping[tuple[str, str], Mapping[str, float]], untrained: str
) -> list[Choice]:
    """``benchmarks`` are (label in the report, name, split), ``scores`` {(retriever, training): {label: score}},
    ``untrained`` how the training of none is called."""
    made = []
    for label, name, split in benchmarks:
        others = [other for other, kin, part in benchmarks if kin == name and part != split and part not in REPORTED]
        if split not in REPORTED or not others:
            continue
        for retriever in dict.fromkeys(retriever for retriever, _ in scores):
            trained = {
                training: values
                for (owner, training), values in scores.items()
                if owner == retriever and training != untrained and label in values and others[0] in values
            }
            if len(trained) < 2:
                continue
            chosen = max(trained, key=lambda training: trained[training][others[0]])
            best = max(trained, key=lambda training: trained[training][label])
            before = scores.get((retriever, untrained), {}).get(label)
            made.append(
                Choice(label, others[0], retriever, chosen, trained[chosen][label], best, trained[best][label], before)
            )
    return made
