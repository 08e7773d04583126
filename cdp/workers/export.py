"""The worker that exports a retriever to ONNX: ``python -m cdp.workers.export <job folder>``.

Settings are ``ExportConfig``. It writes the folder, then shows that it embeds as the model does: the largest
difference, cosines, speed, and on a benchmark NDCG@10 before and after (``results/export.json``, and the README.md).
"""

from __future__ import annotations

import json
import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdp.base.config import ExportConfig
from cdp.base.paths import public
from cdp.base.worker import Job, run
from cdp.base.workspace import REPOSITORY, write_bytes, write_json
from cdp.benchmarks.benchmark import load_benchmark
from cdp.benchmarks.library import resolve_benchmark
from cdp.evaluation.evaluate import evaluate_model
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.encode import Stopped
from cdp.retrievers.export import export, quantise
from cdp.retrievers.exported import GRAPH, TOKENIZER
from cdp.retrievers.trained import card_file
from cdp.training.card import FOLDER
from cdp.training.checkpoint import write_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

EXPORTING_S = 600.0
REPEATS = 5
"""The speeds of both are medians over so many turns, taken in turn."""

LENGTHS = (4, 16, 64)
"""Batches of parity: so many words of the documents, beside whole documents and queries."""

CARD = """# {title}, {form}

Exported by CDP Studio from `{retriever}` ({model_hash}). `{graph}` takes `input_ids` and `attention_mask` and gives
`sentence_embedding`; `{tokenizer}` cuts and pads. Texts are compared by {similarity}.

```python
{snippet}
```

In CDP Studio the folder is a retriever like any other: `cdp evaluate FOLDER --benchmark NAME`.

## How near it is to the model

{parity}
"""

SNIPPET = """import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder, prompt = "{folder}", {prompt}
tokenizer = Tokenizer.from_file(f"{{folder}}/tokenizer.json")
session = onnxruntime.InferenceSession(f"{{folder}}/model.onnx")
tokens = tokenizer.encode_batch([prompt + text for text in ["your query"]])
ids, mask = np.array([t.ids for t in tokens]), np.array([t.attention_mask for t in tokens])
vectors = session.run(["sentence_embedding"], {{"input_ids": ids, "attention_mask": mask}})[0]
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)"""


def main(job: Job) -> None:
    config = ExportConfig.from_dict(job.config)
    job.progress("loading the model", 0, 0, "", next_within_s=EXPORTING_S)
    resolved = resolve(config.retriever, job.workspace)
    model = load(resolved, "cpu")
    identity, target = model_hash(model), Path(config.out)

    def write(folder: Path) -> None:
        job.progress("exporting", 0, 0, "", next_within_s=EXPORTING_S)
        with _quietly():
            export(model, folder, config.retriever, identity, config.format)
            if config.format == "onnx-int8":
                job.progress("quantising", 0, 0, "", next_within_s=EXPORTING_S)
                quantise(folder)

    target.parent.mkdir(parents=True, exist_ok=True)
    write_folder(target, write)
    job.progress("comparing", 0, 0, "", next_within_s=EXPORTING_S)
    exported = load(resolve(str(target), job.workspace), "cpu")
    parity = compare(model, exported)
    if config.benchmark:
        benchmark = load_benchmark(resolve_benchmark(config.benchmark, job.workspace), config.split)
        for name, one in (("before", model), ("after", exported)):

            def report(phase: str, done: int, total: int, name: str = name) -> None:
                job.progress(f"{name}: {phase}", done, total, "texts", next_within_s=EXPORTING_S)

            try:
                scores = evaluate_model(one, benchmark, progress=report, should_stop=job.stop_requested)
            except Stopped:
                print("Stopped on request; the folder is whole, and nothing was compared.", flush=True)
                return
            parity[f"ndcg@10_{name}"] = round(100 * scores.measures["ndcg@10"], 4)
        parity["benchmark"] = f"{benchmark.name}/{benchmark.split}"
    _describe(target, model, resolved.title, config, identity, parity)
    what = {"retriever": config.retriever, "format": config.format, "folder": str(target), "bytes": size_of(target)}
    job.result("export", {**what, "model_hash": identity, **parity})
    print(parity_lines(parity), flush=True)
    job.progress("done", 1, 1, "models")


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporter tells of axes that it names otherwise, and of libraries for images that are not there."""
    loggers = [logging.getLogger("torch.onnx"), logging.getLogger()]  # onnxruntime's quantiser writes to the root
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)


def size_of(folder: Path) -> int:
    """Bytes of the graph with its weights."""
    return (folder / GRAPH).stat().st_size


def sample() -> list[str]:
    """Texts of the demo collection, of every length from none to a document."""
    documents = load_benchmark(REPOSITORY / "data" / "demo", "test").documents[:48]
    cut = [" ".join(text.split()[:length]) for length in LENGTHS for text in documents[:16]]
    return ["", *cut, *documents]


def compare(model: SentenceTransformer, exported: SentenceTransformer) -> dict[str, Any]:
    """How near the exported model's vectors are to the model's, and how fast it is beside it."""
    texts = sample()
    vectors: dict[str, np.ndarray] = {}
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(REPEATS):
        for name, one in (("before", model), ("after", exported)):
            began = time.perf_counter()
            vectors[name] = np.asarray(one.encode(texts, batch_size=32, show_progress_bar=False), np.float32)
            seconds[name].append(time.perf_counter() - began)
    norms = np.linalg.norm(vectors["before"], axis=1) * np.linalg.norm(vectors["after"], axis=1)
    cosines = (vectors["before"] * vectors["after"]).sum(axis=1)[norms > 0] / norms[norms > 0]
    return {
        "texts": len(texts),
        "largest_difference": float(np.abs(vectors["before"] - vectors["after"]).max()),
        "cosine_mean": float(cosines.mean()),
        "cosine_least": float(cosines.min()),
        "speed_ratio": round(float(np.median(seconds["before"]) / np.median(seconds["after"])), 2),
    }


def parity_lines(parity: dict[str, Any]) -> str:
    lines = [
        f"- largest difference of a number: {parity['largest_difference']:.2g} (over {parity['texts']} texts)",
        f"- cosine with the model's vectors: mean {parity['cosine_mean']:.6f}, least {parity['cosine_least']:.6f}",
        f"- speed on this machine: {parity['speed_ratio']:.2f} times the model's in PyTorch",
    ]
    if "benchmark" in parity:
        before, after = parity["ndcg@10_before"], parity["ndcg@10_after"]
        lines.append(f"- NDCG@10 on {parity['benchmark']}: {before:.2f} before, {after:.2f} after")
    return "\n".join(lines)


def _describe(
    target: Path, model: SentenceTransformer, title: str, config: ExportConfig, identity: str, parity: dict[str, Any]
) -> None:
    card = CARD.format(
        title=public(title),
        form=f"{config.format}, {size_of(target) / 2**20:.1f} MiB",
        retriever=Path(config.retriever).name,
        model_hash=identity,
        graph=GRAPH,
        tokenizer=TOKENIZER,
        similarity="dot product" if str(model.similarity_fn_name) == "dot" else "cosine",
        snippet=SNIPPET.format(folder=FOLDER, prompt=json.dumps(model.prompts.get("query") or "")),
        parity=parity_lines(parity),
    )
    write_bytes(card_file(target), card.encode())
    write_json(target / "parity.json", parity)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    run(main)
