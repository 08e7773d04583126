"""Workspaces with results in them, as evaluations, trainings and metric jobs write them."""

from __future__ import annotations

import random
from typing import Any

from cdp.base.workspace import Workspace, write_json


def add_job(workspace: Workspace, job_id: str, kind: str = "evaluate") -> None:
    spec = {
        "schema": 1, "id": job_id, "kind": kind, "name": f"name of {job_id}", "created": "2026-01-01T00:00:00+00:00",
        "sequence": 1, "module": "cdp.workers.evaluation", "launcher": "python",
        "device": {}, "config": {"n": 1}, "inputs": {},
    }  # fmt: skip
    write_json(workspace.job(job_id) / "spec.json", spec)


def evaluation(
    job_id: str, retriever: str, benchmark: str = "scifact", values: dict[str, float] | None = None, **more: Any
) -> dict[str, Any]:
    """The content of results/evaluation.json; scores are drawn from the job's id where none are given."""
    drawn = random.Random(job_id)
    scores = values or {f"q{n}": round(drawn.random(), 6) for n in range(20)}
    mean = sum(scores.values()) / len(scores)
    content: dict[str, Any] = {
        "schema": 1,
        "id": job_id,
        "retriever": {"id": retriever, "name": retriever.upper(), "kind": "preset", "hash": "r1"},
        "benchmark": {
            "name": benchmark, "folder": benchmark, "split": "test", "hash": "b1", "n_queries": len(scores),
            "n_documents": 100,
        },
        "protocol": "published",
        "settings": {"batch_size": 128},
        "measures": {"ndcg@10": mean, "recall@100": 0.5},
        "per_query": {"query_ids": list(scores), "ndcg@10": list(scores.values()), "recall@100": [0.5] * len(scores)},
        "counts": {"missing": 0},
        "seconds": 1.5,
        "created": "2026-01-02T00:00:00+00:00",
    }  # fmt: skip
    content.update(more)
    return content


def add_evaluation(workspace: Workspace, job_id: str, retriever: str, *args: Any, **more: Any) -> dict[str, Any]:
    add_job(workspace, job_id)
    content = evaluation(job_id, retriever, *args, **more)
    write_json(workspace.job(job_id) / "results" / "evaluation.json", content)
    return content
