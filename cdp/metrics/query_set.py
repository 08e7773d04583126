"""The quick measures of a query set: means with intervals, Self-BLEU at each M, CW, Len-Sim; paired difference.

One pass over the documents; what stays in memory is a few numbers per document. The queries of a document
are nested: the first M of them are the set at Q/Doc = M, so one pass gives Self-BLEU at several M.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.errors import InputError, WorkspaceError
from cdp.base.failures import Failures
from cdp.base.records import checked
from cdp.base.statistics import bootstrap_interval
from cdp.base.text import Progress, silent
from cdp.base.workspace import ANSWERS, Workspace, read_json, sha256_text, write_json
from cdp.complexity import CwProfile, count_content_words, profile
from cdp.corpus import load_manifest
from cdp.metrics.measures import MEASURES, tokens
from cdp.metrics.measures.len_sim import document_len_sim
from cdp.metrics.measures.self_bleu import bleu_against_others
from cdp.query_sets import QuerySet


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One measure of one query set.

    ``value`` is None where the measure is not defined, and ``reason`` says why. ``interval`` is the 95% bootstrap
    interval over documents; None for a single one, which tells nothing about others. ``per_doc`` is M: the first M
    queries of each document. ``sampled_from`` is the number of documents of the whole set where only a sample was
    measured.
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None
    n_documents: int
    n_queries: int
    per_doc: int
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

    ``interval`` is the 95% bootstrap interval of the mean difference. Documents differ far more from each other than
    two sets do on one document, so this can tell sets apart whose own intervals overlap.
    """

    mean: float
    interval: tuple[float, float]
    n_documents: int


def paired_difference(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> PairedDifference:
    """Compare a measure's values by document of two sets, NaN or None where it is not defined.

    InputError if no document has a value in both.
    """
    both = [(first[name], second[name]) for name in first if name in second]
    values = np.array(both, dtype=np.float64).reshape(-1, 2)
    differences = values[:, 1] - values[:, 0]
    differences = differences[~np.isnan(differences)]
    if len(differences) == 0:
        raise InputError("The two query sets have no document in common that has a value in both.")
    return PairedDifference(
        mean=float(differences.mean()),
        interval=bootstrap_interval(differences),
        n_documents=len(differences),
    )


# The M at which Self-BLEU is given besides the full number of queries; the paper's.
DEPTHS = (1, 2, 3, 5, 10, 20)

ONE_QUERY = "No document has two queries."
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


def measure_query_set(
    documents: Iterable[IdWithQueries],
    *,
    language: str = "en",
    human: Mapping[str, Sequence[str]] | None = None,
    failures: Failures | None = None,
) -> QuerySetMeasures:
    """Measure a query set given as (document id, queries) pairs.

    ``human`` maps document ids to human queries. The values are Self-BLEU at each M of ``DEPTHS`` below the full number
    (for a document with fewer queries, of all it has), and every measure at the full number. A document that cannot be
    measured goes to ``failures``.
    """
    failures, human_of = failures or Failures(), human or {}
    functions = _functions()
    if human is not None:
        functions = {"len_sim": lambda queries, known: document_len_sim(queries, known) if known else _NAN, **functions}

    ids: list[str] = []
    counts: list[NDArray[np.int64]] = []
    rows: list[list[float]] = []  # Self-BLEU at each M and of all, then the values of the functions
    n_empty, stream = 0, iter(documents)
    while chunk := list(islice(stream, _CHUNK)):
        filled = [(name, list(queries)) for name, queries in chunk if queries]
        n_empty += len(chunk) - len(filled)

        for (name, queries), cw in zip(filled, _counted(filled, language, failures), strict=True):
            if cw is None:
                continue
            with failures.item(name, "\n".join(queries)):
                others = [float(function(queries, human_of.get(name, ()))) for function in functions.values()]
                rows.append([*_nested_self_bleu(queries), *others])
                ids.append(name)
                counts.append(cw)

    failures.close()

    sizes = np.fromiter(map(len, counts), dtype=np.int64)
    sums = np.fromiter(map(np.sum, counts), dtype=np.float64)
    most = int(sizes.max(initial=0))
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(DEPTHS) + 1 + len(functions)).T
    whole = {"n_queries": int(sizes.sum()), "per_doc": most}
    reason = ONE_QUERY if most else NO_QUERY

    values = []
    for depth, column in zip(DEPTHS, columns, strict=False):
        if depth < most:
            n = int(np.minimum(sizes, depth).sum())
            values.append(aggregate("self_bleu", column, n_queries=n, per_doc=depth, reason=reason))

    per_document = dict(zip(("self_bleu", *functions), columns[len(DEPTHS) :], strict=True))
    reasons = {"self_bleu": reason, "len_sim": "No document has human queries."}
    for name, column in per_document.items():
        undefined = reasons.get(name, f"{MEASURES[name].title} is not defined.")
        values.append(aggregate(name, column, reason=undefined, **whole))

    values.append(mean_over_queries("cw", sums, sizes, reason=NO_QUERY, **whole))
    per_document["cw"] = sums / np.maximum(sizes, 1)
    cw = np.concatenate([np.zeros(0, dtype=np.int64), *counts])

    return QuerySetMeasures(values, ids, per_document, cw, n_empty, failures.n)


def _functions() -> dict[str, Callable[[Sequence[str], Sequence[str]], float]]:
    """The measures that are computed document by document, from outside this package."""
    return {name: measure.of_document for name, measure in MEASURES.items() if measure.of_document}


def _counted(
    documents: Sequence[tuple[str, list[str]]], language: str, failures: Failures
) -> list[NDArray[np.int64] | None]:
    """The content words of each document's queries, None where they cannot be counted."""

    def together(queries_of: list[list[str]]) -> list[NDArray[np.int64]]:
        counted = count_content_words(chain.from_iterable(queries_of), language)
        ends = list(accumulate(map(len, queries_of)))
        return np.split(counted, ends[:-1])

    names = [name for name, _ in documents]
    return failures.batch(together, [queries for _, queries in documents], names.__getitem__, "\n".join)


def _nested_self_bleu(queries: Sequence[str]) -> list[float]:
    """Self-BLEU of the first M queries for each M of ``DEPTHS``, then of all; NaN for fewer than two."""
    cut = list(map(tokens, queries))
    found = {0: _NAN, 1: _NAN}
    values = []
    for depth in (*DEPTHS, len(cut)):
        n = min(depth, len(cut))
        if n not in found:
            found[n] = sum(bleu_against_others(cut[:n])) / n
        values.append(found[n])

    return values


# The measures of a query set that need no model, kept beside it until it changes.
#
# They take a second per 12,000 queries. So each writer of a set measures it at its end, and every page reads
# ``queries/<id>/measures/<key>.json``. The key is over the content of the set and of the human queries, and the
# language.

VERSION = "8"

DOCUMENTS_A_REPORT = 500


@dataclass(frozen=True)
class QuickMeasures:
    """Self-BLEU, CW and, given human queries, Len-Sim of a query set, as they are kept in the file ``kept``.

    ``measures`` are the values at the full Q/Doc, ``by_per_doc[M]`` Self-BLEU of the first M queries, ``documents``
    Self-BLEU of each document (None for a single query). ``failed`` are the id and reason of the first of the
    ``n_failed`` documents that could not be measured. ``query_set_hash`` is the set's as it was measured, ``method``
    who wrote it, ``human`` the set that Len-Sim compares with.
    """

    query_set: str
    language: str
    kept: str
    measures: list[MetricValue]
    by_per_doc: dict[int, float]
    cw: CwProfile
    documents: dict[str, float | None]
    n_empty: int
    n_failed: int
    failed: list[dict[str, Any]]
    query_set_hash: str
    method: str
    human: str

    @property
    def per_doc(self) -> int:
        """The full Q/Doc."""
        return self.measures[0].per_doc


def quick(
    workspace: Workspace,
    query_set: QuerySet,
    *,
    human: QuerySet | None = None,
    per_doc: int | None = None,
    watch: Progress = silent,
    failures: Failures | None = None,
) -> QuickMeasures:
    """Return what is kept for the set as it is now, or measure and keep it; of the first ``per_doc`` queries of each
    document where that is given.

    InputError for a set without queries. What ``watch`` raises ends the measuring. Documents that cannot be measured
    go to ``failures``.
    """
    language = load_manifest(workspace, query_set.corpus_id).counted_language
    reference = query_sets.state(workspace, human) if human else ""
    content = query_sets.state(workspace, query_set)
    measured_on = [VERSION, content, reference, language, *sorted(_functions())]
    if per_doc is not None:
        measured_on.append(str(per_doc))

    key = sha256_text(*measured_on)[:16]
    path = query_sets.files(workspace, query_set.id).measures / f"{key}.json"
    with suppress(WorkspaceError):  # none yet, or damaged
        return ANSWERS.get(path, "quick", lambda: checked(QuickMeasures, read_json(path), path))

    failures = failures or Failures()
    known: dict[str, Sequence[str]] | None = None
    if human:
        known = {line.document_id: line.queries for line in query_sets.read_queries(workspace, human.id)}

    def documents() -> Iterator[IdWithQueries]:
        for done, line in enumerate(query_sets.read_queries(workspace, query_set.id)):
            if done % DOCUMENTS_A_REPORT == 0:
                watch("measuring", done, query_set.n_documents)
            yield line.document_id, line.queries[:per_doc]

    measured = measure_query_set(documents(), language=language, human=known, failures=failures)
    if measured.cw.size == 0:
        raise InputError(f"The query set {query_set.id} has no queries yet.", hint="Generate or import some first.")

    most = max(value.per_doc for value in measured.values)
    by_per_doc = {}
    for value in measured.values:
        if value.name == "self_bleu" and value.value is not None:
            by_per_doc[value.per_doc] = value.value

    of_each = measured.per_document["self_bleu"]
    defined = of_each.astype(object)
    defined[np.isnan(of_each)] = None
    found = QuickMeasures(
        query_set=query_set.id,
        language=language,
        kept=path.name,
        measures=[value for value in measured.values if value.per_doc == most],
        by_per_doc=by_per_doc,
        cw=profile(measured.cw),
        documents=dict(zip(measured.document_ids, defined.tolist(), strict=True)),
        n_empty=measured.n_empty,
        n_failed=measured.n_failed,
        failed=[{"id": line["id"], "reason": line["reason"]} for line in failures.first],
        query_set_hash=content,
        method=query_set.method or query_set.kind,
        human=human.id if human else "",
    )

    try:
        write_json(path, asdict(found))
    except WorkspaceError:
        if os.access(workspace.root, os.W_OK):
            raise

        # In a read-only workspace the values are shown and measured again next time.
    return found
