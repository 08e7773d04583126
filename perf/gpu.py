"""What does a graphics card give: training, encoding, exact search and generation on CUDA, against peers on the card?

Models have random weights in the shapes of BERT-base and Qwen3-0.6B (no download), texts are drawn words. Training is
measured in fp16 and bf16, with gathered negatives, GradCache, gradient checkpointing and LoRA, each case and side in a
process of its own; the peer is sentence-transformers' trainer with the same settings, and both losses are printed. Peak
memory is what the driver (NVML, by nvidia-smi) saw of the process, against the figure that our plan shows before a
training. Search is of 5 million × 768 on the card against the bare float32 product and `semantic_search`.

Without a card it says so in one sentence and measures nothing. `tests/test_gpu.py` runs every path in a tiny form on
the processor, so that none of them breaks unseen.

    make gpu            # the tests on the card, then python -m perf gpu
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cdp.base.workspace import REPOSITORY, Workspace
from perf.timing import Row, compare, paired, show

CASES: dict[str, dict[str, Any]] = {
    "fp16": {"precision": "fp16"},
    "bf16": {"precision": "bf16"},
    "gathered negatives": {"precision": "bf16"},
    "GradCache": {"precision": "bf16", "mini_batch": 16},
    "gradient checkpointing": {"precision": "bf16", "gradient_checkpointing": True},
    "LoRA": {"precision": "bf16", "lora_rank": 16},
}
# Where the trainer has the same thing under a setting.
WITH_PEER = ("fp16", "bf16", "GradCache", "gradient checkpointing")

TRAINING_GOAL, SEARCH_GOAL = 1.3, 0.8
NO_CARD = "No CUDA device here: nothing was measured."


@dataclass(frozen=True)
class Sizes:
    """How much is done. ``layers`` 0 is the shape's own number."""

    layers: int = 0
    pairs: int = 4096
    batch: int = 64
    repeats: int = 3
    documents: int = 5_000_000
    dimension: int = 768
    queries: int = 1000
    texts: int = 20_000
    prompts: int = 256
    output_tokens: int = 128


TINY = Sizes(
    layers=1, pairs=8, batch=4, repeats=1, documents=500, dimension=16, queries=8, texts=6, prompts=3, output_tokens=16
)


def has_card() -> bool:
    import torch

    return torch.cuda.is_available()


def shaped(shape: str, folder: Path, sizes: Sizes) -> Path:
    """A model folder of that shape with random weights; its tokenizer knows single characters."""
    import torch
    from transformers import BertConfig, BertModel, Qwen3Config, Qwen3Model

    from tests.support_models import tiny_bert, tiny_decoder

    torch.manual_seed(0)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2} if sizes.layers else {}
    if shape == "BERT-base":
        tiny_bert(folder)
        BertModel(BertConfig(num_hidden_layers=sizes.layers or 12, **small)).save_pretrained(folder)
    else:
        tiny_decoder(folder)
        own = small | {"num_key_value_heads": 1, "head_dim": 16} if small else {
            "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128,
        }  # fmt: skip
        Qwen3Model(Qwen3Config(num_hidden_layers=sizes.layers or 28, tie_word_embeddings=True, **own)).save_pretrained(
            folder
        )
    return folder


def texts(n: int, characters: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdefghij klmnop", k=characters)) for _ in range(n)]


def train(folder: Path, case: str, sizes: Sizes, device: str) -> dict[str, Any]:
    """With our loop."""
    import torch

    from cdp.base.config import TrainingConfig
    from cdp.retrievers import load, resolve
    from cdp.training.engine import Batches
    from cdp.training.loop import Training, add_lora
    from cdp.training.pairs import BatchOrder
    from cdp.training.plan import complete
    from cdp.training.tokens import tokenise

    retriever = resolve(str(folder), Workspace.default())
    settings = {"epochs": 1, "batch_size": sizes.batch, "learning_rate": 2e-5, "save_steps": 2**31, "max_length": 128}
    config = complete(
        TrainingConfig(query_set="benchmark", retriever=str(folder), **settings, **CASES[case]), retriever
    )
    model = load(retriever, device, config.loop.max_length)

    if config.loop.lora_rank:
        add_lora(model, config.loop.lora_rank)

    losses = _Losses()
    _start(device)
    began = time.perf_counter()
    queries, documents = (tokenise(model, texts(sizes.pairs, n, seed)) for n, seed in ((24, 1), (110, 2)))

    batches = Batches(queries, documents, np.arange(sizes.pairs), np.ones(sizes.pairs))
    order = BatchOrder(sizes.pairs, sizes.batch, 1, 0)
    with tempfile.TemporaryDirectory() as checkpoints, _alone(case == "gathered negatives", device):
        Training(model, batches, order, config, losses, Path(checkpoints), keep=False).run()

    _wait(device)
    seconds = time.perf_counter() - began
    planned = torch.cuda.max_memory_allocated() if device == "cuda" else 0

    return {"rate": sizes.pairs / seconds, "losses": losses.values, "planned": planned / 2**20}


def train_peer(folder: Path, case: str, sizes: Sizes, device: str) -> dict[str, Any]:
    """With sentence-transformers' trainer and its own losses."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import (
        CachedMultipleNegativesRankingLoss,
        MultipleNegativesRankingLoss,
    )

    from cdp.retrievers import load, resolve

    own = CASES[case]
    model = load(resolve(str(folder), Workspace.default()), device, 128)
    pairs = {"query": texts(sizes.pairs, 24, 1), "document": texts(sizes.pairs, 110, 2)}
    loss = MultipleNegativesRankingLoss(model)

    if "mini_batch" in own:
        loss = CachedMultipleNegativesRankingLoss(model, mini_batch_size=own["mini_batch"])

    with tempfile.TemporaryDirectory() as output:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=output, per_device_train_batch_size=sizes.batch, num_train_epochs=1, learning_rate=2e-5,
            lr_scheduler_type="cosine", weight_decay=0.01, adam_beta2=0.98, max_grad_norm=1.0, use_cpu=device == "cpu",
            dataloader_drop_last=True, fp16=own["precision"] == "fp16", bf16=own["precision"] == "bf16",
            gradient_checkpointing=own.get("gradient_checkpointing", False), save_strategy="no", logging_steps=5,
            report_to=[], disable_tqdm=True,
        )  # fmt: skip
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_dict(pairs), loss=loss
        )
        _start(device)
        began = time.perf_counter()
        trainer.train()
        _wait(device)
        seconds = time.perf_counter() - began

    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {"rate": sizes.pairs / seconds, "losses": losses, "planned": 0.0}


class _Losses:
    """Hooks that keep the losses."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def log(self, step: int, **values: float | int | None) -> None:
        if values.get("loss") is not None:
            self.values.append(float(values["loss"]))  # type: ignore[arg-type]

    def progress(self, step: int, steps: int, message: str) -> None:
        """Nothing is shown."""

    def stop_requested(self) -> bool:
        return False


class _alone:  # noqa: N801 - used as a statement
    """A process group of this process alone: the negatives are gathered as they are among many cards."""

    def __init__(self, wanted: bool, device: str) -> None:
        self.wanted, self.backend = wanted, "nccl" if device == "cuda" else "gloo"

    def __enter__(self) -> None:
        if self.wanted:
            import torch.distributed

            self._folder = tempfile.TemporaryDirectory()
            store = torch.distributed.FileStore(f"{self._folder.name}/store", 1)
            torch.distributed.init_process_group(self.backend, store=store, rank=0, world_size=1)

    def __exit__(self, *details: object) -> None:
        if self.wanted:
            import torch.distributed

            torch.distributed.destroy_process_group()
            self._folder.cleanup()


def _start(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()


def _wait(device: str) -> None:
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def search_rows(sizes: Sizes, device: str) -> list[Row]:
    """Exact search of documents on the device, against the bare product there and `semantic_search`."""
    import torch
    from sentence_transformers import util

    from cdp.evaluation import search

    draw = np.random.default_rng(0)
    documents = draw.standard_normal((sizes.documents, sizes.dimension), dtype=np.float32)
    queries = draw.standard_normal((sizes.queries, sizes.dimension), dtype=np.float32)
    held, asked = (torch.from_numpy(vectors).to(device) for vectors in (documents, queries))
    k = min(100, sizes.documents)

    def product() -> None:
        for start in range(0, sizes.documents, 65_536):
            held[start : start + 65_536] @ asked.T
        _wait(device)

    def semantic() -> None:
        util.semantic_search(asked, held, top_k=k, score_function=util.dot_score)
        _wait(device)

    amount = 2 * sizes.queries * sizes.documents * sizes.dimension / 1e9
    return [
        compare(
            f"search of {sizes.documents:,} x {sizes.dimension} on the card, {name}",
            lambda: search(asked, held, k, device=device), peer, amount=amount, unit="GFLOP", target=goal,
            repeats=sizes.repeats,
        )
        for name, peer, goal in (("the bare product", product, SEARCH_GOAL), ("semantic_search", semantic, 1.0))
    ]  # fmt: skip


def encoding_row(folder: Path, shape: str, sizes: Sizes, device: str) -> Row:
    """Texts embedded in half precision (float32 on a processor), against `SentenceTransformer.encode`."""
    from cdp.retrievers import load, resolve
    from cdp.retrievers.encode import Encoding, cast, encode, precision_for

    model = load(resolve(str(folder), Workspace.default()), device, 128)
    precision = precision_for(model)
    model, given = cast(model, precision), texts(sizes.texts, 110, 3)
    return compare(
        f"encoding on the card, {shape}, {precision}, sentence-transformers",
        lambda: encode(model, given, Encoding("", "document", precision=precision)),
        lambda: model.encode(given, normalize_embeddings=True, show_progress_bar=False),
        amount=sizes.texts, unit="texts", target=1.0, repeats=sizes.repeats,
    )  # fmt: skip


def generation_row(folder: Path, sizes: Sizes, device: str) -> Row:
    """Prompts answered by a random decoder in batches, against one at a time."""
    from cdp.base.config import SynthesisConfig
    from cdp.base.records import Document
    from cdp.synthesis.generators import make_generator
    from cdp.synthesis.methods import METHODS
    from tests.synthesis.models import tiny_writer

    tiny_writer(folder)
    document, prompts = Document("d", "Basalt is a dark rock."), texts(sizes.prompts, 200, 4)

    def answered(at_once: int) -> None:
        made = make_generator(
            SynthesisConfig.from_dict(
                {"corpus": "c", "generator": "transformers", "model": str(folder), "batch_size": at_once,
                 "max_output_tokens": sizes.output_tokens, "gpus": 0 if device == "cpu" else None}
            )
        )  # fmt: skip
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda prompt: made.generate(prompt, document, METHODS["diverse"], 2), prompts))

    return compare(
        "answers of a local model on the card, one at a time", lambda: answered(min(32, sizes.prompts)),
        lambda: answered(1), amount=sizes.prompts, unit="prompts", target=1.0, repeats=sizes.repeats,
    )  # fmt: skip


def run(device: str = "cuda", sizes: Sizes | None = None) -> list[Row]:
    """A row per case and shape, search, encoding and generation; none without a card."""
    if device == "cuda" and not has_card():
        print(NO_CARD)
        return []

    sizes = sizes or Sizes()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for shape in ("BERT-base", "Qwen3-0.6B"):
            folder = shaped(shape, Path(name) / shape, sizes)
            for case in CASES:
                rows += training_rows(folder, shape, case, sizes, device)
            rows.append(encoding_row(folder, shape, sizes, device))
        rows.append(generation_row(Path(name) / "writer", sizes, device))

    rows += search_rows(sizes, device)
    show(rows)

    return rows


def training_rows(folder: Path, shape: str, case: str, sizes: Sizes, device: str) -> list[Row]:
    """Pairs per second against the trainer where it has the case, and the memory that the driver saw."""
    title = f"training {shape} on the card, {case}"
    ours, peer = [], []
    for _ in range(sizes.repeats):
        ours.append(in_a_process("ours", folder, case, sizes, device))
        if case in WITH_PEER:
            peer.append(in_a_process("peer", folder, case, sizes, device))

    print(f"{title}: losses {ours[0]['losses']} against {peer[0]['losses'] if peer else 'no peer'}")
    rows = []

    if peer:
        seconds = ([sizes.pairs / side["rate"] for side in sides] for sides in (ours, peer))
        rows.append(
            paired(f"{title}, the trainer", *seconds, amount=sizes.pairs, unit="pairs", target=TRAINING_GOAL)
        )  # fmt: skip

    if device == "cuda":
        seen, planned = [run["seen"] for run in ours], [run["planned"] for run in ours]
        rows.append(paired(f"{title}, peak memory by NVML, as planned", seen, planned, unit="MiB", target=0.9))

    return rows


def in_a_process(side: str, folder: Path, case: str, sizes: Sizes, device: str) -> dict[str, Any]:
    """One training in a process of its own; ``seen`` is the most memory that the driver counted for it, in MiB."""
    request = json.dumps([side, str(folder), case, list(vars(sizes).values()), device])
    process = subprocess.Popen(
        [sys.executable, "-m", "perf.gpu", request], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "true"},
    )  # fmt: skip
    peak = [0.0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            peak[0] = max(peak[0], memory_of(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    if device == "cuda":
        watcher.start()
    output, _ = process.communicate()
    ended.set()
    if process.returncode:
        raise RuntimeError(f"{side}, {case}: the process ended with {process.returncode}; see above")
    outcome: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return {**outcome, "seen": peak[0]}


def memory_of(pid: int) -> float:
    """MiB that the driver counts for a process; all that is in use where it cannot see processes, as in containers."""
    query = ["nvidia-smi", "--format=csv,noheader,nounits"]
    listed = subprocess.run([*query, "--query-compute-apps=pid,used_memory"], capture_output=True, text=True).stdout
    for line in listed.splitlines():
        number, _, used = line.partition(",")
        if number.strip() == str(pid):
            return float(used)
    whole = subprocess.run([*query, "--query-gpu=memory.used"], capture_output=True, text=True).stdout
    return float(whole.splitlines()[0]) if whole.strip() else 0.0


if __name__ == "__main__":
    side, path, case, values, device = json.loads(sys.argv[1])
    print(json.dumps({"ours": train, "peer": train_peer}[side](Path(path), case, Sizes(*values), device)))
