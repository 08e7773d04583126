"""From a model and a benchmark to scores: encode, search, measure. Used by the worker and while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.evaluation import measures
from cdp.evaluation.benchmarks import Benchmark
from cdp.evaluation.encode import Embedded, EmbeddingStore, Encoding, encode, precision_for
from cdp.evaluation.exact_search import search
from cdp.evaluation.protocols import Protocol, protocol_for
from cdp.evaluation.relevant_ranks import from_ranking

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ProgressBy = Callable[[str, int, int], None]
"""Called with the phase, what is done and the total, in texts."""


@dataclass(frozen=True)
class Ranking:
    """What was retrieved. ``documents`` (n_queries, k) int64 holds document numbers, -1 where there is none;
    ``scores`` (n_queries, k) float32. Rows are in trec_eval's order: score, then document id, both descending."""

    documents: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Evaluation:
    """The result of one model on one benchmark. ``measures`` are means in [0, 1], ``per_query`` {measure: array} in
    the order of the benchmark's queries; ``counts`` says what is behind them, ``seconds`` where the time went, and
    ``settings`` what else determined the result (``max_tokens``: where texts were cut, None if nowhere)."""

    measures: dict[str, float]
    per_query: dict[str, np.ndarray]
    ranking: Ranking
    protocol: Protocol
    counts: dict[str, int]
    seconds: dict[str, float]
    settings: dict[str, Any] = field(default_factory=dict)


def evaluate_model(
    model: SentenceTransformer,
    benchmark: Benchmark,
    *,
    protocol: str = "published",
    top_k: int = 100,
    batch_size: int = 128,
    precision: str = "auto",
    store: EmbeddingStore | None = None,
    model_hash: str = "",
    pool: Any = None,
    progress: ProgressBy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Evaluation:
    """Evaluate a loaded model on one split of a benchmark.

    With a ``store`` and the model's ``model_hash``, embeddings are kept there and taken from there; without (while
    training, when the model is another one each time) they stay in memory. ``precision`` is auto, fp32, fp16 or bf16.
    Raises ``encode.Stopped`` between batches once ``should_stop`` says so.
    """
    chosen = protocol_for(model, protocol)
    precision = precision_for(model) if precision == "auto" else precision
    was_training = model.training
    model.eval()
    seconds: dict[str, float] = {}
    reused = 0

    def embedded(role: str, texts: list[str], prompt: str, hash_of_texts: str = "") -> Embedded:
        began = time.perf_counter()
        encoding = Encoding(model_hash, role, prompt, chosen.normalise, _length_of(model), precision)
        name = "encoding queries" if role == "query" else "encoding documents"
        report = None if progress is None else lambda done, total: progress(name, done, total)
        options: Mapping[str, Any] = {
            "batch_size": batch_size,
            "pool": pool,
            "progress": report,
            "should_stop": should_stop,
        }
        if store is not None and model_hash:
            found = store.get(lambda: model, texts, encoding, hash_of_texts=hash_of_texts, **options)
        else:
            found = Embedded([encode(model, texts, encoding, **options)])
        seconds[name] = time.perf_counter() - began
        return found

    try:
        queries = embedded("query", benchmark.queries, chosen.query_prompt)
        documents = embedded("document", benchmark.documents, chosen.document_prompt, benchmark.documents_hash)
    finally:
        model.train(was_training)
    reused = documents.reused
    began = time.perf_counter()
    if progress is not None:
        progress("searching", 0, benchmark.n_queries)
    device = model.device.type if model.device.type == "cuda" else "cpu"
    ranking = retrieve(benchmark, np.concatenate(queries.parts), documents.parts, top_k, device=device)
    seconds["searching"] = time.perf_counter() - began
    means, per_query, absent = judge(benchmark, ranking)
    return Evaluation(
        measures=means,
        per_query=per_query,
        ranking=ranking,
        protocol=chosen,
        counts={
            "judged_queries": benchmark.n_queries,
            "judged_without_results": absent,
            "excluded_pairs": sum(map(len, benchmark.excluded.values())),
            "embeddings_reused": reused,
        },
        seconds={name: round(value, 3) for name, value in seconds.items()},
        settings={
            "similarity": chosen.similarity,
            "query_prompt": chosen.query_prompt,
            "document_prompt": chosen.document_prompt,
            "prompts_hash": chosen.prompts_hash,
            "max_tokens": _length_of(model),
            "precision": precision,
            "top_k": top_k,
        },
    )


def _length_of(model: SentenceTransformer) -> int | None:
    """The longest text in tokens that the model reads; None if it cuts nothing."""
    length = model.max_seq_length
    if isinstance(length, int):
        return length
    truncation = getattr(getattr(model[0], "tokenizer", None), "truncation", None)
    return int(truncation["max_length"]) if isinstance(truncation, dict) else None


def retrieve(benchmark: Benchmark, queries: np.ndarray, documents: Any, top_k: int, *, device: str = "cpu") -> Ranking:
    """The ``top_k`` documents of each query by dot product, without those it must not retrieve."""
    numbers = {document: i for i, document in enumerate(benchmark.document_ids)} if benchmark.excluded else {}
    exclude = [[numbers[d] for d in set(benchmark.excluded.get(query, ()))] for query in benchmark.query_ids]
    scores, found = search(queries, documents, top_k, exclude=exclude if benchmark.excluded else None, device=device)
    return in_trec_order(benchmark, found, scores)


def in_trec_order(benchmark: Benchmark, found: np.ndarray, scores: np.ndarray) -> Ranking:
    """Documents of equal score by descending id, as trec_eval reads a run, so that ranks mean what it computes."""
    found, scores = found.copy(), scores.copy()
    tied = (scores[:, 1:] == scores[:, :-1]) & (found[:, 1:] >= 0)
    for row in np.flatnonzero(tied.any(axis=1)):
        ids = benchmark.document_ids
        order = sorted(
            range(found.shape[1]),
            key=lambda j: (scores[row, j], ids[found[row, j]] if found[row, j] >= 0 else ""),
            reverse=True,
        )
        found[row], scores[row] = found[row, order], scores[row, order]
    return Ranking(found, scores)


def judge(benchmark: Benchmark, ranking: Ranking) -> tuple[dict[str, float], dict[str, np.ndarray], int]:
    """(mean of each measure, {measure: value per query}, judged queries for which nothing was retrieved)."""
    needed = {document for grades in benchmark.qrels.values() for document in grades}
    numbers = {document: i for i, document in enumerate(benchmark.document_ids) if document in needed}
    pairs = [
        (row, numbers.get(document, -2), grade)
        for row, query in enumerate(benchmark.query_ids)
        for document, grade in benchmark.qrels[query].items()
        if grade > 0
    ]
    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    ranks = from_ranking(ranking.documents, benchmark.query_ids, query, document, grade)
    per_query = measures.compute(ranks, measures.within(ranking.documents.shape[1]))
    return {name: float(values.mean()) for name, values in per_query.items()}, per_query, ranks.absent
