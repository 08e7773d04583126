"""Where one retriever gets the first place right and another does not, and what the other put there instead.

The paper's analysis (tab:error_analysis): of the queries that only the second retriever answers at rank 1, how often
had the first retrieved another passage of the same source document (the right book, the wrong page), and how often one
of a different document?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cdp.base.errors import InputError
from cdp.base.failures import Failures
from cdp.base.statistics import bootstrap_interval
from cdp.evaluation.measures import Qrels, Run, judged

SAME_SOURCE, OTHER_SOURCE, NOTHING = "same source", "different source", "nothing retrieved"


@dataclass(frozen=True)
class Change:
    """A query that exactly one of two retrievers answers at rank 1.

    ``right`` is the relevant document found, ``wrong`` what the other retriever put first (empty if nothing), ``kind``
    says whether it comes from the source of any document relevant for the query.
    """

    query_id: str
    right: str
    wrong: str
    kind: str


@dataclass(frozen=True)
class Rank1Comparison:
    """Two runs compared at rank 1. ``wins``: only ``other`` is right; ``losses``: only ``baseline`` is."""

    both: int
    neither: int
    wins: tuple[Change, ...]
    losses: tuple[Change, ...]

    def kinds(self, changes: Sequence[Change]) -> dict[str, int]:
        """How many of the changes are of each kind, all kinds named."""
        return {kind: sum(c.kind == kind for c in changes) for kind in (SAME_SOURCE, OTHER_SOURCE, NOTHING)}


def compare_rank_1(
    baseline: Run, other: Run, qrels: Qrels, source_of: Callable[[str], str], failures: Failures | None = None
) -> Rank1Comparison:
    """Compare two runs at rank 1 over every judged query that has a relevant document.

    ``source_of`` gives the source document of a passage's id: its book, its article. Among equal scores the highest id
    stands first, as in trec_eval. A query that cannot be compared goes to ``failures``.
    """
    failures = failures or Failures(unit="query")
    counts = {(True, True): 0, (False, False): 0}
    wins: list[Change] = []
    losses: list[Change] = []
    for query in judged(qrels):
        with failures.item(query):
            relevant = {document for document, grade in qrels[query].items() if grade > 0}
            if not relevant:
                continue
            before, after = _first(baseline.get(query)), _first(other.get(query))
            hits = (before in relevant, after in relevant)
            if hits in counts:
                counts[hits] += 1
                continue
            right, wrong = (after, before) if hits[1] else (before, after)
            change = Change(query, right, wrong, _kind(wrong, relevant, source_of))
            (wins if hits[1] else losses).append(change)
    return Rank1Comparison(counts[True, True], counts[False, False], tuple(wins), tuple(losses))


def _first(scores: Mapping[str, float] | None) -> str:
    if not scores:
        return ""
    return max(scores.items(), key=lambda item: (np.float32(item[1]), item[0]))[0]


def _kind(wrong: str, relevant: set[str], source_of: Callable[[str], str]) -> str:
    if not wrong:
        return NOTHING
    return SAME_SOURCE if source_of(wrong) in {source_of(document) for document in relevant} else OTHER_SOURCE


@dataclass(frozen=True)
class Bucket:
    """The queries with ``low`` ≤ CW < ``high`` (``high`` None: no upper end) and their mean difference.

    ``interval`` is its 95% bootstrap interval over these queries; None, like the mean, where there is none of them.
    """

    low: int
    high: int | None
    n: int
    mean: float | None
    interval: tuple[float, float] | None

    @property
    def name(self) -> str:
        """The range in words: ``4 to 6``, ``14 and more``."""
        if self.high is None:
            return f"{self.low} and more"
        return f"{self.low} to {self.high - 1}" if self.high - 1 > self.low else str(self.low)


def gains_by_complexity(
    differences: ArrayLike, content_words: ArrayLike, edges: Sequence[int] = (0, 4, 7, 10, 14)
) -> list[Bucket]:
    """Where gains sit: the mean difference of the queries in each range of content words, empty ranges included.

    Both arrays have shape (n,), one entry per query; ``edges`` ascend, and the last range is open. InputError for
    arrays that do not fit, or values below the first edge.
    """
    deltas, words = np.asarray(differences, np.float64), np.asarray(content_words)
    if deltas.ndim != 1 or deltas.shape != words.shape:
        raise InputError(f"There are {deltas.shape} differences for {words.shape} numbers of content words.")
    if list(edges) != sorted(set(edges)) or not edges:
        raise InputError("The edges of the ranges must ascend.")
    if len(words) and words.min() < edges[0]:
        raise InputError(f"A query has fewer content words than the first range begins with ({edges[0]}).")
    buckets = []
    for low, high in zip(edges, [*edges[1:], None], strict=True):
        inside = deltas[(words >= low) & (words < high if high is not None else True)]
        any_inside = len(inside) > 0
        mean = float(inside.mean()) if any_inside else None
        buckets.append(Bucket(low, high, len(inside), mean, bootstrap_interval(inside) if any_inside else None))
    return buckets
