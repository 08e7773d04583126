"""From a model and a benchmark to scores: encode, search, measure. Used by the worker and while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.protocols import Protocol, protocol_for
from cdp.evaluation.ranking import Ranking, in_trec_order, judge
from cdp.retrievers.encode import Embedded, EmbeddingStore, Encoded, Encoding, Stopped, encode, precision_for
from cdp.retrievers.exact_search import search

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

ProgressBy = Callable[[str, int, int], None]
"""Called with the phase, what is done and the total, in texts."""


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
    progress: ProgressBy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Evaluation:
    """Evaluate a loaded model on one split of a benchmark.

    With a ``store`` and the model's ``model_hash``, embeddings are kept there and taken from there; without (while
    training, when the model is another one each time) they stay in memory. ``precision`` is auto, fp32, fp16 or bf16.
    Raises ``encode.Stopped`` between batches, or between chunks of the search, once ``should_stop`` says so, and
    ``encode.Encoded`` on all but the first of the processes that share the ``store``'s work.
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
            "progress": report,
            "should_stop": should_stop,
        }
        if store is not None and model_hash:
            embeddings = store.get(lambda: model, texts, encoding, hash_of_texts=hash_of_texts, **options)
        else:
            embeddings = Embedded([encode(model, texts, encoding, **options)])
        seconds[name] = time.perf_counter() - began
        return embeddings

    try:
        queries = embedded("query", benchmark.queries, chosen.query_prompt)
        documents = embedded("document", benchmark.documents, chosen.document_prompt, benchmark.documents_hash)
    finally:
        model.train(was_training)
    if store is not None and store.share.process:
        raise Encoded
    reused = documents.reused
    began = time.perf_counter()

    def looked_at(done: int) -> None:
        if should_stop is not None and should_stop():
            raise Stopped
        if progress is not None:
            progress("searching", done, benchmark.n_documents)

    looked_at(0)
    device = model.device.type if model.device.type == "cuda" else "cpu"
    ranking = retrieve(
        benchmark, np.concatenate(queries.parts), documents.parts, top_k, device=device, progress=looked_at
    )
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
            "query_embeddings_reused": queries.reused,
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


def retrieve(
    benchmark: Benchmark,
    queries: np.ndarray,
    documents: Any,
    top_k: int,
    *,
    device: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> Ranking:
    """The ``top_k`` documents of each query by dot product, without those it must not retrieve."""
    exclude = benchmark.excluded_numbers()
    scores, numbers = search(queries, documents, top_k, exclude=exclude, device=device, progress=progress)
    return in_trec_order(benchmark, numbers, scores)
