"""Len-Sim: whether synthetic queries are about as long as the human queries of the same document (sec:appendix_qd)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

from cdp.metrics.measures import Measure, Queries, aligned, word_count

MEASURE = Measure(
    name="len_sim",
    order=20,
    title="Len-Sim",
    better="higher",
    low=0.0,
    high=1.0,
    help="1 − |lₛ − lₕ| / max(lₛ, lₕ) in words, over all pairs of a synthetic and a human query of a document.",
    needs="human queries",
)


def len_sim(synthetic: Queries, human: Queries) -> float:
    """Len-Sim in [0, 1]: averaged over all pairs of a document, then over documents.

    Both arguments hold one document's queries (a list of texts) or one list per document, in the same order; a
    document without queries on either side is left out. InputError if nothing can be compared.
    """
    values = list(starmap(document_len_sim, aligned(synthetic, human)))
    return sum(values) / len(values)


def document_len_sim(synthetic: Sequence[str], human: Sequence[str]) -> float:
    """Len-Sim of one document, both sides not empty. Two queries without any word are equally long: 1."""
    lengths, others = list(map(word_count, synthetic)), list(map(word_count, human))
    similarities = [1 - abs(s - h) / max(s, h, 1) for s in lengths for h in others]
    return sum(similarities) / len(similarities)
