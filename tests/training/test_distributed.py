"""Two gloo processes against one process on the full batch, in float64: our loop, and the trainer with our loss."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from accelerate import PartialState
from accelerate.state import AcceleratorState
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

from cdp.base.config import TrainingConfig
from cdp.training import infonce
from cdp.training.engine import Batches, TransformerEngine, average_gradients, broadcast_parameters
from cdp.training.loop import Training
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.pairs import BatchOrder
from cdp.training.tokens import tokenise
from tests.support import free_port
from tests.support_models import tiny_retriever
from tests.training.test_loop import Recorder

pytestmark = pytest.mark.slow

QUERIES = [
    f"question {i} about {w}" for i, w in enumerate(("tea", "ships", "snow", "rails", "ink", "tea", "corn", "tea"))
]
DOCUMENTS = [f"text on {w}" for w in ("tea leaves", "ships", "snow", "railways and lines", "ink", "corn")]
DOCUMENT_OF = np.array([0, 1, 2, 3, 4, 0, 5, 0])  # document 0 on both ranks: rows 0 | 5, 7
NEGATIVES = np.array([[1], [-1], [0], [4], [-1], [3], [0], [2]])  # rows 1 and 4 have none; row 3's is row 4's own
WEIGHTS = np.array([1.0, 9.0, 2.0, 0.5, 3.0, 4.0, 1.0, 30.0])  # sums 12.5 | 38


def gradients(model: SentenceTransformer) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def build(
    folder: str, mini_batch: int | None, hard: bool = False
) -> tuple[SentenceTransformer, TransformerEngine, WeightedInfoNCELoss]:
    model = SentenceTransformer(folder, device="cpu").double().eval()
    loss = WeightedInfoNCELoss(None, gather_across_devices=True)
    stores = (tokenise(model, texts) for texts in (QUERIES, DOCUMENTS))
    batches = Batches(*stores, DOCUMENT_OF, WEIGHTS, negatives=NEGATIVES if hard else None)
    return model, TransformerEngine(model, batches, loss, mini_batch=mini_batch), loss


@dataclass(frozen=True)
class Case:
    """A way to compute the gradients of the full batch; ``per_process`` is the fault that the test must catch: weights
    normalised over the own rows only."""

    mini_batch: int | None
    hard: bool = False
    per_process: bool = False


CASES = [Case(None), Case(2), Case(None, hard=True), Case(2, hard=True), Case(None, per_process=True)]


def share(rank: int, folder: str) -> list[Any]:
    """The gradients of every case on this process's half of the batch."""
    found = []
    for case in CASES:
        with pytest.MonkeyPatch.context() as patch:
            if case.per_process:
                patch.setattr(infonce, "normalised", lambda weights: weights / weights.mean())
            model, engine, loss = build(folder, case.mini_batch, case.hard)
            if rank == 1:
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.add_(1.0)  # what initialisation at random would do; the broadcast must undo it
            broadcast_parameters(model)
            value = engine.backward(np.arange(4) + 4 * rank)
            average_gradients([p for p in model.parameters() if p.requires_grad])
            found.append((value, gradients(model), loss.masked))
    return found


def trainer_steps(processes: int, folder: str, mini_batches: list[int | None], out: str) -> list[Any]:
    """For each mini-batch, one step of plain gradient descent by the sentence-transformers trainer, with our loss."""
    columns = {
        "query": QUERIES,
        "document": [DOCUMENTS[i] for i in DOCUMENT_OF],
        "label": [[weight, float(document)] for weight, document in zip(WEIGHTS, DOCUMENT_OF, strict=True)],
    }
    arguments = SentenceTransformerTrainingArguments(
        output_dir=f"{out}.trainer", per_device_train_batch_size=8 // processes, max_steps=1, learning_rate=1.0,
        lr_scheduler_type="constant", optim="sgd", max_grad_norm=0.0, use_cpu=True, report_to=[], save_strategy="no",
        disable_tqdm=True, ddp_backend="gloo" if processes > 1 else None,
    )  # fmt: skip
    data, trained = Dataset.from_dict(columns), []
    for mini_batch in mini_batches:
        model = SentenceTransformer(folder, device="cpu").double()
        loss = WeightedInfoNCELoss(model, gather_across_devices=True, mini_batch=mini_batch)
        SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss).train()
        trained.append(model.state_dict())
    return trained


def resumed(rank: int, folder: str, out: str) -> list[Any]:
    """Train whole, and stopped at step 3 and resumed; each process has dropout masks of its own."""
    config = TrainingConfig(query_set="q", learning_rate=3e-3, batch_size=4, epochs=3, scale=20.0)
    trained = []
    for name, stop_after in (("whole", None), ("parts", 3), ("parts", None)):
        torch.manual_seed(99 + rank)
        model = SentenceTransformer(folder, device="cpu")
        batches = Batches(tokenise(model, QUERIES), tokenise(model, DOCUMENTS), DOCUMENT_OF, WEIGHTS)
        order, hooks = BatchOrder(len(QUERIES), 4, 3, 0, 2), Recorder(stop_after=stop_after)
        trained.append(
            (Training(model, batches, order, config, hooks, Path(out) / name).run().step, model.state_dict())
        )
    return trained


def both(rank: int, port: int, folder: str, with_dropout: str, out: str) -> None:
    """Save what one of two processes finds; to start processes takes longer than what they do."""
    address = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    # The tokenisers' threads are the parent's: without this, texts would wait for them for ever.
    os.environ.update({name: str(value) for name, value in address.items()}, TOKENIZERS_PARALLELISM="false")
    torch.set_num_threads(1)
    AcceleratorState._reset_state(reset_partial_state=True)  # what the parent's trainings left: one process, no group
    state = PartialState(cpu=True, backend="gloo")
    found = {"share": share(rank, folder), "resumed": resumed(rank, with_dropout, out)}
    found["trainer"] = trainer_steps(2, folder, [None, 2], out)  # the last: accelerate keeps the state of a trainer
    torch.save(found, f"{out}.{rank}")
    state.destroy_process_group()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_retriever(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def ranks(folder: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes found. Forked, they need not load torch anew, which takes 8 CPU seconds each."""
    out = tmp_path_factory.mktemp("ranks") / "out"
    models = folder, str(tiny_retriever(out.with_name("model"), dropout=0.2))
    import torch._dynamo  # what a trainer loads, once for both

    started = mp.start_processes(both, args=(free_port(), *models, str(out)), nprocs=2, join=False, start_method="fork")
    deadline = time.monotonic() + 300
    try:
        while not started.join(timeout=5):
            assert time.monotonic() < deadline, "the two processes wait for something"
    finally:
        for process in started.processes:
            process.kill()
    return [torch.load(f"{out}.{rank}", weights_only=True) for rank in (0, 1)]


def worst(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """The largest difference of a gradient, relative to the largest gradient."""
    largest = max(float(g.abs().max()) for g in expected.values())
    differences = [float((found[name] - g).abs().max()) for name, g in expected.items()]
    extra = [float(g.abs().max()) for name, g in found.items() if name not in expected]
    return max(differences + extra) / largest


def full_batch(folder: str, hard: bool = False) -> tuple[float, dict[str, torch.Tensor], int]:
    model, engine, loss = build(folder, None, hard)
    value = engine.backward(np.arange(8))
    return float(value), gradients(model), loss.masked


def test_our_loop_on_two_processes_gives_the_full_batch_gradients(ranks: list[dict[str, Any]], folder: str) -> None:
    """Hard negatives are gathered as well, and missing ones count nowhere."""
    assert full_batch(folder)[2] == 6  # rows 0, 5 and 7 share document 0
    for case, *found in zip(CASES, *(rank["share"] for rank in ranks), strict=True):
        value, expected, masked = full_batch(folder, case.hard)
        if case.per_process:
            assert worst(found[0][1], expected) > 0.01
            continue
        assert sum(rank[2] for rank in found) == masked, case
        assert np.mean([float(rank[0]) for rank in found]) == pytest.approx(value, rel=1e-12), case
        for rank in found:
            assert worst(rank[1], expected) < 1e-10, case


@pytest.mark.parametrize("processes", [1, 2])
def test_the_trainer_with_our_loss_takes_the_full_batch_step(
    ranks: list[dict[str, Any]], folder: str, processes: int, tmp_path: Path
) -> None:
    """Plain gradient descent at rate 1: what a step takes away from the weights is the gradient."""
    _, expected, _ = full_batch(folder)
    start = SentenceTransformer(folder, device="cpu").double().state_dict()
    found = [trainer_steps(1, folder, [2], str(tmp_path))] if processes == 1 else [rank["trainer"] for rank in ranks]
    for trained in found:
        for weights in trained:
            assert worst({name: start[name] - value for name, value in weights.items()}, expected) < 1e-10


def test_a_training_on_two_processes_is_resumed_bit_for_bit(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        (whole_steps, whole), (stopped_at, _), (steps, weights) = rank["resumed"]
        assert (whole_steps, stopped_at, steps) == (6, 3, 6)
        for name, value in whole.items():
            assert torch.equal(value, weights[name]), name
