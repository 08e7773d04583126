"""Two gloo processes against one process on the full batch, in float64: our loop, and the trainer with our loss."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from accelerate import PartialState
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

from cdp.base.config import TrainingConfig
from cdp.training import infonce
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.loop import Training
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.optimiser import average_gradients, broadcast_parameters
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


def share(rank: int, port: int, folder: str, mini_batch: int | None, per_process: bool, hard: bool, out: str) -> None:
    address = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in address.items()})
    state = PartialState(cpu=True, backend="gloo")
    torch.set_num_threads(1)
    if per_process:  # the mistake this test must catch: weights normalised over the own rows only
        infonce.normalised = lambda weights: weights / weights.mean()
    model, engine, loss = build(folder, mini_batch, hard)
    if rank == 1:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(1.0)  # what initialisation at random would do; the broadcast must undo it
    broadcast_parameters(model)
    value = engine.backward(np.arange(4) + 4 * rank)
    average_gradients([p for p in model.parameters() if p.requires_grad])
    torch.save((value, gradients(model), loss.masked), f"{out}.{rank}")
    state.destroy_process_group()


def trainer_step(rank: int, port: int, processes: int, folder: str, mini_batch: int | None, out: str) -> None:
    """One step of plain gradient descent by the sentence-transformers trainer, with our loss."""
    address = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": processes,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in address.items()})
    torch.set_num_threads(1)
    model = SentenceTransformer(folder, device="cpu").double()
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
    loss = WeightedInfoNCELoss(model, gather_across_devices=True, mini_batch=mini_batch)
    SentenceTransformerTrainer(model=model, args=arguments, train_dataset=Dataset.from_dict(columns), loss=loss).train()
    torch.save(model.state_dict(), f"{out}.{rank}")


def resumed(rank: int, port: int, folder: str, out: str) -> None:
    """Train whole, and stopped at step 3 and resumed; each process has dropout masks of its own."""
    address = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in address.items()})
    state = PartialState(cpu=True, backend="gloo")
    torch.set_num_threads(1)
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
    torch.save(trained, f"{out}.{rank}")
    state.destroy_process_group()


def processes_of(function: Any, n: int, *arguments: Any) -> None:
    """Run ``function(rank, port, *arguments)`` in ``n`` new processes.

    They come from one server that has loaded torch and this module before the first is asked for: to load them takes
    ten times as long as what the processes do.
    """
    multiprocessing.set_forkserver_preload([__name__])
    mp.start_processes(function, args=(free_port(), *arguments), nprocs=n, start_method="forkserver")


def two_processes(function: Any, out: Path, *arguments: Any) -> list[Any]:
    processes_of(function, 2, *arguments, str(out))
    return [torch.load(f"{out}.{rank}", weights_only=True) for rank in (0, 1)]


def worst(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """The largest difference of a gradient, relative to the largest gradient."""
    largest = max(float(g.abs().max()) for g in expected.values())
    differences = [float((found[name] - g).abs().max()) for name, g in expected.items()]
    extra = [float(g.abs().max()) for name, g in found.items() if name not in expected]
    return max(differences + extra) / largest


@pytest.fixture
def full_batch(tmp_path: Path) -> tuple[str, float, dict[str, torch.Tensor], int]:
    folder = str(tiny_retriever(tmp_path / "tiny"))
    model, engine, loss = build(folder, None)
    value = engine.backward(np.arange(8))
    return folder, float(value), gradients(model), loss.masked


@pytest.mark.parametrize("mini_batch", [None, 2])
def test_our_loop_on_two_processes_gives_the_full_batch_gradients(
    tmp_path: Path, full_batch: tuple[str, float, dict[str, torch.Tensor], int], mini_batch: int | None
) -> None:
    folder, value, expected, masked = full_batch
    ranks = two_processes(share, tmp_path / "out", folder, mini_batch, False, False)
    assert masked == 6  # rows 0, 5 and 7 share document 0
    assert sum(rank[2] for rank in ranks) == masked
    assert np.mean([float(rank[0]) for rank in ranks]) == pytest.approx(value, rel=1e-12)
    for rank in ranks:
        assert worst(rank[1], expected) < 1e-10


@pytest.mark.parametrize("mini_batch", [None, 2])
def test_hard_negatives_are_gathered_as_well_and_missing_ones_count_nowhere(
    tmp_path: Path, mini_batch: int | None
) -> None:
    folder = str(tiny_retriever(tmp_path / "tiny"))
    model, engine, loss = build(folder, None, hard=True)
    value = engine.backward(np.arange(8))
    ranks = two_processes(share, tmp_path / "out", folder, mini_batch, False, True)
    assert sum(rank[2] for rank in ranks) == loss.masked
    assert np.mean([float(rank[0]) for rank in ranks]) == pytest.approx(float(value), rel=1e-12)
    for rank in ranks:
        assert worst(rank[1], gradients(model)) < 1e-10


@pytest.mark.parametrize(("processes", "mini_batch"), [(1, 2), (2, None), (2, 2)])
def test_the_trainer_with_our_loss_takes_the_full_batch_step(
    tmp_path: Path, full_batch: tuple[str, float, dict[str, torch.Tensor], int], processes: int, mini_batch: int | None
) -> None:
    """Plain gradient descent at rate 1: what a step takes away from the weights is the gradient."""
    folder, _, expected, _ = full_batch
    start = SentenceTransformer(folder, device="cpu").double().state_dict()
    processes_of(trainer_step, processes, processes, folder, mini_batch, str(tmp_path / "out"))
    for rank in range(processes):
        trained = torch.load(f"{tmp_path / 'out'}.{rank}", weights_only=True)
        assert worst({name: start[name] - value for name, value in trained.items()}, expected) < 1e-10


def test_a_training_on_two_processes_is_resumed_bit_for_bit(tmp_path: Path) -> None:
    ranks = two_processes(resumed, tmp_path / "out", str(tiny_retriever(tmp_path / "tiny", dropout=0.2)))
    for (whole_steps, whole), (stopped_at, _), (steps, weights) in ranks:
        assert (whole_steps, stopped_at, steps) == (6, 3, 6)
        for name, value in whole.items():
            assert torch.equal(value, weights[name]), name


def test_normalising_per_process_would_be_noticed(
    tmp_path: Path, full_batch: tuple[str, float, dict[str, torch.Tensor], int]
) -> None:
    folder, _, expected, _ = full_batch
    ranks = two_processes(share, tmp_path / "out", folder, None, True, False)
    assert worst(ranks[0][1], expected) > 0.01
