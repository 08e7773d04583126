"""Finished evaluations written as the worker writes them, with known scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cdp.base.workspace import Workspace, new_id, write_json
from cdp.results import board, differences
from tests.support import present_hash


def evaluation(
    workspace: Workspace,
    retriever: str,
    benchmark: str,
    scores: Mapping[str, float],
    *,
    created: str = "2026-01-01T00:00:00+00:00",
    kind: str = "preset",
    name: str = "",
    judgments: str = "",
    split: str = "test",
    protocol: str = "published",
    settings: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
) -> str:
    """A finished evaluation job with these NDCG@10 per query, in [0, 1]; its id.

    ``judgments`` is the hash of the benchmark, or tells it apart from others of its name; by default that of the
    workspace's benchmark, where it has one.
    """
    while workspace.job(job_id := new_id("evaluation")).exists():
        continue  # two of one second may be the same
    values: Sequence[float] = list(scores.values())
    result: dict[str, Any] = {
        "schema": 1,
        "id": job_id,
        "retriever": {"id": retriever, "name": name or retriever, "kind": kind, "hash": retriever},
        "benchmark": {
            "name": benchmark, "folder": "", "split": split,
            "hash": judgments or present_hash(workspace, benchmark, "same"),
            "n_queries": len(values), "n_documents": 10,
        },
        "protocol": protocol,
        "settings": dict(settings or {}),
        "measures": {"ndcg@10": sum(values) / len(values)},
        "per_query": {"query_ids": list(scores), "ndcg@10": values},
        "counts": dict(counts or {}),
        "seconds": 1.0,
        "created": created,
    }  # fmt: skip
    folder = workspace.job(job_id)
    write_json(folder / "results" / "evaluation.json", result)
    write_json(
        folder / "spec.json",
        {
            "id": job_id,
            "kind": "evaluation",
            "name": job_id,
            "created": created,
            "module": "cdp.workers.evaluation",
            "config": {},
        },
    )
    write_json(folder / "status.json", {"phase": "ended", "outcome": "finished", "attempt": 1})
    return job_id


class Scenarios:
    """Evaluations for several comparisons in one workspace, whose catalogue is filled once.

    ``fill`` writes the evaluations and returns the ids of each scenario.
    """

    def __init__(self, workspace: Workspace, fill: Callable[[Workspace], Mapping[str, Sequence[str]]]) -> None:
        self.workspace = workspace
        self.ids = fill(workspace)
        self._evaluations = board.list_evaluations(workspace)

    def compare(
        self, scenario: str, baseline: str = "base", retrievers: Sequence[str] | None = None
    ) -> differences.Comparison:
        """Compare the evaluations of this scenario alone."""
        own = [row for row in self._evaluations if row["id"] in self.ids[scenario]]
        return differences.compare(self.workspace, baseline, retrievers, evaluations=own)
