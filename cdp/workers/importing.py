"""The worker that takes in another program's results: ``python -m cdp.workers.importing <job folder>``.

Settings are ``ResultImportConfig``. A run is judged here, by our own measures; scores per query are taken as they are.
Either becomes ``results/evaluation.json`` as every evaluation has it, so that it can be compared with tests.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.base.errors import InputError
from cdp.base.worker import Job, run
from cdp.base.workspace import sha256_file
from cdp.benchmarks.benchmark import Benchmark, load_benchmark
from cdp.benchmarks.library import resolve_benchmark
from cdp.evaluation import foreign
from cdp.evaluation.evaluate import Evaluation, Protocol, Ranking, judge
from cdp.evaluation.results import write_result

MEASURE = "ndcg@10"


def main(job: Job) -> None:
    began = time.perf_counter()
    config, source = ResultImportConfig.from_dict(job.config), Path(job.config["path"])
    job.progress("reading the benchmark", 0, 0, "")
    benchmark = load_benchmark(resolve_benchmark(config.benchmark, job.workspace), config.split)
    job.progress("reading the file", 0, 0, "")
    content = foreign.read(source, config.format, benchmark)
    if content.run is not None:
        ranking, left_out = foreign.ranked(content.run, benchmark, source)
        _, per_query, absent = judge(benchmark, ranking)
    else:
        ranking = Ranking(np.empty((benchmark.n_queries, 0), np.int64), np.empty((benchmark.n_queries, 0), np.float32))
        per_query, absent, left_out = given(content.per_query or {}, benchmark, source)
    digest = sha256_file(source)
    counts = {"judged_queries": benchmark.n_queries, "judged_without_results": absent, **left_out}
    evaluation = Evaluation(
        measures={name: float(values.mean()) for name, values in per_query.items()},
        per_query=per_query,
        ranking=ranking,
        protocol=Protocol("imported", "as given"),
        counts={name: n for name, n in counts.items() if n or name.startswith("judged")},
        seconds={},
        settings={"imported": content.form, "file": source.name, "file_hash": digest[:16]},
    )
    settings = EvaluationConfig.from_dict(
        {"retriever": config.retriever, "benchmark": config.benchmark, "split": benchmark.split,
         "protocol": config.protocol, "top_k": max(10, ranking.documents.shape[1])}
    )  # fmt: skip
    who = {"id": config.retriever, "name": config.retriever, "kind": "imported", "hash": digest[:16]}
    write_result(job, settings, who, benchmark, evaluation, time.perf_counter() - began)
    print(", ".join(f"{name} {value:.4f}" for name, value in evaluation.measures.items()), flush=True)
    for name, n in left_out.items():
        if n:
            print(f"Left out: {n:,} {name.replace('_', ' ')}", flush=True)
    job.progress("done", benchmark.n_queries, benchmark.n_queries, "queries")


def given(
    scores: foreign.PerQuery, benchmark: Benchmark, source: Path
) -> tuple[dict[str, np.ndarray], int, dict[str, int]]:
    """({measure: value per judged query}, judged queries without one, what was left out) of scores in a file.

    A judged query without a value counts 0. InputError without NDCG@10, or with none of the judged queries.
    """
    if MEASURE not in scores:
        raise InputError(
            "It has no nDCG@10, by which everything here is compared.",
            hint="Print it: ir_measures QRELS RUN nDCG@10 --by_query --places -1",
            file=source,
        )
    judged = set(benchmark.query_ids)
    known = judged & scores[MEASURE].keys()
    if not known:
        raise InputError(f"Not one of its queries is judged by {benchmark.name} {benchmark.split}.", file=source)
    per_query = {
        name: np.array([values.get(query, 0.0) for query in benchmark.query_ids]) for name, values in scores.items()
    }
    wrong = [name for name, values in per_query.items() if ((values < 0) | (values > 1)).any()]
    if wrong:
        raise InputError(f"Values of {wrong[0]} lie outside 0 to 1.", file=source)
    return per_query, len(judged) - len(known), {"queries_not_judged": len(scores[MEASURE].keys() - judged)}


if __name__ == "__main__":
    run(main)
