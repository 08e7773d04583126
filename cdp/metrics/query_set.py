"""The quick measures of a whole query set: Self-BLEU, CW and, given human queries, Len-Sim.

One pass over the documents; what stays in memory is a query and a few numbers per document. The queries of a document
are nested: the first M of them are the set at Q/Doc = M, so one pass gives Self-BLEU at several M.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.failures import Failures
from cdp.base.statistics import bootstrap_interval
from cdp.complexity import count_content_words
from cdp.metrics.measures import MEASURES
from cdp.metrics.measures.len_sim import document_len_sim
from cdp.metrics.measures.self_bleu import bleu_against_others
from cdp.metrics.tokens import tokens

# Scopes: queries of one document against each other, or queries of different documents.
DOCUMENT, CORPUS = "document", "corpus"


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One measure of one query set.

    ``value`` is None where the measure is not defined, and ``reason`` says why. ``interval`` is the 95% bootstrap
    interval over documents (corpus scope: over the groups or pairs drawn); None for a single one, which tells nothing
    about others. ``per_doc`` is M: the first M queries of
    each document. ``sampled_from`` is the number of documents of the whole set where only a sample was measured.
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None
    n_documents: int
    n_queries: int
    per_doc: int
    scope: str = DOCUMENT
    model: str = ""
    threshold: float | None = None
    sampled_from: int | None = None
    reason: str = ""


def aggregate(name: str, per_document: NDArray[np.float64], *, reason: str, seed: int = 0, **facts: Any) -> MetricValue:
    """The mean over documents with its interval. NaN marks a document for which the measure is not defined.

    ``reason`` is recorded if it is defined for none. ``facts`` are further fields of ``MetricValue``.
    """
    defined = per_document[~np.isnan(per_document)]
    if len(defined) == 0:
        return MetricValue(name, None, None, n_documents=0, reason=reason, **facts)
    interval = bootstrap_interval(defined, seed=seed) if len(defined) > 1 else None
    return MetricValue(name, float(defined.mean()), interval, n_documents=len(defined), **facts)


def mean_over_queries(
    name: str, sums: NDArray[np.float64], sizes: NDArray[np.int64], *, reason: str, seed: int = 0, **facts: Any
) -> MetricValue:
    """The mean over all queries, Σ sums / Σ sizes, with an interval from resampling whole documents.

    Queries of one document are alike, so it is documents that are drawn: the ratio's linearised bootstrap.
    """
    n = int(sizes.sum())
    if n == 0:
        return MetricValue(name, None, None, n_documents=0, reason=reason, **facts)
    mean = float(sums.sum() / n)
    if len(sizes) == 1:
        return MetricValue(name, mean, None, n_documents=1, **facts)
    low, high = bootstrap_interval((sums - mean * sizes) / sizes.mean(), seed=seed)
    return MetricValue(name, mean, (mean + low, mean + high), n_documents=len(sizes), **facts)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """second − first over the documents that have a value in both.

    ``interval`` is the 95% bootstrap interval of the mean difference; ``higher`` the share of documents where the
    second is higher. Documents differ far more from each other than two sets do on one document, so this can tell
    sets apart whose own intervals overlap.
    """

    mean: float
    interval: tuple[float, float]
    higher: float
    n_documents: int


def paired_difference(
    first_ids: Sequence[str], first: ArrayLike, second_ids: Sequence[str], second: ArrayLike, *, seed: int = 0
) -> PairedDifference:
    """Compare a measure's per-document values of two sets, NaN or None where it is not defined.

    InputError if no document has a value in both.
    """
    a = dict(zip(first_ids, np.asarray(first, dtype=np.float64).tolist(), strict=True))
    b = dict(zip(second_ids, np.asarray(second, dtype=np.float64).tolist(), strict=True))
    differences = np.array([b[name] - a[name] for name in a if name in b], dtype=np.float64)
    differences = differences[~np.isnan(differences)]
    if len(differences) == 0:
        raise InputError("The two query sets have no document in common that has a value in both.")
    return PairedDifference(
        mean=float(differences.mean()),
        interval=bootstrap_interval(differences, seed=seed),
        higher=float((differences > 0).mean()),
        n_documents=len(differences),
    )


# The M at which Self-BLEU and CE are given besides the full number of queries; the paper's.
DEPTHS = (1, 2, 3, 5, 10, 20)

# Corpus scope: Self-BLEU compares groups of so many queries, one each of at most so many documents.
CORPUS_GROUP = 10
CORPUS_DOCUMENTS = 10_000

ONE_QUERY = "No document has two queries. The corpus scope compares queries of different documents."
NO_QUERY = "There are no queries."

_CHUNK = 512
_NAN = float("nan")

IdWithQueries = tuple[str, Sequence[str]]


@dataclass(slots=True)
class QuerySetMeasures:
    """What ``measure_query_set`` found.

    ``per_document`` holds the values at the full number of queries by measure, shape (n_documents,), NaN where a
    measure is not defined; its rows belong to ``document_ids``. Documents without any query are counted in
    ``n_empty``, those that could not be measured in ``n_failed``; both are left out of everything else.
    """

    values: list[MetricValue]
    document_ids: list[str]
    per_document: dict[str, NDArray[np.float64]]
    cw: NDArray[np.int64]
    n_empty: int
    n_failed: int = 0


def depths_of(most: int) -> list[int]:
    """The M at which nested values are given: those of ``DEPTHS`` below the largest number of queries, and that."""
    return [*(depth for depth in DEPTHS if depth < most), most]


def measure_query_set(
    documents: Iterable[IdWithQueries],
    *,
    language: str = "en",
    human: Mapping[str, Sequence[str]] | None = None,
    sampled_from: int | None = None,
    seed: int = 0,
    failures: Failures | None = None,
) -> QuerySetMeasures:
    """Measure a query set given as (document id, queries) pairs.

    ``human`` maps document ids to human queries; ``sampled_from`` is recorded where ``documents`` is a sample. The
    values are Self-BLEU at each M of ``DEPTHS`` below the full number (for a document with fewer queries, of all it
    has), every measure at the full number, and the corpus scope of Self-BLEU. An interval is over documents. A document
    that cannot be measured goes to ``failures``.
    """
    failures = failures or Failures()
    columns = _Columns(human, Random(seed))
    n_empty, stream = 0, iter(documents)
    while chunk := list(islice(stream, _CHUNK)):
        filled = [(name, list(queries)) for name, queries in chunk if queries]
        n_empty += len(chunk) - len(filled)
        for (name, queries), cw in zip(filled, _counted(filled, language, failures), strict=True):
            if cw is None:
                continue
            with failures.item(name, "\n".join(queries)):
                columns.add(name, queries, cw)
    failures.close()
    return columns.measures(n_empty, failures.n, seed=seed, sampled_from=sampled_from)


def _counted(
    documents: Sequence[tuple[str, list[str]]], language: str, failures: Failures
) -> list[NDArray[np.int64] | None]:
    """The content words of each document's queries, None where they cannot be counted."""

    def together(queries_of: list[list[str]]) -> list[NDArray[np.int64]]:
        counted = count_content_words((query for queries in queries_of for query in queries), language)
        return np.split(counted, np.cumsum([len(queries) for queries in queries_of])[:-1])

    names = [name for name, _ in documents]
    return failures.batch(together, [queries for _, queries in documents], names.__getitem__, "\n".join)


class _Columns:
    """One number per document for each measure, for Self-BLEU at each M, growing as documents stream by."""

    def __init__(self, human: Mapping[str, Sequence[str]] | None, random: Random) -> None:
        self.human, self.random = human, random
        self.ids: list[str] = []
        self.cw: list[NDArray[np.int64]] = []
        self.drawn: list[str] = []  # a query of each document, for the corpus scope
        self.functions: dict[str, Callable[[Sequence[str], Sequence[str]], float]] = {
            **({"len_sim": lambda queries, human: document_len_sim(queries, human) if human else _NAN}
               if human is not None else {}),
            **{name: measure.of_document for name, measure in MEASURES.items() if measure.of_document},
        }  # fmt: skip
        self.values = {name: array("d") for name in self.functions}
        self.self_bleu = {depth: array("d") for depth in (*DEPTHS, 0)}  # 0: of all queries

    def add(self, name: str, queries: list[str], cw: NDArray[np.int64]) -> None:
        """Measure one document and add its values: all of them, or none if one raises."""
        human = (self.human or {}).get(name, ())
        values = {measure: float(function(queries, human)) for measure, function in self.functions.items()}
        cut = [tokens(query) for query in queries]
        self_bleu = {n: _self_bleu(cut[:n]) for n in {len(cut), *(depth for depth in DEPTHS if depth < len(cut))}}
        self.ids.append(name)
        self.cw.append(cw)
        self.drawn.append(self.random.choice(queries))
        for measure, value in values.items():
            self.values[measure].append(value)
        for depth, column in self.self_bleu.items():
            column.append(self_bleu[min(depth or len(queries), len(queries))])

    def measures(self, n_empty: int, n_failed: int, **facts: Any) -> QuerySetMeasures:
        """The values over all documents; ``facts`` are ``seed`` and ``sampled_from``."""
        sizes = np.array([len(cw) for cw in self.cw], dtype=np.int64)
        sums = np.array([cw.sum() for cw in self.cw], dtype=np.float64)
        most = int(sizes.max(initial=0))
        columns = {"self_bleu": np.array(self.self_bleu[0])}
        columns |= {name: np.array(column) for name, column in self.values.items()}
        values = [
            aggregate(
                "self_bleu",
                columns["self_bleu"] if depth == most else np.array(self.self_bleu[depth]),
                n_queries=int(np.minimum(sizes, depth).sum()),
                per_doc=depth,
                reason=ONE_QUERY if most else NO_QUERY,
                **facts,
            )
            for depth in depths_of(most)
        ]
        whole = {"n_queries": int(sizes.sum()), "per_doc": most, **facts}
        for name in self.functions:
            reason = (
                "No document has human queries." if name == "len_sim" else f"{MEASURES[name].title} is not defined."
            )
            values.append(aggregate(name, columns[name], reason=reason, **whole))
        values.append(mean_over_queries("cw", sums, sizes, reason=NO_QUERY, **whole))
        values.append(self._corpus_self_bleu(per_doc=most, **facts))
        columns["cw"] = sums / np.maximum(sizes, 1)
        cw = np.concatenate([np.zeros(0, dtype=np.int64), *self.cw])
        return QuerySetMeasures(values, self.ids, columns, cw, n_empty, n_failed)

    def _corpus_self_bleu(self, **facts: Any) -> MetricValue:
        pool = self.random.sample(self.drawn, min(len(self.drawn), CORPUS_DOCUMENTS))
        groups = [pool[start : start + CORPUS_GROUP] for start in range(0, len(pool), CORPUS_GROUP)]
        groups = [group for group in groups if len(group) == CORPUS_GROUP] or groups[:1]
        n_queries = sum(map(len, groups))
        value = aggregate(
            "self_bleu",
            np.array([_self_bleu(list(map(tokens, group))) for group in groups]),
            n_queries=n_queries,
            scope=CORPUS,
            reason="There are not two documents with queries.",
            **facts,
        )
        return replace(value, n_documents=n_queries)


def _self_bleu(queries: Sequence[Sequence[str]]) -> float:
    """Self-BLEU of queries given by their tokens; NaN for fewer than two."""
    return sum(bleu_against_others(queries)) / len(queries) if len(queries) > 1 else _NAN


T = TypeVar("T")


def reservoir(items: Iterable[T], n: int, seed: int = 0) -> tuple[list[T], int]:
    """``n`` items drawn without replacement, in the order of ``items``, and how many items there were."""
    random = Random(seed)
    drawn: list[tuple[int, T]] = []
    total = 0
    for total, item in enumerate(items, start=1):
        if len(drawn) < n:
            drawn.append((total, item))
        elif (slot := random.randrange(total)) < n:
            drawn[slot] = (total, item)
    drawn.sort(key=lambda entry: entry[0])
    return [item for _, item in drawn], total
