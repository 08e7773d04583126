"""What an evaluation leaves in its job: the record of its scores, and what it retrieved. One writer, one reader.

``results/evaluation.json`` holds means and the score of every query, ``results/run.parquet`` what was retrieved.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdp.base.config import EvaluationConfig
from cdp.base.worker import Job
from cdp.base.workspace import Workspace, now, read_json_or_none
from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.evaluate import Evaluation
from cdp.evaluation.runs import write_run
from cdp.retrievers import leakage
from cdp.retrievers.card_results import BenchmarkScore, put_scores
from cdp.retrievers.encode import HALF_PRECISION
from cdp.retrievers.trained import training_result

KIND = "evaluation"


def run_file(job_folder: Path) -> Path:
    """Where what an evaluation retrieved is kept."""
    return job_folder / "results" / "run.parquet"


def read_result(job_folder: Path) -> dict[str, Any] | None:
    """The record of an evaluation as ``write_result`` made it; None where there is none."""
    value = read_json_or_none(job_folder / "results" / "evaluation.json")
    return value if isinstance(value, dict) else None


def write_result(
    job: Job,
    config: EvaluationConfig,
    retriever: dict[str, str],
    benchmark: Benchmark,
    result: Evaluation,
    seconds: float,
) -> None:
    """Write record and run. Measures are means in [0, 1]; ``per_query`` follows ``query_ids``."""
    if not job.is_main:
        return
    write_run(run_file(job.folder), benchmark, result.ranking)
    job.result(
        KIND,
        {
            "schema": 1,
            "id": job.id,
            "retriever": retriever,
            "benchmark": {
                "name": benchmark.name,
                "folder": str(benchmark.folder),
                "split": benchmark.split,
                "hash": benchmark.hash,
                "n_queries": benchmark.n_queries,
                "n_documents": benchmark.n_documents,
            },
            "protocol": config.protocol,
            "settings": {**config.to_dict(), **result.settings, "split": benchmark.split},
            "measures": result.measures,
            "per_query": {
                "query_ids": benchmark.query_ids,
                **{name: values.tolist() for name, values in result.per_query.items()},
            },
            "counts": result.counts,
            "warnings": [
                *benchmark.warnings,
                *([HALF_PRECISION] if result.settings.get("precision") == "fp16" else []),
            ],
            "seconds": round(seconds, 3),
            "seconds_by_phase": result.seconds,
            "created": now(),
        },
    )


def scores_of(workspace: Workspace, training_job: str, result: Mapping[str, Any]) -> list[BenchmarkScore]:
    """Every evaluation of this very model in the workspace, the newest of each kind, by benchmark.

    Two are of one kind on the same content of a benchmark, the same split and protocol; a model is known by its hash.
    ``result`` is that of the training.
    """
    scores: dict[str, dict[tuple[str, str, str], tuple[str, float, str]]] = {}
    for path in sorted(workspace.jobs.glob("*/spec.json")):
        spec = read_json_or_none(path) or {}
        if spec.get("kind") != KIND or spec["config"]["retriever"] not in (training_job, result["retriever"]):
            continue
        record = read_result(path.parent)
        if record is None:
            continue
        benchmark = record["benchmark"]
        kind = (f"{benchmark['name']}/{benchmark['split']}", record["protocol"], benchmark["hash"])
        known = scores.setdefault(record["retriever"]["hash"], {})
        remark = " ".join(leakage.remarks(record.get("counts", {}), int(benchmark.get("n_queries") or 0)))
        score = (record["created"], 100 * record["measures"]["ndcg@10"], remark)
        known[kind] = max(known.get(kind, ("", 0.0, "")), score)
    before = scores.get(result["base_hash"], {})
    return [
        BenchmarkScore(kind[0], kind[1], score, before[kind][1] if kind in before else None, remark)
        for kind, (_, score, remark) in sorted(scores.get(result["model_hash"], {}).items())
    ]


def refresh_card(workspace: Workspace, training_job: str) -> None:
    """Put what is known of a trained model into its card."""
    folder = workspace.job(training_job)
    result = training_result(folder)
    if result is not None:
        put_scores(folder, result, lambda: scores_of(workspace, training_job, result))
