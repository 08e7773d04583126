"""The evaluation worker (model, BM25, hybrid, reranked; its record): ``python -m cdp.workers.evaluation <job folder>``.

Writes ``results/evaluation.json`` (means and the score of every query) and ``results/run.parquet`` (what was retrieved:
query_id, document_id, rank, score).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdp.base.condition import HYBRID
from cdp.base.config import EvaluationConfig
from cdp.base.errors import ConfigError
from cdp.base.job_kind import BENCHMARK, RESULT, Device, JobKind, PreparedJob, device_for
from cdp.base.records import JOB_FACTS, whole
from cdp.base.text import shown
from cdp.base.worker import Job, run
from cdp.base.workspace import Workspace, sha256_text
from cdp.benchmarks.benchmark import Benchmark, load_benchmark
from cdp.benchmarks.judged import is_judged
from cdp.benchmarks.library import resolve_benchmark
from cdp.evaluation import combined
from cdp.evaluation.evaluate import (
    Encoded,
    Evaluation,
    encode_both,
    evaluate_bm25,
    evaluate_model,
    protocol_for,
    record_unembedded,
    unjudged,
)
from cdp.evaluation.results import write_result
from cdp.metrics.scorers import load_cross_encoder
from cdp.retrievers import bm25, leakage, load, model_hash, resolve
from cdp.retrievers.api import Payer
from cdp.retrievers.encode import EmbeddingStore, PoolEncoder, cast, precision_for
from cdp.retrievers.resolve import check_reranker, is_loaded, resolve_any


def main(job: Job) -> None:
    began = time.perf_counter()
    config = EvaluationConfig.from_dict(job.config)
    language = bm25.language_in(config.retriever)
    job.progress("reading the benchmark", 0, 0, "")
    folder = resolve_benchmark(config.judged.benchmark, job.workspace)

    benchmark = load_benchmark(folder, config.judged.split, allow_unknown=config.allow_unknown)
    for warning in benchmark.warnings:
        print(f"Note: {warning}", flush=True)

    print(
        f"{benchmark.name} ({benchmark.split}): {benchmark.n_queries:,} queries, {benchmark.n_documents:,} documents",
        flush=True,
    )

    if language is None:
        result, who = dense(job, config, benchmark)
    else:
        result, who = lexical(job, config, benchmark, language)

    result, who = combine(job, config, benchmark, result, who)
    result.counts.update(leakage.counts(job.workspace, config.retriever, benchmark))

    if is_judged(folder):
        result.counts["unjudged_in_first_ten"] = unjudged(benchmark, result.ranking)

    write_result(job, config, who, benchmark, result, time.perf_counter() - began)
    print(", ".join(f"{name} {value:.4f}" for name, value in result.measures.items()), flush=True)
    job.progress("done", benchmark.n_queries, benchmark.n_queries, "queries")


def dense(job: Job, config: EvaluationConfig, benchmark: Benchmark) -> tuple[Evaluation, dict[str, str]]:
    """Evaluate a model: (result, what ``retriever`` holds in the record)."""
    retriever = resolve(config.retriever, job.workspace)
    job.loading("the model")
    device, on_gpu, pool = device_for(config.gpus), None, None
    if workers := job.pool:
        # On a cluster Ray tasks encode, and this process only loads the model to know it.
        device, on_gpu = "cpu", workers.gpus > 0
        pool = PoolEncoder(workers.map, config.retriever, config.max_length, job.stop_requested)

    model = load(retriever, device, config.max_length, payer=Payer.of(job, config.budget))
    unused = [name for name, prompt in model.prompts.items() if prompt]
    if unused and not (model.prompts["query"] or model.prompts["document"]):
        names = ", ".join(map(shown, unused))
        print(f"No prompt is used: the model names them {names}, not query and document.", flush=True)

    identity = model_hash(model)
    precision = precision_for(model, config.precision, on_gpu=on_gpu)

    result = evaluate_model(
        cast(model, precision), benchmark, protocol=config.protocol, top_k=config.top_k, batch_size=config.batch_size,
        precision=precision, store=EmbeddingStore(job.workspace, pool=pool), model_hash=identity,
        watch=job.advance,
    )  # fmt: skip
    record_unembedded(job, model, benchmark)

    kind = "model"
    if retriever.origin in ("preset", "job"):
        kind = retriever.origin

    return result, {"id": config.retriever, "name": retriever.title, "kind": kind, "hash": identity}


def lexical(
    job: Job, config: EvaluationConfig, benchmark: Benchmark, language: str
) -> tuple[Evaluation, dict[str, str]]:
    """Evaluate BM25, as ``dense`` does a model."""
    result = evaluate_bm25(benchmark, language=language, top_k=config.top_k, watch=job.advance)
    words = str(result.settings["language"])
    identity = sha256_text(bm25.NAME, str(bm25.K1), str(bm25.B), words)[:16]
    if words != "en":
        print(f"Words are found as those of {words}, the benchmark's language unless another was named.", flush=True)
    return result, {"id": config.retriever, "name": bm25.title_in(language), "kind": "preset", "hash": identity}


def combine(
    job: Job, config: EvaluationConfig, benchmark: Benchmark, result: Evaluation, who: dict[str, str]
) -> tuple[Evaluation, dict[str, str]]:
    """Return the result fused with BM25, then reranked, as the settings ask."""
    if not (config.hybrid or config.rerank):
        return result, who

    if config.hybrid:
        by_words = evaluate_bm25(benchmark, top_k=config.top_k, watch=job.advance)
        result = combined.hybrid(benchmark, result, by_words)

    if config.rerank and check_reranker(job.workspace, config.rerank):
        depth = config.rerank_depth or combined.MAXSIM_DEPTH
        result = combined.rerank_tokens(benchmark, result, _token_vectors(job, config, benchmark), depth=depth)
    elif config.rerank:
        job.loading("the cross-encoder")
        device = device_for(config.gpus)
        score = load_cross_encoder(
            config.rerank, job.workspace, batch_size=config.batch_size, device=device, logits=True
        )

        depth = config.rerank_depth or combined.RERANK_DEPTH
        watch = partial(job.advance, "reranking")
        result = combined.rerank(benchmark, result, score, depth=depth, progress=watch)

    return result, {
        "id": combined.retriever_id(config.retriever, config.hybrid, config.rerank),
        "name": combined.title(who["name"], config.hybrid, config.rerank),
        "kind": combined.RERANKED if config.rerank else HYBRID,
        "hash": who["hash"],
    }


def _token_vectors(job: Job, config: EvaluationConfig, benchmark: Benchmark) -> Encoded:
    """The token vectors by which a multi-vector retriever reorders what another one found; kept as an index is."""
    job.loading("the reranker")
    model = load(resolve(config.rerank, job.workspace), device_for(config.gpus))
    identity = model_hash(model)
    precision = precision_for(model, config.precision)

    return encode_both(
        cast(model, precision), benchmark.queries, benchmark.documents, protocol_for(model), precision,
        store=EmbeddingStore(job.workspace), model_hash=identity, documents_hash=benchmark.documents_hash,
        batch_size=config.batch_size, watch=job.advance,
    )  # fmt: skip


def prepare(workspace: Workspace, config: EvaluationConfig, after: Sequence[str] = ()) -> PreparedJob:
    """Check the retriever, its fusion and what reranks. A training in ``after`` makes the retriever first."""
    if config.hybrid and bm25.language_in(config.retriever) is not None:
        raise ConfigError("BM25 cannot be fused with itself.", hint="Name a dense retriever to make a hybrid of.")
    if config.rerank:
        check_reranker(workspace, config.rerank)

    name, label = named(workspace, config.retriever, after)
    title = combined.title(label, config.hybrid, config.rerank)
    title += f" on {Path(config.judged.benchmark).name}"
    if config.judged.split != "test":
        title += f" {config.judged.split}"

    return PreparedJob(config.replace(retriever=name), title)


def named(workspace: Workspace, retriever: str, after: Sequence[str]) -> tuple[str, str]:
    """Return a retriever's resolved name and its label in lists. ``bm25`` and ``bm25:<language>`` are no models."""
    if retriever in after:
        facts = whole(JOB_FACTS, workspace.job(retriever) / "spec.json") or {}
        return retriever, str(facts.get("name") or retriever)
    resolved = resolve_any(retriever, workspace)
    if resolved is None:
        return retriever.strip(), bm25.title_in(bm25.language_in(retriever) or "")
    return resolved.name, resolved.title if resolved.origin in ("job", "api") else resolved.name


def device(config: EvaluationConfig) -> Device:
    # BM25 and an API have no use for a GPU; a cross-encoder has.
    loads = is_loaded(config.retriever)
    gpus = config.gpus
    if gpus is None and not (loads or config.rerank):
        gpus = 0

    return Device(gpus, pool=loads)


KIND = JobKind(
    "evaluation", "Evaluation", "A retriever, evaluated on a benchmark.", EvaluationConfig, main, prepare,
    inputs={"benchmark": BENCHMARK}, device=device, makes=RESULT, command="evaluate", word="retriever", order=80,
)  # fmt: skip


if __name__ == "__main__":
    run(main)
