"""What else could explain a gain: facts of the judged queries, and of the queries that a condition is trained on.

Content words follow length, an easy query shares its words with its document, and queries that do not find their own
document teach little. Each is measured here, so that a report can hold it fixed (``pooling``). Counts are of words, so
none needs a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark
from cdp.complexity import content_words, count_content_words
from cdp.complexity.languages import language_of
from cdp.evaluation import round_trip
from cdp.metrics import self_bleu
from cdp.studies.plan import StudySource
from cdp.training.pairs import PairSet, load_pairs

SAMPLE_QUERIES = 400
"""Training queries that are looked at: enough for a mean within 2%, and quick beside a training."""

SAMPLE_DOCUMENTS = 200
"""Documents whose queries are compared with each other."""

DEPTH = 10
"""A training query that finds its document among so many is said to find it."""

PER_QUERY = ("words", "overlap", "relevant", "hops")

_CONJOINED = re.compile(r"\+")
_HOPS = re.compile(r"^(\d)hop")  # of a query id of MuSiQue: 3hop1__…


def of_queries(benchmark: Benchmark, language: str) -> dict[str, dict[str, float | None]]:
    """{query id: facts} of a benchmark: its ``words``, ``overlap`` (the share of its content words that stand in its
    relevant documents, the mean over these), ``relevant`` documents, and ``hops`` where its id tells them."""
    position = {identifier: number for number, identifier in enumerate(benchmark.document_ids)}
    known: dict[str, set[str]] = {}
    facts: dict[str, dict[str, float | None]] = {}
    lengths = [len(words) for words in language_of(language).words(benchmark.queries)]
    for identifier, text, words in zip(benchmark.query_ids, benchmark.queries, lengths, strict=True):
        relevant = [d for d, grade in benchmark.qrels[identifier].items() if grade > 0 and d in position]
        own = content_words(text, language)
        for document in relevant:
            if document not in known:
                known[document] = content_words(benchmark.documents[position[document]], language)
        shares = [len(own & known[document]) / len(own) for document in relevant] if own else []
        hops = [int(m[1]) if (m := _HOPS.match(part)) else 0 for part in _CONJOINED.split(identifier)]
        facts[identifier] = {
            "words": words,
            "overlap": sum(shares) / len(shares) if shares else None,
            "relevant": len(relevant),
            "hops": sum(hops) if all(hops) else None,
        }
    return facts


class TrainingFacts:
    """Facts of the queries of a source's conditions; its documents are indexed once."""

    def __init__(self, workspace: Workspace, source: StudySource) -> None:
        self._workspace, self._source = workspace, source
        self._ranks: dict[str, int] | None = None

    def of(self, pairs: PairSet) -> dict[str, Any]:
        """Means over a sample of the pairs: words, CW and overlap of a query, Self-BLEU within a document, and the
        share of queries that BM25 leads to their document among all of the source's."""
        language = pairs.language
        rows = _spread(len(pairs), SAMPLE_QUERIES)
        texts = [pairs.queries[row] for row in rows]
        overlaps = []
        for row in rows:
            own = content_words(pairs.queries[row], language)
            if own:
                document = content_words(pairs.documents[pairs.document_of[row]], language)
                overlaps.append(len(own & document) / len(own))
        ranks = self._ranks_of_sample(language)
        sampled = [ranks[query_id] for query_id in pairs.query_ids if query_id in ranks]
        return {
            "queries": len(texts),
            "words": float(np.mean([len(words) for words in language_of(language).words(texts)])),
            "cw": float(count_content_words(texts, language).mean()),
            "overlap": float(np.mean(overlaps)) if overlaps else None,
            "self_bleu": _self_bleu(pairs),
            "round_trip": float(np.mean([0 < rank <= DEPTH for rank in sampled])) if sampled else None,
        }

    def _ranks_of_sample(self, language: str) -> dict[str, int]:
        """{query id: rank of its document} of a sample of the source's queries, by BM25."""
        if self._ranks is None:
            whole = load_pairs(self._workspace, self._source.query_set)
            rows = _spread(len(whole), 4 * SAMPLE_QUERIES)
            ranks = round_trip.by_bm25(
                [whole.queries[row] for row in rows],
                whole.documents,
                whole.document_of[rows],
                language,
            )
            self._ranks = {whole.query_ids[row]: int(rank) for row, rank in zip(rows, ranks, strict=True)}
        return self._ranks


def _spread(n: int, most: int) -> list[int]:
    """Up to ``most`` of n rows, evenly spread: the same each time."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)).tolist() if n else []


def _self_bleu(pairs: PairSet) -> float | None:
    """The mean over documents with two queries or more; None where none has."""
    queries: dict[int, list[str]] = {}
    for text, document in zip(pairs.queries, pairs.document_of.tolist(), strict=True):
        queries.setdefault(document, []).append(text)
    several = [texts for texts in queries.values() if len(texts) > 1]
    chosen = [several[row] for row in _spread(len(several), SAMPLE_DOCUMENTS)]
    return float(np.mean([self_bleu(texts) for texts in chosen])) if chosen else None


def columns(facts: Mapping[str, Mapping[str, Any]], ids: Sequence[str], name: str) -> np.ndarray:
    """One fact of the queries, in the order of ``ids``; NaN where it is not known."""
    return np.array([np.nan if facts.get(i, {}).get(name) is None else float(facts[i][name]) for i in ids])
