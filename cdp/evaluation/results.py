"""What an evaluation leaves in its job: ``evaluation.json`` (means and the score of every query) and ``run.parquet``
(what was retrieved)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.config import EvaluationConfig
from cdp.base.errors import InputError, NotFoundError
from cdp.base.records import Count, Real, fields, whole
from cdp.base.worker import Job
from cdp.base.workspace import ANSWERS, now, write_bytes
from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation import ndcg
from cdp.evaluation.evaluate import Evaluation, Ranking
from cdp.retrievers.encode import HALF_PRECISION

# An evaluation that was imported without the scores of its queries (the setting ``imported``).
MEANS_ALONE = "mteb-results"


def write_run(path: Path, benchmark: Benchmark, ranking: Ranking) -> None:
    """Write ``query_id, document_id, rank, score``, queries in order, ranks from 1; the file appears whole."""
    filled = ranking.documents >= 0
    rows, columns = np.nonzero(filled)
    numbers = ranking.documents[filled]
    table = pa.table(
        {
            "query_id": pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(benchmark.query_ids)),
            "document_id": pa.array([benchmark.document_ids[i] for i in numbers], pa.string()),
            "rank": pa.array(columns + 1, pa.int32()),
            "score": pa.array(ranking.scores[filled], pa.float32()),
        }
    )

    data = io.BytesIO()
    pq.write_table(table, data, compression="zstd")
    write_bytes(path, data.getvalue())


def run_file(job_folder: Path) -> Path:
    """Where what an evaluation retrieved is kept."""
    return job_folder / "results" / "run.parquet"


def write_trec(job_folder: Path, target: Path, tag: str) -> int:
    """Write what an evaluation retrieved as a TREC run (``query Q0 document rank score tag``); return its lines.

    NotFoundError where that was not kept; InputError for an id with a blank, which the format cannot hold.
    """
    path = run_file(job_folder)
    if not path.is_file():
        raise NotFoundError("kept run", job_folder.name, hint="Scores that were imported have none. Evaluate it here.")
    word, lines = "_".join(tag.split()) or job_folder.name, []
    for row in pq.read_table(path).to_pylist():
        blank = next((row[name] for name in ("query_id", "document_id") if len(row[name].split()) != 1), "")
        if blank:
            raise InputError(f"The id {blank!r} holds a blank, which TREC's format cannot hold.")
        lines.append(f"{row['query_id']} Q0 {row['document_id']} {row['rank']} {row['score']!r} {word}\n")
    write_bytes(target, "".join(lines).encode())
    return len(lines)


# {query: its first ten documents, best first}
FirstTen = Mapping[str, Sequence[str]]


def first_ten(job_folder: Path) -> FirstTen | None:
    """Return what an evaluation retrieved; None where that was not kept (imported scores)."""
    path = run_file(job_folder)
    if not path.is_file():
        return None

    def load() -> FirstTen:
        found: dict[str, list[str]] = {}
        near = pq.read_table(path, columns=["query_id", "document_id"], filters=[("rank", "<=", 10)])
        for row in near.to_pylist():
            found.setdefault(row["query_id"], []).append(row["document_id"])
        return found

    return ANSWERS.get(path, "first ten", load)


def scores_of(run: FirstTen, qrels: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """Return NDCG@10 of each judged query in [0, 1]."""
    return ndcg({query: {d: -float(at) for at, d in enumerate(found)} for query, found in run.items()}, qrels).per_query


# ``results/evaluation.json``, as far as jobs and studies read it; comparisons read the catalogue.
RECORD = fields(
    {"retriever": fields({"id": str}), "benchmark": fields({"name": str, "split": str, "n_queries": Count}),
     "measures": dict[str, Real], "seconds": Real},
    counts=dict[str, Any], warnings=list[str],
)  # fmt: skip


def read_result(job_folder: Path) -> dict[str, Any] | None:
    """The record of an evaluation as ``write_result`` made it; None where there is none."""
    return whole(RECORD, job_folder / "results" / "evaluation.json")


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
    if result.ranking.documents.shape[1]:  # scores that were imported have no run
        write_run(run_file(job.folder), benchmark, result.ranking)

    halved = [HALF_PRECISION] if result.settings.get("precision") == "fp16" else []
    job.result(
        "evaluation",
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
            "warnings": [*benchmark.warnings, *halved],
            "seconds": round(seconds, 3),
            "seconds_by_phase": result.seconds,
            "created": now(),
        },
    )
