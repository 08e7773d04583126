"""Soft labels of a cross-encoder: the loss equals sentence-transformers' own, and a training takes them from a set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json
from cdp.retrievers import resolve
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.plan import complete, prepare
from tests.support import work
from tests.support_models import tiny_static
from tests.training.conftest import write_job

pytestmark = pytest.mark.slow
B, H, DIM = 5, 3, 8


def embeddings() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(B, DIM, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2 + H)]


def test_the_loss_of_soft_labels_is_that_of_sentence_transformers() -> None:
    from sentence_transformers import util
    from sentence_transformers.sentence_transformer.losses import DistillKLDivLoss

    columns = embeddings()
    teacher = 4 * torch.randn(B, 1 + H, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    ours = WeightedInfoNCE(distil=1.0).compute_loss_from_embeddings(columns, None, None, teacher)
    gradients = torch.autograd.grad(ours, columns)
    theirs = DistillKLDivLoss(None, similarity_fct=lambda a, b: 20 * util.pairwise_cos_sim(a, b))
    expected = theirs.compute_loss_from_embeddings(columns, teacher)
    assert ours.item() == pytest.approx(expected.item(), rel=1e-10)
    for one, other in zip(gradients, torch.autograd.grad(expected, columns), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_rows_without_labels_keep_infonce_and_weights_apply_to_both() -> None:
    columns, plain = embeddings(), WeightedInfoNCE()
    teacher = torch.zeros(B, 1 + H, dtype=torch.float64)
    teacher[0] = torch.nan
    teacher[1, 2:] = torch.nan
    only_first = torch.tensor([1.0, 0, 0, 0, 0], dtype=torch.float64)
    mixed = WeightedInfoNCE(distil=0.25)
    first = mixed.compute_loss_from_embeddings(columns, only_first, None, teacher)
    assert first.item() == pytest.approx(plain.compute_loss_from_embeddings(columns, only_first).item(), rel=1e-12)
    second = torch.roll(only_first, 1)
    soft = WeightedInfoNCE(distil=1.0).compute_loss_from_embeddings(columns, second, None, teacher)
    hard = plain.compute_loss_from_embeddings(columns, second)
    loss = mixed.compute_loss_from_embeddings(columns, second, None, teacher)
    assert loss.item() == pytest.approx(0.75 * hard.item() + 0.25 * soft.item(), rel=1e-12)
    queries, *documents = (torch.nn.functional.normalize(c[1], dim=0) for c in columns)
    chosen = torch.softmax(20 * torch.stack([queries @ d for d in documents[:2]]), 0)  # the others have no label
    assert soft.item() == pytest.approx((0.5 * torch.log(0.5 / chosen)).sum().item(), rel=1e-9)
    everything = mixed.compute_loss_from_embeddings(columns, None, None, teacher)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(everything, columns))


def test_a_training_learns_from_the_labels_of_its_set(workspace: Workspace, query_set: str, tmp_path: Path) -> None:
    def lists(line: query_sets.DocumentQueries) -> dict[str, list[list[object]]]:
        other = ["d1", "d2"] if line.document_id != "d1" else ["d2", "d3"]
        names = [name for name in other if name != line.document_id]
        return {"negatives": [names] * 3, "teacher": [[2.0, *([-1.0] * len(names))], [], [3.0, *([0.0] * len(names))]]}

    facts = {"hard_negatives": 70, "teacher": "a cross-encoder"}
    source = query_sets.load(workspace, query_set)
    made = query_sets.derive(workspace, source, lambda d: d.queries, "taught", facts, of_each=lists).query_set
    retriever = str(tiny_static(tmp_path / "tiny"))
    settings = {"query_set": made.id, "retriever": retriever, "hard_negatives": 2, "distil": 0.5}
    pairs = prepare(TrainingConfig(**settings), workspace).pairs
    assert pairs.teacher is not None
    assert pairs.teacher.shape == (39, 3)
    assert np.isnan(pairs.teacher[1]).all()
    assert pairs.teacher[0].tolist() == [2.0, -1.0, -1.0]
    run = {**settings, "epochs": 6, "batch_size": 13, "learning_rate": 0.02, "gpus": 0}
    losses = {}
    for job, distil in (("taught", 0.5), ("plain", 0.0)):
        folder = write_job(workspace, job, **{**run, "distil": distil})
        assert work("cdp.workers.training", folder) == 0
        result = read_json(folder / "results" / "training.json")
        losses[job] = result["loss_first"]
        assert result["loss_last"] < result["loss_first"]
    assert losses["taught"] != losses["plain"]
    assert '"distil": 0.5' in (workspace.job("taught") / "model" / "README.md").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="has no soft labels"):
        prepare(TrainingConfig(query_set=query_set, retriever=retriever, distil=0.5), workspace)
    with pytest.raises(ConfigError, match="'distil' compares each query"):
        complete(TrainingConfig(query_set="q", distil=0.5, hard_negatives=0), resolve("static-minilm", workspace))
