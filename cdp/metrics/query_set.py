"""The quick measures of a whole query set: Self-BLEU, CW and, given human queries, Len-Sim.

One pass over the documents; what stays in memory is a few numbers per document. The queries of a document are nested:
the first M of them are the set at Q/Doc = M, so one pass gives every measure at several M.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.failures import Failures
from cdp.base.statistics import bootstrap_interval
from cdp.complexity import STANDARD, count_content_words, language_of
from cdp.metrics.measures import MEASURES
from cdp.metrics.measures.len_sim import length_similarity
from cdp.metrics.measures.self_bleu import SMOOTHING, bleu_against_others
from cdp.metrics.tokens import TOKENIZER, tokens, word_count

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
    tokenizer: str = ""
    stopwords: str = ""
    smoothing: str = ""
    model: str = ""
    threshold: float | None = None
    sampled_from: int | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The record as it is stored: JSON types only."""
        record = asdict(self)
        record["interval"] = None if self.interval is None else list(self.interval)
        return record


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


# The M at which nested values are given besides the full number of queries; the paper's.
DEPTHS = (1, 2, 3, 5, 10, 20)

# Corpus scope: Self-BLEU compares groups of so many queries of different documents.
CORPUS_GROUP = 10

ONE_QUERY = "No document has two queries. The corpus scope compares queries of different documents."
NO_QUERY = "There are no queries."
# What is recorded beside the value of a built-in measure.
_FACTS: dict[str, dict[str, Any]] = {
    "self_bleu": {"tokenizer": TOKENIZER, "smoothing": SMOOTHING, "reason": ONE_QUERY},
    "len_sim": {"tokenizer": TOKENIZER, "reason": "No document has human queries."},
}

_CHUNK = 512
_NAN = float("nan")

IdWithQueries = tuple[str, Sequence[str]]
OfDocument = Callable[[Sequence[str], Sequence[str]], float]


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


def depths_of(queries: Sequence[Sequence[str]]) -> list[int]:
    """The M at which nested values are given: those of ``DEPTHS`` below the largest number of queries, and that."""
    most = max(map(len, queries), default=0)
    return [*(depth for depth in DEPTHS if depth < most), most]


def measure_query_set(
    documents: Iterable[IdWithQueries],
    *,
    language: str = "en",
    stopwords: str = STANDARD,
    human: Mapping[str, Sequence[str]] | None = None,
    per_doc: int | None = None,
    sampled_from: int | None = None,
    seed: int = 0,
    failures: Failures | None = None,
) -> QuerySetMeasures:
    """Measure a query set given as (document id, queries) pairs.

    ``human`` maps document ids to human queries. ``per_doc`` keeps the first so many queries of each document.
    ``sampled_from`` is recorded where ``documents`` is a sample. The values are the document scope at each M of
    ``DEPTHS`` below the full number and at the full number (for a document with fewer queries, all it has), and the
    corpus scope of Self-BLEU. An interval is over documents. A document that cannot be measured goes to ``failures``.
    """
    failures = failures or Failures()
    columns, pool = _Columns(with_human=human is not None), CorpusPool(seed=seed)
    stream = iter(documents)
    count = partial(count_content_words, language=language, stopwords=stopwords)
    while chunk := [(name, list(queries[:per_doc])) for name, queries in islice(stream, _CHUNK)]:
        filled = [(name, queries) for name, queries in chunk if queries]
        columns.n_empty += len(chunk) - len(filled)
        for (name, queries), cw in zip(filled, _counted(filled, count, failures), strict=True):
            if cw is None:
                continue
            with failures.item(name, "\n".join(queries)):
                columns.add(name, queries, () if human is None else human.get(name, ()), cw)
                pool.add(queries)
    failures.close()
    cw_facts = {"tokenizer": language_of(language).tokenizer, "stopwords": stopwords}
    measures = _summary(columns, pool, cw_facts, sampled_from, seed)
    measures.n_failed = failures.n
    return measures


def _counted(
    documents: Sequence[tuple[str, list[str]]], count: Callable[[Iterable[str]], NDArray[np.int64]], failures: Failures
) -> list[NDArray[np.int64] | None]:
    """The content words of each document's queries, None where they cannot be counted."""

    def together(queries_of: list[list[str]]) -> list[NDArray[np.int64]]:
        counted = count(query for queries in queries_of for query in queries)
        return np.split(counted, np.cumsum([len(queries) for queries in queries_of])[:-1])

    names = [name for name, _ in documents]
    return failures.batch(together, [queries for _, queries in documents], names.__getitem__, "\n".join)


class _Columns:
    """One number per document for each measure and M, growing as documents stream by. M = 0 means all queries."""

    def __init__(self, *, with_human: bool) -> None:
        self.ids: list[str] = []
        self.sizes = array("l")
        self.cw: list[NDArray[np.int64]] = []
        self.n_empty = 0
        self.functions: dict[str, OfDocument] = {
            "self_bleu": lambda queries, human: _self_bleu(queries),
            **({"len_sim": _len_sim} if with_human else {}),
            **{name: measure.of_document for name, measure in MEASURES.items() if measure.of_document},
        }
        self.values = {(name, depth): array("d") for name in self.functions for depth in (0, *DEPTHS)}

    def add(self, name: str, queries: list[str], human: Sequence[str], cw: NDArray[np.int64]) -> None:
        """Measure one document and add its values: all of them, or none if one raises."""
        taken = {depth: min(depth or len(queries), len(queries)) for depth in (0, *DEPTHS)}
        values: dict[tuple[str, int], float] = {}
        for measure, function in self.functions.items():
            of_first = {n: float(function(queries[:n], human)) for n in set(taken.values())}
            values |= {(measure, depth): of_first[n] for depth, n in taken.items()}
        self.ids.append(name)
        self.sizes.append(len(queries))
        self.cw.append(cw)
        for key, value in values.items():
            self.values[key].append(value)

    def at(self, name: str, depth: int) -> NDArray[np.float64]:
        """Return the values of a measure at one M, shape (n_documents,)."""
        return np.array(self.values[name, depth])


# A document is measured at several M: its queries are cut once.
_tokens = lru_cache(maxsize=1024)(tokens)
_word_count = lru_cache(maxsize=1024)(word_count)


def _self_bleu(queries: Sequence[str]) -> float:
    return sum(bleu_against_others(list(map(_tokens, queries)))) / len(queries) if len(queries) > 1 else _NAN


def _len_sim(queries: Sequence[str], human: Sequence[str]) -> float:
    return length_similarity([*map(_word_count, queries)], [*map(_word_count, human)]) if human else _NAN


def _summary(
    columns: _Columns, pool: CorpusPool, cw_facts: Mapping[str, Any], sampled_from: int | None, seed: int
) -> QuerySetMeasures:
    sizes = np.array(columns.sizes, dtype=np.int64)
    cw = np.concatenate(columns.cw) if columns.cw else np.zeros(0, dtype=np.int64)
    most = int(sizes.max(initial=0))
    values = []
    for depth in [*(d for d in DEPTHS if d < most), most]:
        capped = np.minimum(sizes, depth)
        facts: dict[str, Any] = {
            "n_queries": int(capped.sum()), "per_doc": depth, "seed": seed, "sampled_from": sampled_from
        }  # fmt: skip
        for name in columns.functions:
            own = _FACTS.get(name, {"reason": f"{MEASURES[name].title} is not defined."})
            own = own if most or name != "self_bleu" else {**own, "reason": NO_QUERY}
            column = columns.at(name, 0 if depth == most else depth)
            values.append(aggregate(name, column, **own, **facts))
        sums = _cw_sums(cw, sizes, depth)
        values.append(mean_over_queries("cw", sums, capped, reason=NO_QUERY, **cw_facts, **facts))
    values.append(_corpus_self_bleu(pool.drawn(), per_doc=most, seed=seed, sampled_from=sampled_from))
    per_document = {name: columns.at(name, 0) for name in columns.functions}
    per_document["cw"] = _cw_sums(cw, sizes, most) / np.maximum(sizes, 1)
    return QuerySetMeasures(values, columns.ids, per_document, cw, columns.n_empty)


def _cw_sums(cw: NDArray[np.int64], sizes: NDArray[np.int64], depth: int) -> NDArray[np.float64]:
    """Σ CW over each document's first ``depth`` queries; ``cw`` holds the documents' queries one after the other."""
    starts = np.cumsum(sizes) - sizes
    sums = np.concatenate(([0], np.cumsum(cw)))
    return (sums[starts + np.minimum(sizes, depth)] - sums[starts]).astype(np.float64)


def _corpus_self_bleu(pool: list[str], **facts: Any) -> MetricValue:
    groups = [pool[start : start + CORPUS_GROUP] for start in range(0, len(pool), CORPUS_GROUP)]
    groups = [group for group in groups if len(group) == CORPUS_GROUP] or groups[:1]
    n_queries = sum(map(len, groups))
    value = aggregate(
        "self_bleu",
        np.array([_self_bleu(group) for group in groups]),
        n_queries=n_queries,
        scope=CORPUS,
        **{**_FACTS["self_bleu"], "reason": "There are not two documents with queries."},
        **facts,
    )
    return replace(value, n_documents=n_queries)


# The corpus scope draws one query each from at most so many documents.
CORPUS_DOCUMENTS = 10_000

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


class CorpusPool:
    """One random query each from a random sample of documents, collected while the documents stream by."""

    def __init__(self, n: int = CORPUS_DOCUMENTS, seed: int = 0) -> None:
        self._n = n
        self._random = Random(seed)
        self._kept: list[str] = []
        self._seen = 0

    def add(self, queries: list[str]) -> None:
        """Offer a document's queries (at least one)."""
        self._seen += 1
        if len(self._kept) < self._n:
            self._kept.append(self._random.choice(queries))
        elif (slot := self._random.randrange(self._seen)) < self._n:
            self._kept[slot] = self._random.choice(queries)

    def drawn(self) -> list[str]:
        """The queries in random order."""
        queries = list(self._kept)
        self._random.shuffle(queries)
        return queries
