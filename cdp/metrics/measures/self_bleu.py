"""Self-BLEU (Zhu et al. 2018; sec:appendix_qd of the paper): how much a document's queries repeat each other's n-grams.

The value equals the mean of NLTK's ``sentence_bleu(the other queries, query)`` with equal weights on 1- to 4-grams and
smoothing method 1. NLTK counts every reference again for every hypothesis; here each n-gram of a document is counted
once: a query's clipped count of an n-gram needs only its largest count among the others, which follows from the two
largest counts over all queries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from cdp.base.errors import InputError
from cdp.metrics.measures import Measure, tokens

MEASURE = Measure(
    name="self_bleu",
    order=50,
    title="Self-BLEU",
    better="lower",
    low=0.0,
    high=1.0,
    help="Mean over the queries of a document of BLEU-4 against the document's other queries.",
)

# NLTK's smoothing method 1: an n-gram order without a match counts 0.1 matches.
_EPSILON = 0.1


def self_bleu(queries: Sequence[str | Sequence[str]]) -> float:
    """Self-BLEU of one document's queries, in [0, 1].

    A query is a text, or a list of tokens if the caller cuts.
    InputError for fewer than two queries: the measure compares queries of one document, so it is not defined then.
    """
    if isinstance(queries, str) or len(queries) < 2:
        raise InputError("Self-BLEU needs at least two queries of a document.")

    cut = [tokens(query) if isinstance(query, str) else query for query in queries]
    return sum(bleu_against_others(cut)) / len(cut)


def bleu_against_others(queries: Sequence[Sequence[Hashable]]) -> list[float]:
    """BLEU-4 of each query (a list of tokens) with all the others as its references. Needs two queries or more."""
    matches = [_clipped_matches(queries, 1, range(len(queries)))]
    for order in (2, 3, 4):
        # An n-gram found in another query brings both its (n−1)-grams along: fewer than two matches rule it out.
        candidates = [i for i, matched in enumerate(matches[-1]) if matched >= 2]
        matches.append(_clipped_matches(queries, order, candidates))

    penalties = _brevity_penalties(list(map(len, queries)))
    return [
        penalties[len(query)] * _mean_precision(len(query), *matched)
        for query, matched in zip(queries, zip(*matches, strict=True), strict=True)
    ]


def _ngrams(query: Sequence[Hashable], order: int) -> Iterable[Hashable]:
    if order == 1:
        return query
    if order == 2:
        return pairwise(query)
    return zip(*(query[start:] for start in range(order)))  # noqa: B905


def _clipped_matches(queries: Sequence[Sequence[Hashable]], order: int, candidates: Sequence[int]) -> list[int]:
    """Per query: Σ over its distinct n-grams of min(its count, the largest count in any other query).

    Only the queries at ``candidates`` can have a match; for the others it is 0.
    """
    matches = [0] * len(queries)
    if len(candidates) < 2:
        return matches

    distinct = [set(_ngrams(queries[i], order)) for i in candidates]
    holders = Counter(chain.from_iterable(distinct))

    shared = {gram for gram, n in holders.items() if n > 1}
    if not shared:
        return matches

    repeating: dict[int, Counter[Hashable]] = {}
    for i, grams in zip(candidates, distinct, strict=True):
        matches[i] = len(grams & shared)
        if len(grams) < len(queries[i]) - order + 1:
            repeating[i] = Counter(_ngrams(queries[i], order))

    largest = _two_largest(repeating.values())
    for i, counts in repeating.items():
        for gram, count in counts.items():
            if count > 1 and gram in shared:
                first, second = largest[gram]
                others = second if count == first else first
                matches[i] += min(count, max(others, 1)) - 1

    return matches


def _two_largest(counters: Iterable[Counter[Hashable]]) -> dict[Hashable, tuple[int, int]]:
    """For each n-gram that some query repeats: its largest and second-largest count (0: no second repeats it)."""
    largest: dict[Hashable, tuple[int, int]] = {}
    for counts in counters:
        for gram, count in counts.items():
            if count > 1:
                first, second = largest.get(gram, (0, 0))
                largest[gram] = (count, first) if count > first else (first, max(count, second))
    return largest


def _brevity_penalties(lengths: Sequence[int]) -> dict[int, float]:
    """For each length of a query: the penalty against the closest other length, the shorter of two equally close."""
    occurrences = Counter(lengths)
    penalties = {}
    for length, n in occurrences.items():
        closest = length
        if n == 1:
            closest = min(occurrences.keys() - {length}, key=lambda o: (abs(o - length), o))

        if length > closest:
            penalties[length] = 1.0
        elif length:
            penalties[length] = math.exp(1 - closest / length)
        else:
            penalties[length] = 0.0

    return penalties


@lru_cache(maxsize=1 << 16)
def _mean_precision(length: int, *matches: int) -> float:
    """Geometric mean of the smoothed 1- to 4-gram precisions of a query; 0 without any shared token."""
    if not matches[0]:
        return 0.0
    logarithms = (
        0.25 * math.log((matched or _EPSILON) / max(1, length - order))  # order 0 is the unigrams'
        for order, matched in enumerate(matches)
    )
    return math.exp(math.fsum(logarithms))
