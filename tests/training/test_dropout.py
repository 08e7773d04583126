"""Dropout whose masks are drawn in blocks: the same law as torch's, the same attention, replayed by GradCache."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from cdp.training import forward as fast
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever
from tests.training.test_engine import DOCUMENT_OF, DOCUMENTS, QUERIES, ROWS, WEIGHTS


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_a_share_of_p_is_zero_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    values = torch.full((300, 1003), 2.0, requires_grad=True)
    found = fast.dropout(values, p)
    zero = (found == 0).float()
    # 300,000 draws: three standard errors of the share are below 0.003, five of a column's below 0.15.
    assert float(zero.mean()) == pytest.approx(p, abs=0.003)
    assert float((zero.mean(dim=0) - p).abs().max()) < 0.15
    assert {round(v, 4) for v in found.unique().tolist()} == {0.0, round(2.0 / (1 - p), 4)}

    found.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(values.grad, found.detach() / 2.0)


def test_the_same_random_state_draws_the_same_masks() -> None:
    values = torch.ones(7, 13)
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(fast.dropout(values, 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("kind", ["none", "bool", "added"])
def test_attention_is_torchs(kind: str) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(3, 2, 9, 8) for _ in range(3))
    seen = torch.rand(3, 1, 9, 9) < 0.7
    seen[..., 0] = True
    mask = {"none": None, "bool": seen, "added": torch.where(seen, 0.5, -1e30)}[kind]
    expected = nn.functional.scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(fast.attention(query, key, value, mask, 1e-9), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_what_trains_draws_them_and_gradcache_replays_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = SentenceTransformer(str(tiny_retriever(tmp_path / "tiny", dropout=0.3)), device="cpu").train()
    drawn: list[bytes] = []
    dropout = fast.dropout

    def watched(values: torch.Tensor, p: float) -> torch.Tensor:
        found = dropout(values, p)
        drawn.append((found == 0).numpy().tobytes())
        return found

    monkeypatch.setattr(fast, "dropout", watched)
    batches = Batches(tokenise(model, QUERIES), tokenise(model, DOCUMENTS), DOCUMENT_OF, WEIGHTS)
    TransformerEngine(model, batches, WeightedInfoNCE(20.0), mini_batch=3).backward(ROWS)
    # Of each layer its attention and two of its outputs, and the embeddings: in a pass without gradients and one with.
    assert len(drawn) % (2 * (2 * 3 + 1)) == 0
    half = len(drawn) // 2
    assert drawn[:half] == drawn[half:]
    assert len(set(drawn)) > half // 2

    drawn.clear()
    model.eval()
    TransformerEngine(model, batches, WeightedInfoNCE(20.0)).backward(ROWS)
    assert not drawn
    assert np.isfinite([float(p.grad.norm()) for p in model.parameters() if p.grad is not None]).all()


@pytest.mark.slow
def test_gradient_checkpointing_keeps_torchs_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It repeats a pass within autograd, where the mode is not entered: the two passes would not fit each other."""
    monkeypatch.setattr("cdp.training.engine.FastDropout", nullcontext)
    expected = gradient(tmp_path, checkpointing=False)
    monkeypatch.undo()
    torch.testing.assert_close(gradient(tmp_path, checkpointing=True), expected)


def gradient(folder: Path, *, checkpointing: bool) -> torch.Tensor:
    """The gradient of one step of a tiny transformer with dropout, from a fixed random state."""
    model = SentenceTransformer(str(tiny_retriever(folder / "tiny", dropout=0.3)), device="cpu").train()
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    batches = Batches(tokenise(model, QUERIES), tokenise(model, DOCUMENTS), DOCUMENT_OF, WEIGHTS)

    torch.manual_seed(0)
    TransformerEngine(model, batches, WeightedInfoNCE(20.0)).backward(ROWS)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
