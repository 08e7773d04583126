"""From a model and a benchmark to scores: encode, search, measure. Used by the worker and while training."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.protocols import Protocol, protocol_for
from cdp.evaluation.ranking import Ranking, in_trec_order, judge
from cdp.retrievers.encode import Embedded, EmbeddingStore, Encoding, Stopped, encode, precision_for
from cdp.retrievers.exact_search import search

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Called with the phase, what is done and the total, in texts.
ProgressBy = Callable[[str, int, int], None]


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


@dataclass(frozen=True)
class EmbeddedBenchmark:
    """The embeddings of a benchmark's queries and documents by one model, and how they were made."""

    queries: Embedded
    documents: Embedded
    protocol: Protocol
    max_tokens: int | None
    precision: str
    device: str
    seconds: dict[str, float]


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
    """Evaluate a loaded model on one split of a benchmark: ``embed_benchmark``, then ``evaluate_embeddings``."""
    embedded = embed_benchmark(
        model,
        benchmark,
        protocol=protocol,
        batch_size=batch_size,
        precision=precision,
        store=store,
        model_hash=model_hash,
        progress=progress,
        should_stop=should_stop,
    )
    return evaluate_embeddings(embedded, benchmark, top_k=top_k, progress=progress, should_stop=should_stop)


def embed_benchmark(
    model: SentenceTransformer,
    benchmark: Benchmark,
    *,
    protocol: str = "published",
    batch_size: int = 128,
    precision: str = "auto",
    store: EmbeddingStore | None = None,
    model_hash: str = "",
    progress: ProgressBy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> EmbeddedBenchmark:
    """Encode queries and documents of one split of a benchmark.

    With a ``store`` and the model's ``model_hash``, embeddings are kept there and taken from there; without (while
    training, when the model is another one each time) they stay in memory. ``precision`` is auto, fp32, fp16 or bf16.
    Raises ``encode.Stopped`` between batches once ``should_stop`` says so.
    """
    chosen = protocol_for(model, protocol)
    precision = precision_for(model) if precision == "auto" else precision
    was_training = model.training
    model.eval()
    seconds: dict[str, float] = {}

    def embedded(role: str, texts: Sequence[str], hash_of_texts: str = "") -> Embedded:
        began = time.perf_counter()
        embeddings = embed_texts(
            model, texts, role, chosen, precision, store=store, model_hash=model_hash, hash_of_texts=hash_of_texts,
            batch_size=batch_size, progress=progress, should_stop=should_stop,
        )  # fmt: skip
        seconds[_phase(role)] = time.perf_counter() - began
        return embeddings

    try:
        return EmbeddedBenchmark(
            queries=embedded("query", benchmark.queries),
            documents=embedded("document", benchmark.documents, benchmark.documents_hash),
            protocol=chosen,
            max_tokens=length_of(model),
            precision=precision,
            device=search_device(model),
            seconds=seconds,
        )
    finally:
        model.train(was_training)


def embed_texts(
    model: SentenceTransformer,
    texts: Sequence[str],
    role: str,
    protocol: Protocol,
    precision: str,
    *,
    store: EmbeddingStore | None,
    model_hash: str,
    hash_of_texts: str = "",
    batch_size: int = 128,
    progress: ProgressBy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Embedded:
    """Embed queries or documents (``role``) with the prompt of a protocol: from the ``store``, or in memory without."""
    prompt = protocol.query_prompt if role == "query" else protocol.document_prompt
    encoding = Encoding(model_hash, role, prompt, protocol.normalise, length_of(model), precision)
    report = None if progress is None else lambda done, total: progress(_phase(role), done, total)
    options: dict[str, Any] = {"batch_size": batch_size, "progress": report, "should_stop": should_stop}
    if store is not None and model_hash:
        return store.get(lambda: model, texts, encoding, hash_of_texts=hash_of_texts, **options)
    return Embedded([encode(model, texts, encoding, **options)])


def _phase(role: str) -> str:
    return "encoding queries" if role == "query" else "encoding documents"


def search_device(model: SentenceTransformer) -> str:
    """The device to search on: the model's GPU, else the CPU."""
    return model.device.type if model.device.type == "cuda" else "cpu"


def evaluate_embeddings(
    embedded: EmbeddedBenchmark,
    benchmark: Benchmark,
    *,
    top_k: int = 100,
    progress: ProgressBy | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Evaluation:
    """Search and measure. Raises ``encode.Stopped`` between chunks of the search once ``should_stop`` says so."""
    began = time.perf_counter()

    def report(done: int) -> None:
        if should_stop is not None and should_stop():
            raise Stopped
        if progress is not None:
            progress("searching", done, benchmark.n_documents)

    report(0)
    scores, numbers = search(
        np.concatenate(embedded.queries.parts),
        embedded.documents.parts,
        top_k,
        exclude=benchmark.excluded_numbers(),
        device=embedded.device,
        progress=report,
    )
    ranking = in_trec_order(benchmark, numbers, scores)
    seconds = {**embedded.seconds, "searching": time.perf_counter() - began}
    means, per_query, absent = judge(benchmark, ranking)
    return Evaluation(
        measures=means,
        per_query=per_query,
        ranking=ranking,
        protocol=embedded.protocol,
        counts={
            "judged_queries": benchmark.n_queries,
            "judged_without_results": absent,
            "excluded_pairs": sum(map(len, benchmark.excluded.values())),
            "embeddings_reused": embedded.documents.reused,
            "query_embeddings_reused": embedded.queries.reused,
        },
        seconds={name: round(value, 3) for name, value in seconds.items()},
        settings={
            "similarity": embedded.protocol.similarity,
            "query_prompt": embedded.protocol.query_prompt,
            "document_prompt": embedded.protocol.document_prompt,
            "prompts_hash": embedded.protocol.prompts_hash,
            "max_tokens": embedded.max_tokens,
            "precision": embedded.precision,
            "top_k": top_k,
        },
    )


def length_of(model: SentenceTransformer) -> int | None:
    """The longest text in tokens that the model reads; None if it cuts nothing."""
    length = model.max_seq_length
    if isinstance(length, int):
        return length
    truncation = getattr(getattr(model[0], "tokenizer", None), "truncation", None)
    return int(truncation["max_length"]) if isinstance(truncation, dict) else None
