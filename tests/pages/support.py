"""Finished jobs as their workers leave them on disk, so that pages with results can be drawn without training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.services.jobs import kinds
from tests.support import present_hash

STAMP = "2026-01-02T03:04:05+00:00"


def ended_job(
    workspace: Workspace,
    job_id: str,
    kind: str,
    config: dict[str, Any],
    *,
    name: str = "",
    outcome: str = "finished",
    failure: dict[str, Any] | None = None,
) -> Path:
    """A job's folder with its specification and its end."""
    folder = workspace.jobs / job_id
    write_json(
        folder / "spec.json",
        {
            "schema": 1,
            "id": job_id,
            "kind": kind,
            "name": name or job_id,
            "created": STAMP,
            "sequence": len(list(workspace.jobs.glob("*"))),
            "module": kinds()[kind].module if kind in kinds() else "none",
            "launcher": "python",
            "device": {"count": 0, "processes": 1},
            "config": config,
            "inputs": {},
            "secrets": [],
            "cwd": ".",
            "grace_s": 30.0,
            "after": [],
        },
    )
    status: dict[str, Any] = {
        "schema": 1,
        "phase": "ended",
        "attempt": 1,
        "queued": STAMP,
        "devices": ["cpu"],
        "started": STAMP,
        "ended": STAMP,
        "seconds": 12.5,
        "outcome": outcome,
        "message": "",
        "exit_code": 0 if outcome == "finished" else 1,
        "signal": None,
    }
    if failure is not None:
        status["failure"] = failure
    write_json(folder / "status.json", status)
    return folder


def trained(workspace: Workspace, job_id: str, query_set: str, *, name: str, **settings: Any) -> None:
    """A finished training with a loss curve and a model folder."""
    config = {"query_set": query_set, "retriever": "static-minilm", "weighting": "none", "seed": 0, **settings}
    folder = ended_job(workspace, job_id, "training", config, name=name)
    result = {
        "id": job_id, "retriever": "static-minilm", "query_set": query_set, "pairs": 40, "documents": 40, "steps": 5,
        "model_hash": f"hash-{job_id}", "base_hash": "hash-static-minilm", "notes": [], "best_step": None,
        "evaluations": [], "settings": {"benchmark": "", "split": "", **config, "name": name},
    }  # fmt: skip
    write_json(folder / "results" / "training.json", result)
    append_jsonl(folder / "metrics.jsonl", [{"step": s, "attempt": 1, "loss": 3.0 / s} for s in range(1, 6)])
    (folder / "worker.log").write_text("loading\nstep 1\n<b>bold</b> $x^2$ done\n", encoding="utf-8")
    (folder / "model").mkdir()


def evaluated(
    workspace: Workspace,
    job_id: str,
    retriever: str,
    scores: Sequence[float],
    *,
    name: str = "",
    benchmark: str = "demo",
    split: str = "test",
    created: str = STAMP,
) -> None:
    """A finished evaluation with NDCG@10 per query (in [0, 1]) for the queries q001, q002 …"""
    config = {"retriever": retriever, "benchmark": benchmark, "split": split, "protocol": "published"}
    folder = ended_job(workspace, job_id, "evaluation", config, name=f"{name or retriever} on {benchmark}")
    values = list(scores)
    mean = sum(values) / len(values)
    kind = "job" if retriever.startswith("training-") else "preset"
    write_json(
        folder / "results" / "evaluation.json",
        {
            "schema": 1,
            "id": job_id,
            "retriever": {"id": retriever, "name": name or retriever, "kind": kind, "hash": f"hash-{retriever}"},
            "benchmark": {
                "name": benchmark,
                "folder": str(workspace.benchmarks / benchmark),
                "split": split,
                "hash": present_hash(workspace, benchmark, f"hash-{benchmark}"),
                "n_queries": len(values),
                "n_documents": 96,
            },
            "protocol": "published",
            "settings": {**config, "max_length": None},
            "measures": {"ndcg@10": mean},
            "per_query": {"query_ids": [f"q{i:03}" for i in range(1, len(values) + 1)], "ndcg@10": values},
            "counts": {},
            "warnings": [],
            "seconds": 1.0,
            "seconds_by_phase": {},
            "created": created,
        },
    )


def with_results(workspace: Workspace, query_set: str) -> tuple[str, str]:
    """An untrained retriever and a better trained one, evaluated on the same 40 queries; the trained one's ids."""
    before = [0.2 + 0.01 * (i % 20) for i in range(40)]
    after = [min(1.0, v + (0.25 if i % 4 else -0.05)) for i, v in enumerate(before)]
    trained(workspace, "training-1-diverse", query_set, name="tuned on diverse", epochs=3)
    trained(workspace, "training-2-other", query_set, name="tuned otherwise", epochs=5)
    evaluated(workspace, "evaluation-1-before", "static-minilm", before, name="Static MiniLM")
    evaluated(workspace, "evaluation-2-after", "training-1-diverse", after, name="tuned on diverse")
    evaluated(workspace, "evaluation-3-other", "training-2-other", before, name="tuned otherwise")
    return "training-1-diverse", "training-2-other"
