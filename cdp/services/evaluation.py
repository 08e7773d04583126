"""Evaluations: checks, reuse of a result, which of BM25, hybrid, reranked is missing; imports of others' runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cdp import catalog, jobs
from cdp.base import permission
from cdp.base.config import EvaluationConfig, ResultImportConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, is_name, write_json
from cdp.benchmarks import BenchmarkInfo, choose_split, describe, list_benchmarks, resolve_benchmark
from cdp.catalog import query as query
from cdp.evaluation import combined
from cdp.results import board, naming
from cdp.retrievers import api, bm25, in_cache, resolve
from cdp.services import access, clusters

# A small, widely used cross-encoder for passages.
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L6-v2"


def checked(
    workspace: Workspace, retriever: str, benchmark: str, split: str = "", **settings: object
) -> EvaluationConfig:
    """Return the configuration of an evaluation, its retriever, benchmark and split resolved."""
    name, split, _ = judged_on(workspace, benchmark, split)
    config = EvaluationConfig.from_dict(
        {**settings, "retriever": _named(workspace, retriever)[0], "benchmark": name, "split": split}
    )
    if config.hybrid and bm25.language_in(config.retriever) is not None:
        raise ConfigError("BM25 cannot be fused with itself.", hint="Name a dense retriever to make a hybrid of.")
    if config.rerank:
        check_cross_encoder(workspace, config.rerank)
    return config


def check_cross_encoder(workspace: Workspace, name: str) -> None:
    """Raise NotFoundError for an unknown model, ConfigError for a model of single texts."""
    access.model(workspace, name)
    if resolve(name, workspace).origin in ("preset", "job"):
        raise ConfigError(
            f"{name} embeds single texts; a model that scores pairs is needed.",
            hint=f"Name a cross-encoder, such as {CROSS_ENCODER}.",
        )


def judged_on(workspace: Workspace, benchmark: str, split: str = "") -> tuple[str, str, BenchmarkInfo]:
    """Return a benchmark as a job's configuration names it (by name, or by path outside the workspace), and the split.

    NotFoundError or InputError for an unknown or forbidden one.
    """
    folder = resolve_benchmark(benchmark, workspace)
    info = describe(folder, workspace)
    name = folder.name if folder.parent == workspace.benchmarks else str(folder)
    return name, choose_split(info, split), info


def _named(workspace: Workspace, retriever: str) -> tuple[str, str]:
    """Return a retriever's resolved name and its label in lists. ``bm25`` and ``bm25:<language>`` are no models."""
    language = bm25.language_in(retriever)
    if language is not None:
        bm25.check_language(language)
        return retriever.strip(), retriever.strip()
    resolved = resolve(access.retriever(workspace, retriever), workspace)
    return resolved.name, resolved.title if resolved.origin in ("job", "api") else resolved.name


@access.reads
def existing(workspace: Workspace, config: EvaluationConfig) -> str | None:
    """Return the id of the newest result for the same model, judgments and settings, or None."""
    info = describe(resolve_benchmark(config.benchmark, workspace), workspace)
    for row in catalog.evaluations(workspace, studies=True):
        same = (
            row["retriever_id"] == _row_of(config)
            and row["benchmark_hash"] == info.content_hash
            and row["split"] == config.split
            and row["protocol"] == config.protocol
            and row["settings"].get("max_length") == config.max_length
            and row["settings"].get("top_k", config.top_k) == config.top_k
            and config.precision in ("auto", row["settings"].get("precision"))
        )
        if same:
            return str(row["id"])
    return None


@access.runs
def start(workspace: Workspace, config: EvaluationConfig) -> str:
    """Submit an evaluation after all checks; return the job's id."""
    whole = checked(**{**config.to_dict(), "workspace": workspace})
    return _submit(workspace, whole, _named(workspace, whole.retriever)[1])


@access.runs
def start_after(workspace: Workspace, config: EvaluationConfig, job: str) -> str:
    """Submit an evaluation that waits for a job, which makes its retriever or changes its benchmark; return its id."""
    made = config.retriever == job
    label = jobs.load_spec(workspace, job).name if made else _named(workspace, config.retriever)[1]
    return _submit(workspace, config, label, after=[job])


def compared(job: jobs.JobView) -> dict[str, str]:
    """The row of an evaluation's result on Compare: its ``run`` and its ``benchmark``."""
    config = EvaluationConfig.from_dict(job.config)
    name = Path(config.benchmark).name
    return {
        "run": _row_of(config),
        "benchmark": board.benchmark_label(name, config.split, config.protocol),
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
    untrained = [row.retriever_id for row in rows if row.retriever_id == baseline and row.kind == board.UNTRAINED]
    trained = [row for row in rows if row.kind == board.TRAINING and not row.marks]
    dense = untrained + list(max(trained, key=lambda row: row.ndcg).runs if trained else ())
    lexical = any(bm25.language_in(run) is not None for run in measured)
    asked: dict[str, list[dict[str, Any]]] = {
        bm25.TITLE: [] if lexical else [{"retriever": bm25.NAME}],
        "hybrid": [{"retriever": retriever, "hybrid": True} for retriever in dense],
        "reranked": [
            {"retriever": retriever, "rerank": CROSS_ENCODER} for retriever in dense if in_cache(CROSS_ENCODER)
        ],
    }
    configs = {title: [EvaluationConfig.from_dict({**at, **each}) for each in of] for title, of in asked.items()}
    return {title: [config for config in of if _row_of(config) not in measured] for title, of in configs.items()}


def _row_of(config: EvaluationConfig) -> str:
    """The retriever's id of the result."""
    return combined.retriever_id(config.retriever, config.hybrid, config.rerank)


@access.runs
def start_import(workspace: Workspace, config: ResultImportConfig) -> str:
    """Submit the import; return the job's id. ConfigError for the name of a retriever of the workspace."""
    name = " ".join(config.retriever.split())
    own = is_name(name) and workspace.job(name).is_dir()
    if not name or own or naming.is_reserved(name):
        raise ConfigError(
            f"{name!r} is a retriever of this workspace: imported scores would stand as its own.",
            hint="Choose another name, such as the name of the file.",
        )
    source = permission.to_read(workspace, config.path)
    if not source.is_file():
        raise InputError(f"There is no file {source}.", hint="Check the path; it is read on the server.")
    benchmark, split, info = judged_on(workspace, config.benchmark, config.split)
    config = config.replace(path=str(source.resolve()), retriever=name, benchmark=benchmark, split=split)
    return jobs.submit(
        workspace,
        kind="import",
        name=f"{name} on {info.name}",
        module="cdp.workers.importing",
        config=config.to_dict(),
        device=jobs.DeviceRequest.light(),
        inputs={"benchmark": info.name, "benchmark_hash": info.content_hash, "split": config.split},
    )


def _submit(workspace: Workspace, config: EvaluationConfig, label: str, *, after: Sequence[str] = ()) -> str:
    info = describe(resolve_benchmark(config.benchmark, workspace), workspace)
    # BM25 and an API have no use for a GPU; a cross-encoder has.
    elsewhere = bm25.language_in(config.retriever) is not None or api.parse(config.retriever) is not None
    device = clusters.request(workspace, 0 if elsewhere and not config.rerank and config.gpus is None else config.gpus)
    return jobs.submit(
        workspace,
        kind="evaluation",
        name=f"{combined.title(label, config.hybrid, config.rerank)} on {info.name}"
        + ("" if config.split == "test" else f" {config.split}"),
        module="cdp.workers.evaluation",
        config=config.to_dict(),
        device=device,
        inputs={"benchmark": info.name, "benchmark_hash": info.content_hash, "split": config.split},
        after=after,
        uses_pool=not elsewhere,
        env_secrets=access.environment_for(config.to_dict()),
    )


@access.writes
def rebuild(workspace: Workspace) -> dict[str, Any]:
    """Rebuild the catalogue from the files; what was read."""
    return asdict(catalog.rebuild(workspace))


@access.writes
def rename(workspace: Workspace, runs: Sequence[str], name: str) -> None:
    """Call these runs (retrievers' ids) ``name``; empty: by their recipe again."""
    path = naming.names_file(workspace)
    with locked(path.with_name(".runs.lock"), "The names of runs"):
        names = {**naming.given_names(workspace), **dict.fromkeys(runs, name.strip())}
        write_json(path, {"schema": 1, "runs": {run: {"name": given} for run, given in sorted(names.items()) if given}})
