"""What happened on the published datasets most like a task: the evidence that no line has to stand in for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cdp.base.statistics import prediction_interval
from cdp.base.statistics.distributions import stdtr
from cdp.principle.differences import ALL, differences
from cdp.principle.kinds import kinds_of_datasets

MOST_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class Similar:
    """One published dataset: ``gains[retriever][Q/Doc]`` is diverse queries minus one per document, in points.

    ``same_kind`` is whether it is of the task's kind, ``same_dataset`` whether the task's queries are its own.
    """

    dataset: str
    kind: str
    cw: float
    same_kind: bool
    same_dataset: bool
    gains: Mapping[str, Mapping[int, float]]

    def mean(self, per_doc: int) -> float:
        """The gain at one Q/Doc, mean over the retrievers."""
        return float(np.mean([by_per_doc[per_doc] for by_per_doc in self.gains.values()]))


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where a new dataset like some published ones would lie at one Q/Doc: Student's t over those datasets.

    ``points`` is their mean gain, ``low`` to ``high`` the 95% prediction interval of one further dataset, and
    ``probability`` that it gains at all; ``n_datasets`` is what all of it rests on.
    """

    per_doc: int
    points: float
    low: float
    high: float
    probability: float
    n_datasets: int


@lru_cache(maxsize=1)
def _gains() -> dict[str, tuple[float, dict[str, dict[int, float]]]]:
    """{dataset: (CW, {retriever: {Q/Doc: points}})} of Q/Doc scaling on the 31 published datasets."""
    gains: dict[str, tuple[float, dict[str, dict[int, float]]]] = {}
    for d in differences(ALL):
        gains.setdefault(d.dataset, (d.cw, {}))[1].setdefault(d.retriever, {})[d.per_doc] = d.points
    return gains


def most_similar(
    cw: float, task: str = "", *, dataset: str = "", leave_out: Sequence[str] = (), n: int = MOST_SIMILAR
) -> tuple[Similar, ...]:
    """The ``n`` published datasets most like a task: its own dataset, then those of its kind, then by CW.

    Distance in CW is that of the logarithms of CW + 1: from 5 to 10 is about as far as from 30 to 60. Without a kind
    only CW counts. Datasets of web search were printed as in-domain, so they only stand for that kind.
    """
    kinds = kinds_of_datasets()
    candidates = [
        Similar(name, kinds[name], at, bool(task) and kinds[name] == task, name == dataset, gains)
        for name, (at, gains) in _gains().items()
        if name not in leave_out and (kinds[name] != "web-search" or task == "web-search" or name == dataset)
    ]
    far = {s.dataset: abs(math.log((s.cw + 1) / (cw + 1))) for s in candidates}
    return tuple(sorted(candidates, key=lambda s: (not s.same_dataset, not s.same_kind, far[s.dataset]))[:n])


def outlook(similar: Sequence[Similar]) -> tuple[Outlook, ...]:
    """For each Q/Doc above 1, what the gains of these datasets say of a further one. Empty for fewer than two."""
    if len(similar) < 2:
        return ()
    outlooks = []
    for per_doc in sorted(next(iter(similar[0].gains.values()))):
        values = np.array([s.mean(per_doc) for s in similar])
        interval = prediction_interval(values)
        assert interval is not None
        error = float(values.std(ddof=1) * np.sqrt(1 + 1 / len(values)))
        mean = float(values.mean())
        probability = float(stdtr(len(values) - 1, mean / error)) if error else float(mean > 0)
        outlooks.append(Outlook(per_doc, mean, *interval, probability, len(values)))
    return tuple(outlooks)
