"""Evaluations: their settings, reuse of a result, which of BM25, hybrid, reranked is missing; names of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdp import catalog
from cdp.base import permission
from cdp.base.config import EvaluationConfig
from cdp.base.errors import InputError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import describe, list_benchmarks, resolve_benchmark
from cdp.catalog import query as query
from cdp.evaluation import combined
from cdp.evaluation.results import write_trec
from cdp.jobs import JobView
from cdp.results import board, naming
from cdp.retrievers import bm25, in_cache
from cdp.retrievers.presets import foreign
from cdp.retrievers.resolve import CROSS_ENCODER
from cdp.services import access, jobs


def checked(
    workspace: Workspace, retriever: str, benchmark: str, split: str = "", **settings: object
) -> EvaluationConfig:
    """Return the configuration of an evaluation, its retriever, benchmark and split resolved."""
    values = {**settings, "retriever": retriever, "benchmark": benchmark, "split": split}
    config = jobs.prepared(workspace, "evaluation", EvaluationConfig.from_dict(values)).config
    assert isinstance(config, EvaluationConfig)
    return config


@access.reads
def existing(workspace: Workspace, config: EvaluationConfig) -> str | None:
    """Return the id of the newest result for the same model, judgments and settings, or None."""
    info = describe(resolve_benchmark(config.judged.benchmark, workspace), workspace)
    for row in catalog.evaluations(workspace, studies=True):
        same = (
            row["retriever_id"] == _row_of(config)
            and row["benchmark_hash"] == info.content_hash
            and row["split"] == config.judged.split
            and row["protocol"] == config.protocol
            and row["settings"].get("max_length") == config.max_length
            and row["settings"].get("top_k", config.top_k) == config.top_k
            and config.rerank_depth in (None, row["settings"].get("rerank_depth"))
            and config.precision in ("auto", row["settings"].get("precision"))
        )
        if same:
            return str(row["id"])

    return None


@access.reads
def language_notes(workspace: Workspace, retriever: str, configs: Sequence[EvaluationConfig]) -> list[str]:
    """Return what has to be said before evaluations on benchmarks whose language the retriever does not know."""
    folders = (resolve_benchmark(config.judged.benchmark, workspace) for config in configs)
    languages = dict.fromkeys(describe(folder, workspace).language for folder in folders)
    return [note for language in languages for note in foreign(retriever, language)]


def compared(job: JobView) -> dict[str, str]:
    """The row of an evaluation's result on Compare: its ``run`` and its ``benchmark``."""
    config = EvaluationConfig.from_dict(job.config)
    name = Path(config.judged.benchmark).name
    return {
        "run": _row_of(config),
        "benchmark": board.benchmark_label(name, config.judged.split, config.protocol),
    }


def strong_baselines(
    workspace: Workspace, rows: Sequence[board.ResultRow], baseline: str
) -> dict[str, list[EvaluationConfig]]:
    """Return the missing ones of ``BM25``, ``hybrid`` and ``reranked`` beside these rows of one benchmark.

    Hybrid and reranked are made of the baseline and of the best training that is kept, with all its seeds; reranked
    where the cross-encoder is on this machine.
    """
    here = {info.name for info in list_benchmarks(workspace) if not info.problem}
    if not rows or rows[0].benchmark not in here or rows[0].version:
        return {}

    at = {"benchmark": rows[0].benchmark, "split": rows[0].split, "protocol": rows[0].protocol}
    measured = {run for row in rows for run in row.runs}
    dense = [row.retriever_id for row in rows if row.retriever_id == baseline and row.kind == board.UNTRAINED]
    trained = [row for row in rows if row.kind == board.TRAINING and not row.marks]
    if trained:
        dense += max(trained, key=lambda row: row.ndcg).runs

    def wanted(retrievers: Sequence[str], **settings: object) -> list[EvaluationConfig]:
        configs = [EvaluationConfig.from_dict({**at, "retriever": each, **settings}) for each in retrievers]
        return [config for config in configs if _row_of(config) not in measured]

    lexical = any(bm25.language_in(run) is not None for run in measured)  # of one language or another
    reranking = dense if in_cache(CROSS_ENCODER) else []

    return {
        bm25.TITLE: wanted([] if lexical else [bm25.NAME]),
        "hybrid": wanted(dense, hybrid=True),
        "reranked": wanted(reranking, rerank=CROSS_ENCODER),
    }


def _row_of(config: EvaluationConfig) -> str:
    return combined.retriever_id(config.retriever, config.hybrid, config.rerank)


@access.writes
def rebuild(workspace: Workspace) -> dict[str, Any]:
    """Rebuild the catalogue from the files; what was read."""
    return asdict(catalog.rebuild(workspace))


@access.writes
def export_run(workspace: Workspace, evaluation: str, target: str | Path) -> tuple[Path, int]:
    """Write what an evaluation (a job's id or unique prefix) retrieved as a TREC run; return the file and its lines.

    InputError where the file is there already.
    """
    job, path = jobs.show(workspace, evaluation, with_size=False), permission.to_write(target)
    if path.exists():
        raise InputError(f"There is a file {path} already.", hint="Name a new one.")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path, write_trec(workspace.job(job.id), path, job.name)


@access.writes
def rename(workspace: Workspace, runs: Sequence[str], name: str) -> None:
    """Call these runs (retrievers' ids) ``name``; empty: by their recipe again."""
    path = naming.names_file(workspace)
    with locked(path.with_name(".runs.lock"), "The names of runs"):
        names = {**naming.given_names(workspace), **dict.fromkeys(runs, name.strip())}
        write_json(path, {"schema": 1, "runs": {run: {"name": given} for run, given in sorted(names.items()) if given}})
