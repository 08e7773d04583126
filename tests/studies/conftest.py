"""A small workspace to study in: forty documents with three queries each, a tiny static retriever, three benchmarks."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.workspace import Workspace, write_json
from cdp.benchmarks import add_benchmark
from cdp.corpus import read_documents, store
from cdp.studies.config import StudyConfig
from cdp.studies.plan import StudySource, counted
from tests.support_models import tiny_static

WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jasper")


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """The folder of a static model with random vectors."""
    return str(tiny_static(tmp_path / "tiny"))


@pytest.fixture
def query_set(workspace: Workspace, tmp_path: Path) -> str:
    """A complete human query set over forty documents; every second document has only two queries."""
    rng = random.Random(0)
    documents = [
        {"_id": f"d{i}", "text": f"{' '.join(rng.choices(WORDS, k=9))} number {i * 7919 % 997}"} for i in range(40)
    ]
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
    with read_documents(source) as result:
        corpus = store(result, "small", workspace)
    queries = [
        (d["_id"], [" ".join(d["text"].split()[j : j + 4]) for j in range(3 if i % 2 else 2)])
        for i, d in enumerate(documents)
    ]
    return query_sets.import_queries(iter(queries), workspace, corpus.id, "own", language="en").query_set.id


@pytest.fixture
def benchmarks(workspace: Workspace, tmp_path: Path) -> list[str]:
    """Three benchmarks whose queries have about 2, 4 and 6 content words."""
    rng = random.Random(1)
    names = []
    for name, length in (("short", 2), ("middle", 4), ("long", 6)):
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        documents = [{"_id": f"x{i}", "text": " ".join(rng.choices(WORDS, k=8))} for i in range(30)]
        queries = [{"_id": f"q{i}", "text": " ".join(rng.sample(WORDS, length))} for i in range(12)]
        lines = "".join(f"q{i}\tx{rng.randrange(30)}\t1\n" for i in range(12))
        (folder / "corpus.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents), encoding="utf-8")
        (folder / "queries.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries), encoding="utf-8")
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + lines, encoding="utf-8")
        names.append(add_benchmark(folder, workspace, name))
    return names


def study_job(workspace: Workspace, job_id: str, query_set: str, benchmarks: list[str], **settings: Any) -> Path:
    """A study's folder as the service leaves it."""
    config = StudyConfig.from_dict(
        {
            "query_sets": query_set,
            "benchmarks": ", ".join(benchmarks),
            "per_doc": "1, 3",
            "seeds": "0, 1",
            "steps": 4,
            "batch_size": 8,
            "gpus": 0,
            **settings,
            "learning_rate": str(settings.get("learning_rate", 0.05)),
        }
    )
    source = counted(workspace, StudySource("human", "human", query_set))
    folder = workspace.job(job_id)
    write_json(
        folder / "spec.json",
        {
            "id": job_id,
            "kind": "study",
            "name": job_id,
            "created": "2026-01-02T03:04:05+00:00",
            "sequence": 1,
            "module": "cdp.workers.study",
            "config": config.to_dict(),
            "inputs": {"sources": [asdict(source)]},
        },
    )
    return folder
