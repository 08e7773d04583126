"""Runs on disk: what a retriever returned, as Parquet, and runs and qrels as TREC files, which every tool reads."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdp.base.errors import InputError, WorkspaceError
from cdp.benchmarks.benchmark import Benchmark
from cdp.evaluation.ranking import Ranking


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
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        pq.write_table(table, temporary, compression="zstd")
        os.replace(temporary, path)
    except OSError as error:
        raise WorkspaceError(f"{path} could not be written: {error}.", hint="Is the disk full?") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """{query: {document: score}} of a run written by ``write_run``."""
    try:
        table = pq.read_table(path, columns=["query_id", "document_id", "score"])
    except (OSError, pa.ArrowInvalid) as error:
        raise WorkspaceError(f"{path} cannot be read: {error}.") from error
    run: dict[str, dict[str, float]] = {}
    for query, document, score in zip(*(column.to_pylist() for column in table.columns), strict=True):
        run.setdefault(query, {})[document] = score
    return run


def run_lines(run: Mapping[str, Mapping[str, float]], tag: str = "cdp") -> Iterator[str]:
    """query Q0 document rank score tag, each query's documents in trec_eval's order.

    InputError for an id with white space in it, which the format cannot hold.
    """
    for query, scores in run.items():
        ordered = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)
        for rank, (document, score) in enumerate(ordered, start=1):
            yield f"{_id(query)} Q0 {_id(document)} {rank} {float(score)!r} {_id(tag)}\n"


def qrels_lines(qrels: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """query 0 document grade."""
    for query, grades in qrels.items():
        for document, grade in grades.items():
            yield f"{_id(query)} 0 {_id(document)} {grade}\n"


def _id(text: str) -> str:
    if text.split() != [text]:
        raise InputError(f"TREC files cannot hold the id {text!r}: it is empty or has white space in it.")
    return text
