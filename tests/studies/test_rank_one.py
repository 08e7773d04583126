"""What changes at rank 1 between one query per document and more, in the paper's categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark
from cdp.evaluation.evaluate import Ranking
from cdp.studies.errors import Sources, rank_one
from tests.benchmarks.folders import write_benchmark


def record(per_doc: int, seed: int, letters: str) -> dict[str, Any]:
    condition = {"retriever": "m", "source": "human", "per_doc": per_doc, "weighting": "none", "seed": seed, "held": ""}
    return {"condition": condition, "evaluations": {"place": {"rank_1": letters}}}


def test_wins_and_losses_are_told_by_what_stood_first() -> None:
    records = [
        record(1, 0, "rsoo"),
        record(1, 1, "rson"),
        record(5, 0, "srro"),
        record(5, 1, "orro"),
        record(5, 2, "rrrr"),
    ]
    (found,) = rank_one(records, {"place": "b"}, {("m", "human"): ("m", "human", 5, "none", "")})
    assert (found.n, found.seeds, found.per_doc) == (4, 2, 5)
    assert (found.wins, found.wins_same, found.wins_other) == (4, 2, 2)
    assert (found.losses, found.losses_same, found.losses_other) == (2, 1, 1)
    assert 0 < found.p <= 1
    old = [{**r, "evaluations": {"place": {}}} for r in records]
    assert rank_one(old, {"place": "b"}, {("m", "human"): ("m", "human", 5, "none", "")}) == []


def test_a_first_document_is_relevant_of_the_same_title_or_of_another(workspace: Workspace, tmp_path: Path) -> None:
    documents = [
        {"_id": "a", "title": "Whales", "text": "one"}, {"_id": "b", "title": "Whales", "text": "two"},
        {"_id": "book-1", "title": "", "text": "three"}, {"_id": "book-2", "title": "", "text": "four"},
    ]  # fmt: skip
    queries = [{"_id": f"q{i}", "text": "what"} for i in range(5)]
    qrels = {"test": "q0\ta\t1\nq1\ta\t1\nq2\tbook-1\t1\nq3\ta\t1\nq4\ta\t1\n"}
    name = add_benchmark(write_benchmark(tmp_path / "b", documents=documents, queries=queries, qrels=qrels), workspace)
    benchmark = load_benchmark(workspace.benchmarks / name)
    first = np.array([[0], [1], [3], [2], [-1]])
    assert Sources().letters(benchmark, Ranking(first, np.ones((5, 1), np.float32))) == "rsson"
