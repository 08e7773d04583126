"""How many pairs per second does training take, against the plain sentence-transformers trainer?

Same model, data, batch size, optimiser and schedule on both sides, each run in a process of its own, in turns. Timed is
everything between "texts and model are in memory" and "the model is trained": our tokenising up front counts, and so
does the trainer's in each step. The trainer uses its own MultipleNegativesRankingLoss.

Where the time goes, for static-minilm on two cores: the trainer tokenises every batch, lets autograd allocate and fill
a gradient as large as the whole table (47 MB) in every step, and has the kernel map that memory again each time. We
tokenise once, write only the rows of the tokens in the batch, and keep freed memory; most of what is left is AdamW's
pass over the table. For minilm the arithmetic of the layers dominates: we save padding, by embedding a batch in groups
of similar length, and the mapping of memory.

    python -m perf training_throughput
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from cdp.base.workspace import REPOSITORY, Workspace
from perf.timing import Row, of_ratios

SHARED = REPOSITORY.parent / "shared" / "data"
QUERIES = SHARED / "multiquery" / "fairytaleqa_train_en.jsonl.gz"
DEV = SHARED / "hotpotqa_sample"
PER_DOC = 5

CASES: dict[str, dict[str, Any]] = {
    "static-minilm": {
        "pairs": None,
        "epochs": 3,
        "batch_size": 128,
        "learning_rate": 5e-3,
        "repeats": 2,
        "target": 3.0,
    },
    "minilm": {"pairs": 64, "epochs": 1, "batch_size": 32, "learning_rate": 2e-5, "repeats": 2, "target": 1.3},
}


def pairs(limit: int | None) -> tuple[list[str], list[str]]:
    """Queries and, for each, its document: human questions of FairytaleQA, up to five per document."""
    queries, documents = [], []
    with gzip.open(QUERIES, "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            for query in line["queries"][:PER_DOC]:
                queries.append(query)
                documents.append(f"{line['title']} {line['text']}")
    if limit is not None:  # spread over the corpus, so that lengths are those of all documents
        step = len(queries) // limit
        queries, documents = queries[::step][:limit], documents[::step][:limit]
    return queries, documents


def ours(name: str, seed: int) -> dict[str, float]:
    """Train with our loop; pairs per second and NDCG@10 on the dev benchmark."""
    import numpy as np
    import torch

    from cdp.base.config import TrainingConfig
    from cdp.base.machine import keep_freed_memory
    from cdp.retrievers import load, resolve
    from cdp.training.engine import Batches
    from cdp.training.loop import Training
    from cdp.training.pairs import BatchOrder
    from cdp.training.plan import complete
    from cdp.training.tokens import tokenise

    case = CASES[name]
    texts = pairs(case["pairs"])
    settings = {key: case[key] for key in ("epochs", "batch_size", "learning_rate")}
    retriever = resolve(name, Workspace.default())
    config = complete(
        TrainingConfig(query_set="benchmark", retriever=name, seed=seed, save_steps=2**31, **settings), retriever
    )
    model = load(retriever, "cpu")
    torch.manual_seed(seed)

    began = time.perf_counter()
    keep_freed_memory()
    distinct = {document: i for i, document in enumerate(dict.fromkeys(texts[1]))}
    document_of = np.array([distinct[document] for document in texts[1]])
    queries, documents = tokenise(model, texts[0]), tokenise(model, list(distinct))

    batches = Batches(queries, documents, document_of, np.ones(len(texts[0])))
    order = BatchOrder(len(texts[0]), case["batch_size"], case["epochs"], seed)
    with tempfile.TemporaryDirectory() as folder:
        outcome = Training(model, batches, order, config, _Quiet(), Path(folder), keep=False).run()

    seconds = time.perf_counter() - began
    return {"pairs_per_second": outcome.pairs_seen / seconds, "ndcg": _ndcg(model, name)}


class _Quiet:
    """Hooks of an unattended run."""

    def log(self, step: int, **values: float | int | None) -> None:
        """Nothing is logged."""

    def progress(self, step: int, steps: int, message: str) -> None:
        """Nothing is shown."""

    def stop_requested(self) -> bool:
        return False


def peer(name: str, seed: int) -> dict[str, float]:
    """Train with the sentence-transformers trainer; the same two figures."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from cdp.retrievers import load, resolve

    case = CASES[name]
    queries, documents = pairs(case["pairs"])

    with tempfile.TemporaryDirectory() as folder:  # as the library loads it
        load(resolve(name, Workspace.default()), "cpu").save(folder)
        model = SentenceTransformer(folder, device="cpu")

    dataset = Dataset.from_dict({"query": queries, "document": documents})
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder, per_device_train_batch_size=case["batch_size"], num_train_epochs=case["epochs"],
            learning_rate=case["learning_rate"], lr_scheduler_type="cosine", warmup_steps=0, weight_decay=0.01,
            adam_beta1=0.9, adam_beta2=0.98, adam_epsilon=1e-8, max_grad_norm=1.0, dataloader_drop_last=True, seed=seed,
            use_cpu=True, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=dataset, loss=MultipleNegativesRankingLoss(model)
        )
        began = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - began

    seen = len(queries) // case["batch_size"] * case["batch_size"] * case["epochs"]
    return {"pairs_per_second": seen / seconds, "ndcg": _ndcg(model, name)}


def _ndcg(model: Any, name: str) -> float:
    """NDCG@10 in percent; only for the case that is trained to the end."""
    from cdp.benchmarks import load_benchmark
    from cdp.evaluation import evaluate_model

    if CASES[name]["pairs"] is not None or not DEV.is_dir():
        return 0.0
    return 100 * evaluate_model(model, load_benchmark(DEV, "test"), protocol="paper").measures["ndcg@10"]


def _in_a_process(side: str, name: str, seed: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "perf.training_throughput", side, name, str(seed)],
        cwd=REPOSITORY, capture_output=True, text=True, env={**os.environ, "TOKENIZERS_PARALLELISM": "true"},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the process failed")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def run() -> list[Row]:
    """Pairs per second of both presets that train on a CPU, and what the trained models are worth."""
    if not QUERIES.is_file():
        raise FileNotFoundError(f"{QUERIES.name} is not beside the repository")
    rows: list[Row] = []
    for name, case in CASES.items():
        found = [tuple(_in_a_process(side, name, seed) for side in ("ours", "peer")) for seed in range(case["repeats"])]
        rows.append(_row(f"training {name}, pairs per second", found, "pairs_per_second", "pairs/s", case["target"]))
        if case["pairs"] is None and DEV.is_dir():
            rows.append(_row(f"training {name}, NDCG@10 on {DEV.name}", found, "ndcg", "NDCG@10", 1.0))
    return rows


def _row(name: str, found: list[tuple[dict[str, float], ...]], key: str, unit: str, target: float) -> Row:
    ratios = [mine[key] / theirs[key] for mine, theirs in found]
    return {
        "name": name,
        "ours": statistics.median(mine[key] for mine, _ in found),
        "peer": statistics.median(theirs[key] for _, theirs in found),
        "unit": unit,
        "target": target,
        **of_ratios(ratios),
    }


if __name__ == "__main__":
    side, name, seed = sys.argv[1:]
    print(json.dumps({"ours": ours, "peer": peer}[side](name, int(seed))))
