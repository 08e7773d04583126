"""Measured values with all that they depend on, and how a measure differs between two sets, document by document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.errors import InputError
from cdp.base.statistics import bootstrap_interval

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
    n_pairs: int
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
