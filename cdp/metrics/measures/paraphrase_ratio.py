"""CE, the paraphrase ratio (sec:appendix_qd): how many of a document's query pairs ask the same thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError, ModelError
from cdp.metrics.measures import Measure, Queries, by_document

MEASURE = Measure(
    name="paraphrase_ratio",
    order=30,
    title="CE",
    better="lower",
    low=0.0,
    high=1.0,
    help="Share of a document's query pairs that a cross-encoder scores above the threshold as paraphrases.",
    needs="a cross-encoder",
    model_based=True,
)

STAND_IN = Measure(
    name="paraphrase_ratio_bi_encoder",
    order=40,
    title="Paraphrase ratio, bi-encoder",
    better="lower",
    low=0.0,
    high=1.0,
    help="As CE, but a pair's score is the cosine of two embeddings and the threshold is a calibrated one. "
    "It stands in where no cross-encoder can be loaded and is not comparable with CE.",
    needs="a bi-encoder",
    model_based=True,
)

# The paper's threshold for cross-encoder scores in [0, 1].
THRESHOLD = 0.5

Pair = tuple[str, str]
# Pairs of queries to scores: n pairs give shape (n,).
Scorer = Callable[[list[Pair]], ArrayLike]


def paraphrase_ratio(queries: Queries, scorer: Scorer, threshold: float = THRESHOLD) -> float:
    """The share of pairs scoring above ``threshold``, per document, averaged over documents: in [0, 1].

    ``queries`` are one document's (a list of texts) or one list per document; documents with fewer than two queries
    have no pair and are left out. Each distinct pair is scored once, in whichever order it comes first. InputError if
    no document has a pair.
    """
    documents = [document for document in by_document(queries) if len(document) > 1]
    if not documents:
        raise InputError("No document has two queries, so there are no pairs to compare.")
    return float(np.mean(document_ratios(documents, scorer, threshold)))


def document_ratios(documents: Sequence[Sequence[str]], scorer: Scorer, threshold: float) -> NDArray[np.float64]:
    """Share of pairs above the threshold of each document: (n_documents,), NaN without a pair."""
    rows: dict[frozenset[str], int] = {}
    distinct: list[Pair] = []

    def row(pair: Pair) -> int:
        if (at := rows.setdefault(frozenset(pair), len(rows))) == len(distinct):
            distinct.append(pair)
        return at

    rows_of = [list(map(row, combinations(queries, 2))) for queries in documents]
    ratios = np.full(len(documents), np.nan)
    if distinct:
        above = checked_scores(scorer(distinct), len(distinct)) > threshold
        for i, of_document in enumerate(rows_of):
            if of_document:
                ratios[i] = above[of_document].mean()

    return ratios


def checked_scores(scores: ArrayLike, n: int) -> NDArray[np.float64]:
    """Scores of n pairs as float64 of shape (n,); ModelError if there are not n or one is not a number."""
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,):
        raise ModelError(f"The scorer gave an array of shape {values.shape} for {n} pairs.")
    if np.isnan(values).any():
        raise ModelError("The scorer gave scores that are not numbers.", hint="Choose another model.")
    return values
