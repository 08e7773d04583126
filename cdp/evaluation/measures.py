"""NDCG, recall, MRR, MAP, precision, as trec_eval has them, from the ranks of relevant documents; which are reported.

``ndcg@10`` is the measure; ``recall@k``, ``mrr@k``, ``map@k`` and ``p@k`` stand beside it. Every judged query counts,
with 0 where nothing relevant was retrieved. Values are in [0, 1].

trec_eval orders a query's documents by score, highest first, and documents of equal score by id, *highest first* (as
UTF-8 bytes); it keeps scores in single precision, so what differs less than that is equal. pytrec_eval-terrier does the
same; ascending ids are often named instead. Only documents with a grade above 0 are relevant; a grade below 0 counts
as 0, as in trec_eval.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from cdp.base.errors import ConfigError, InputError

# What an evaluation reports, as far as its ``top_k`` reaches.
REPORTED = ("ndcg@10", "mrr@10", "p@1", "recall@10", "recall@100", "map@100")

TrecRun = Mapping[str, Mapping[str, float]]
Qrels = Mapping[str, Mapping[str, float]]

# Cells of a comparison made at once: 4 million, so 4 MB of booleans.
_BLOCK = 1 << 22


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


def from_run(run: TrecRun, qrels: Qrels) -> RelevantRanks:
    """Ranks from dictionaries {query: {document: score}} and {query: {document: grade}}.

    Queries of the run without judgments are left out. InputError for a score that is not a number.
    """
    query_ids = [query for query, grades in qrels.items() if grades]
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


def _sum_by_query(ranks: RelevantRanks, values: np.ndarray) -> np.ndarray:
    return np.bincount(ranks.query, weights=values, minlength=ranks.n_queries)


def _found(ranks: RelevantRanks, k: int) -> np.ndarray:
    return (ranks.rank > 0) & (ranks.rank <= k)


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, and 0 where b is 0: a query without relevant documents scores 0, as in trec_eval."""
    return np.divide(a, b, out=np.zeros(len(b)), where=b > 0)


def _position_within_query(ranks: RelevantRanks, order: np.ndarray) -> np.ndarray:
    """For entries in ``order``, which must group queries: the position of each within its query, from 1."""
    query = ranks.query[order]
    starts = np.searchsorted(query, np.arange(ranks.n_queries))
    return np.arange(1, len(order) + 1) - starts[query]


def ndcg(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Normalised discounted cumulative gain: Σ grade / log2(rank + 1) over ranks ≤ k, over its highest value.

    Järvelin & Kekäläinen 2002, with the linear gain of trec_eval's ``ndcg_cut``. The paper's only measure.
    """
    hit = _found(ranks, k)
    gained = _sum_by_query(ranks, np.where(hit, ranks.grade / np.log2(np.maximum(ranks.rank, 1) + 1), 0.0))
    order = np.lexsort((-ranks.grade, ranks.query))
    position = _position_within_query(ranks, order)
    ideal = np.where(position <= k, ranks.grade[order] / np.log2(position + 1), 0.0)
    return _ratio(gained, np.bincount(ranks.query[order], weights=ideal, minlength=ranks.n_queries))


def recall(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Share of the relevant documents among the first k."""
    return _ratio(_sum_by_query(ranks, _found(ranks, k)), _sum_by_query(ranks, np.ones(len(ranks.query))))


def mrr(ranks: RelevantRanks, k: int) -> np.ndarray:
    """1 / rank of the first relevant document, 0 if it stands below k."""
    values = np.zeros(ranks.n_queries)
    hit = _found(ranks, k)
    np.maximum.at(values, ranks.query[hit], 1.0 / ranks.rank[hit])
    return values


def average_precision(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Mean over the relevant documents of the precision at their rank, 0 for those below k."""
    hits = np.flatnonzero(_found(ranks, k))
    order = hits[np.lexsort((ranks.rank[hits], ranks.query[hits]))]
    precision = _position_within_query(ranks, order) / ranks.rank[order]
    total = np.bincount(ranks.query[order], weights=precision, minlength=ranks.n_queries)
    return _ratio(total, _sum_by_query(ranks, np.ones(len(ranks.query))))


def precision(ranks: RelevantRanks, k: int) -> np.ndarray:
    """Share of relevant documents among the first k places, whether or not k documents were retrieved."""
    return _sum_by_query(ranks, _found(ranks, k)) / k


KINDS: dict[str, Callable[[RelevantRanks, int], np.ndarray]] = {
    "ndcg": ndcg,
    "recall": recall,
    "mrr": mrr,
    "map": average_precision,
    "p": precision,
}

_NAME = re.compile(r"([a-z]+)@([1-9][0-9]{0,8})")


def parse(name: str) -> tuple[str, int]:
    """``"ndcg@10"`` as ("ndcg", 10); ConfigError for a measure that does not exist."""
    match = _NAME.fullmatch(name.strip().lower())
    if match is None or match[1] not in KINDS:
        raise ConfigError(f"{name!r} is not a measure.", hint=f"There is: {', '.join(f'{k}@10' for k in KINDS)}.")
    return match[1], int(match[2])


def compute(ranks: RelevantRanks, names: Sequence[str]) -> dict[str, np.ndarray]:
    """{measure: float64 array of shape (n_queries,), in the order of ``ranks.query_ids``}."""
    parsed = {name: parse(name) for name in names}
    return {name: KINDS[kind](ranks, k) for name, (kind, k) in parsed.items()}


def within(top_k: int, names: Sequence[str] = REPORTED) -> list[str]:
    """Those of the measures that a run of ``top_k`` documents per query can tell."""
    return [name for name in names if parse(name)[1] <= top_k]
