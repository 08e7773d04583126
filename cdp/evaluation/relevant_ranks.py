"""Where the relevant documents of each judged query came to stand: all that any measure here needs.

trec_eval orders a query's documents by score, highest first, and documents of equal score by id, *highest first* (as
UTF-8 bytes); it keeps scores in single precision, so what differs less than that is equal. This is what
pytrec_eval-terrier does, whatever is often said of ascending ids, and what is done here.
Only documents with a grade above 0 are relevant; a grade below 0 counts as 0, as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from cdp.base.errors import InputError

Run = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, int]]

_BLOCK = 1 << 22
"""Cells of a comparison made at once: 4 million, so 4 MB of booleans."""


@dataclass(frozen=True)
class RelevantRanks:
    """One entry per relevant (query, document) pair, in the order of ``query_ids``.

    ``query`` (n,) int64 is the index into ``query_ids``, ``grade`` (n,) float64 the gain, ``rank`` (n,) int64 the rank
    from 1, or 0 where the document was not retrieved. ``query_ids`` holds every query with at least one judgment,
    relevant or not. ``absent`` counts those among them for which nothing was retrieved.
    """

    query_ids: tuple[str, ...]
    query: np.ndarray
    grade: np.ndarray
    rank: np.ndarray
    absent: int

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)


def judged(qrels: Qrels) -> list[str]:
    """The queries that count: those with at least one judgment, in the order of ``qrels``."""
    return [query for query, grades in qrels.items() if grades]


def from_run(run: Run, qrels: Qrels) -> RelevantRanks:
    """Ranks from dictionaries {query: {document: score}} and {query: {document: grade}}.

    Queries of the run without judgments are left out. InputError for a score that is not a number.
    """
    query_ids = judged(qrels)
    present: list[tuple[str, Mapping[str, float]]] = []
    retrieved: list[tuple[int, float, int, float, str]] = []
    missing: list[tuple[int, float]] = []
    for i, query in enumerate(query_ids):
        scores = run.get(query) or {}
        for document, grade in qrels[query].items():
            if grade > 0:
                score = scores.get(document)
                if score is None:
                    missing.append((i, grade))
                else:
                    retrieved.append((i, grade, len(present), score, document))
        if scores:
            present.append((query, scores))
    columns, grades, rows, own, documents = zip(*retrieved, strict=True) if retrieved else ((), (), (), (), ())
    ranks = _ranks(present, np.asarray(rows, np.int64), np.asarray(own, np.float64), documents)
    return RelevantRanks(
        tuple(query_ids),
        np.concatenate([np.asarray(columns, np.int64), np.asarray([i for i, _ in missing], np.int64)]),
        np.concatenate([np.asarray(grades, np.float64), np.asarray([g for _, g in missing], np.float64)]),
        np.concatenate([ranks, np.zeros(len(missing), np.int64)]),
        len(query_ids) - len(present),
    )


def _ranks(
    present: Sequence[tuple[str, Mapping[str, float]]], rows: np.ndarray, own: np.ndarray, documents: Sequence[str]
) -> np.ndarray:
    """The rank of each retrieved relevant document: 1 + documents that score higher + those tied with a higher id."""
    if not present:
        return np.zeros(0, np.int64)
    lengths = np.fromiter((len(scores) for _, scores in present), np.int64, len(present))
    flat = np.fromiter(chain.from_iterable(s.values() for _, s in present), np.float64, int(lengths.sum()))
    if np.isnan(flat).any():
        at = int(np.searchsorted(np.cumsum(lengths), np.flatnonzero(np.isnan(flat))[0], side="right"))
        raise InputError(f"The run has a score that is not a number, for query {present[at][0]!r}.")
    table = np.full((len(present), int(lengths.max())), -np.inf, np.float32)
    filled = np.arange(table.shape[1]) < lengths[:, None]
    with np.errstate(over="ignore"):
        table[filled] = flat
        own = own.astype(np.float32)
    higher, equal = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    step = max(1, _BLOCK // table.shape[1])
    for start in range(0, len(rows), step):
        stop = start + step
        block, mine = table[rows[start:stop]], own[start:stop, None]
        higher[start:stop] = np.count_nonzero(block > mine, axis=1)
        equal[start:stop] = np.count_nonzero((block == mine) & filled[rows[start:stop]], axis=1)
    ranks = higher + 1
    for j in np.flatnonzero(equal > 1).tolist():
        scores, document = present[rows[j]][1], documents[j]
        ranks[j] += sum(other > document and np.float32(score) == own[j] for other, score in scores.items())
    return ranks


def from_ranking(
    retrieved: np.ndarray, query_ids: Sequence[str], query: np.ndarray, document: np.ndarray, grade: np.ndarray
) -> RelevantRanks:
    """Ranks from arrays: the form that is fast, for results of ``search``.

    ``retrieved`` (n_queries, k) holds document numbers in final order, -1 where there is none. The relevant pairs, each
    array (n,): ``query`` the row, ``document`` the number (any below -1 for a document that the corpus lacks: never
    retrieved), ``grade`` above 0. Every query given counts as judged.
    """
    rank = np.zeros(len(query), np.int64)
    k = retrieved.shape[1]
    step = max(1, _BLOCK // max(1, k))
    for start in range(0, len(query) if k else 0, step):
        stop = start + step
        hit = retrieved[query[start:stop]] == document[start:stop, None]
        column = hit.argmax(axis=1)
        rank[start:stop] = np.where(hit[np.arange(len(column)), column], column + 1, 0)
    absent = int((retrieved[:, 0] < 0).sum()) if k else len(query_ids)
    return RelevantRanks(tuple(query_ids), query, np.asarray(grade, np.float64), rank, absent)
