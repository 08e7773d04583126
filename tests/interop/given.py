"""What peers are given: models, training files in all forms, a benchmark as a task of MTEB, a run, and our figures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from cdp import query_sets
from cdp.base.workspace import Workspace, write_json, write_jsonl
from cdp.benchmarks import library, load_benchmark
from cdp.benchmarks.mteb import export_mteb
from cdp.corpus import iter_documents, read_documents, store
from cdp.evaluation.evaluate import evaluate_model
from cdp.query_sets import QuerySet, import_queries
from cdp.query_sets.exports import export
from cdp.retrievers import load, resolve
from tests.interop import tokens
from tests.interop.models import TEXTS, save, save_all
from tests.support import REPOSITORY

DEMO = REPOSITORY / "data" / "demo"
QUERIES, NEGATIVES = 12, 3
# The rows of each file that trainers read, by its name.
ROWS = {
    "pairs": QUERIES, "n-tuples": QUERIES, "triplets": QUERIES * NEGATIVES, "pylate": QUERIES,
    "flagembedding": QUERIES, "flagembedding-alone": QUERIES, "tevatron": QUERIES, "tevatron-alone": QUERIES,
}  # fmt: skip


def make(folder: Path) -> Path:
    """Write everything into ``folder``, which is emptied first; return it. ``ours.json`` holds what peers compare."""
    shutil.rmtree(folder, ignore_errors=True)
    workspace = Workspace(folder / "workspace")
    save_all(folder / "models")
    # The real one, which comes with the installation.
    save(load(resolve("minilm", workspace), "cpu"), folder / "models" / "minilm")
    mined, alone = _query_sets(workspace, folder)
    _training_files(workspace, folder, mined, alone)

    export_mteb(DEMO, folder / "task")
    library.export_trec(DEMO, "test", folder / "demo.qrels")
    judged = tokens.make(folder / "models", workspace, mined.id, load_benchmark(DEMO, "test"))
    told = {"rows": ROWS, "texts": TEXTS, "token_texts": tokens.TEXTS, "token_ndcg": judged}
    write_json(folder / "ours.json", {**told, "measures": _measured(workspace, folder)})
    return folder


def _query_sets(workspace: Workspace, folder: Path) -> tuple[QuerySet, QuerySet]:
    """Return queries with hard negatives that a teacher scored, and the same queries without."""
    with read_documents(DEMO / "corpus.jsonl") as read:
        corpus = store(read, "demo", workspace).id
    documents = [document.id for document in iter_documents(workspace, corpus)]

    rows: list[dict[str, Any]] = []
    for at in range(QUERIES):
        negatives = documents[at + QUERIES : at + QUERIES + NEGATIVES]
        rows.append({"query": f"query number {at}", "document_id": documents[at], "negatives": negatives})
    write_jsonl(folder / "queries.jsonl", rows)
    made = import_queries(folder / "queries.jsonl", workspace, corpus, "untaught").query_set

    scores = np.random.default_rng(0).normal(size=1 + NEGATIVES).tolist()
    mined = query_sets.derive(
        workspace, made, lambda line: line.queries, "mined", {"teacher": "some-model"},
        of_each=lambda line: {"teacher": [scores for _ in line.queries]},
    ).query_set  # fmt: skip
    alone = import_queries([(row["document_id"], row["query"]) for row in rows], workspace, corpus, "alone").query_set
    return mined, alone


def _training_files(workspace: Workspace, folder: Path, mined: QuerySet, alone: QuerySet) -> None:
    made = {
        "n-tuples.parquet": ("sentence-transformers", mined),
        "triplets.parquet": ("sentence-transformers-triplets", mined),
        "pairs.parquet": ("sentence-transformers", alone),
        "pylate.parquet": ("pylate", mined),
        "flagembedding.jsonl": ("flagembedding", mined),
        "flagembedding-alone.jsonl": ("flagembedding", alone),
        # Tevatron reads the files of a folder.
        "tevatron/train.jsonl": ("tevatron", mined),
        "tevatron-alone/train.jsonl": ("tevatron", alone),
    }
    for name, (form, query_set) in made.items():
        n = export(workspace, query_set.id, form, folder / name)
        assert n == QUERIES, name


def _measured(workspace: Workspace, folder: Path) -> dict[str, float]:
    """Evaluate one model on the demo, write its run in TREC's form and return the means."""
    benchmark = load_benchmark(DEMO, "test")
    model = load(resolve(str(folder / "models" / "mean"), workspace), "cpu")
    evaluation = evaluate_model(model, benchmark)

    lines = []
    for row, query in enumerate(benchmark.query_ids):
        found = zip(evaluation.ranking.documents[row].tolist(), evaluation.ranking.scores[row].tolist(), strict=True)
        for rank, (number, score) in enumerate(found, start=1):
            if number >= 0:
                lines.append(f"{query} Q0 {benchmark.document_ids[number]} {rank} {score!r} ours\n")
    (folder / "demo.run").write_text("".join(lines), encoding="utf-8")
    return json.loads(json.dumps(evaluation.measures))
