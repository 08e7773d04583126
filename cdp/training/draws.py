"""Which pairs of a set a condition takes: documents drawn at random by seed, and budgets that are met to the pair.

The draw is a permutation of all documents, so conditions of one seed are nested: fewer documents are the first ones of
more, in the permutation and not in the corpus.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cdp.base.errors import InputError

Indices = NDArray[np.int64]


def drawn_rows(
    document_of: Indices,
    seed: int,
    *,
    per_doc: int,
    documents: int | None = None,
    budget: int | None = None,
    widest: int | None = None,
) -> Indices:
    """The rows, in their order, that are the first ``per_doc`` queries of documents drawn at random.

    ``document_of`` (n_pairs,). ``documents``: so many of them (None: all). ``budget``: exactly so many rows; only
    documents with ``per_doc`` queries take part, the last one with what is left of the budget. Where enough documents
    have ``widest`` queries (the most of any condition), all conditions draw among these, so that they take the same
    kind of document. InputError where the set cannot meet the budget.
    """
    counts = np.bincount(document_of)
    order = np.random.default_rng([seed, len(counts)]).permutation(len(counts))
    if documents is not None:
        order = order[:documents]
    wanted = np.zeros(len(counts), dtype=np.int64)
    if budget is None:
        wanted[order] = per_doc
    else:
        needed = -(-budget // per_doc)
        chosen = next(
            (
                enough[:needed]
                for least in dict.fromkeys((widest or per_doc, per_doc))
                if len(enough := order[counts[order] >= least]) >= needed
            ),
            None,
        )
        if chosen is None:
            there = int((counts[order] >= per_doc).sum())
            raise InputError(
                f"{budget:,} pairs at Q/Doc {per_doc} take {needed:,} documents with {per_doc} queries each, and there "
                f"are {there:,}.",
                hint=f"A budget of {there * per_doc:,} is possible at this Q/Doc.",
            )
        wanted[chosen] = per_doc
        wanted[chosen[-1]] = budget - per_doc * (needed - 1)
    return np.flatnonzero(ranks(document_of) < wanted[document_of])


def ranks(document_of: Indices) -> Indices:
    """The position of each row among the rows of its document, from 0; shape (n_pairs,)."""
    order = np.argsort(document_of, kind="stable")
    grouped = document_of[order]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(grouped) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(grouped)])
    ranks = np.empty(len(document_of), dtype=np.int64)
    ranks[order] = np.arange(len(grouped)) - np.repeat(starts, lengths)
    return ranks
