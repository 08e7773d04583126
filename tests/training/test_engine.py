"""The engines against embedding the whole batch at once with autograd, in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize

from cdp.training.engine import Batches, StaticEngine, TransformerEngine
from cdp.training.loss import WeightedInfoNCELoss
from cdp.training.tokens import TokenStore, groups, tokenise
from tests.support_models import tiny_retriever, tiny_static

QUERIES = ["what is tea", "why do ships float at all", "snow", "railways of the north", "who made this ink", "tea?"]
DOCUMENTS = [
    "tea leaves and water",
    "ships " * 12,
    "a zebra quiz, jukebox",
    "a railway line",
    "ink",
    "never used",
]
DOCUMENT_OF = np.array([0, 1, 2, 3, 4, 0])
WEIGHTS = np.array([1.0, 6.0, 2.0, 0.5, 3.0, 4.0])
ROWS = np.array([5, 3, 0, 1, 4])


def batches(model: SentenceTransformer, prompt: str = "") -> Batches:
    return Batches(tokenise(model, QUERIES, prompt), tokenise(model, DOCUMENTS), DOCUMENT_OF, WEIGHTS)


def scaled(loss: torch.Tensor) -> None:
    """Propagate as a gradient scaler does."""
    (2.5 * loss).backward()


def reference(model: SentenceTransformer, factor: float, prompt: str = "") -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of the batch embedded at once by the model itself."""
    model.zero_grad(set_to_none=True)
    queries = model(model.preprocess([QUERIES[i] for i in ROWS], prompt=prompt or None))["sentence_embedding"]
    documents = model(model.preprocess([DOCUMENTS[DOCUMENT_OF[i]] for i in ROWS]))["sentence_embedding"]
    labels = torch.tensor(np.stack([WEIGHTS[ROWS], DOCUMENT_OF[ROWS]], 1))
    loss = WeightedInfoNCELoss(None).compute_loss_from_embeddings([queries, documents], labels)
    (loss * factor).backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad(set_to_none=True)
    return loss.item(), found


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("mini_batch", [None, 1, 3])
def test_transformer_engine_gives_the_full_batch_gradients(
    tmp_path: Path, pooling: str, mini_batch: int | None
) -> None:
    model = SentenceTransformer(str(tiny_retriever(tmp_path, pooling=pooling)), device="cpu").double().eval()
    expected, gradients = reference(model, factor=2.5, prompt="find: ")
    engine = TransformerEngine(
        model, batches(model, "find: "), WeightedInfoNCELoss(None), mini_batch=mini_batch, propagate=scaled
    )
    assert engine.backward(ROWS).item() == pytest.approx(expected, rel=1e-12)
    for name, parameter in model.named_parameters():
        assert (parameter.grad is None) == (name not in gradients), name
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("normalise", [False, True])
def test_static_engine_gives_the_gradients_of_autograd_step_after_step(tmp_path: Path, normalise: bool) -> None:
    model = SentenceTransformer(str(tiny_static(tmp_path)), device="cpu").eval()
    if normalise:
        model.append(Normalize())
    expected, gradients = reference(model, factor=2.5)
    engine = StaticEngine(model, batches(model), WeightedInfoNCELoss(None), scaled)
    engine.backward(np.array([1, 2]))  # another batch before: nothing of it may remain
    assert bool((engine.table.grad[gradients["0.embedding.weight"].abs().sum(1) == 0] != 0).any())
    assert engine.backward(ROWS).item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(engine.table.grad, gradients["0.embedding.weight"], rtol=1e-5, atol=1e-7)


def test_dropout_draws_the_same_masks_in_both_passes_of_gradcache(tmp_path: Path) -> None:
    """With dropout, the gradients of GradCache are those of the very embeddings its loss was computed from."""
    model = SentenceTransformer(str(tiny_retriever(tmp_path, dropout=0.3)), device="cpu").double().train()
    seen: list[torch.Tensor] = []
    model.register_forward_hook(lambda module, inputs, output: seen.append(output["sentence_embedding"].detach()))
    engine = TransformerEngine(model, batches(model), WeightedInfoNCELoss(None), mini_batch=2)
    torch.manual_seed(3)
    engine.backward(ROWS)
    half = len(seen) // 2
    assert half >= 3
    for first, second in zip(seen[:half], seen[half:], strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(seen[0][0], model(model.preprocess([QUERIES[5]]))["sentence_embedding"][0])


def test_groups_hold_every_text_once_and_never_cost_more_than_one_group() -> None:
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 128):
        lengths = random.integers(1, 60, size)
        for overhead, largest in ((0.0, None), (16.0, None), (1e9, None), (16.0, 3)):
            found = groups(lengths, overhead, largest)
            assert sorted(np.concatenate(found).tolist()) == list(range(size))
            if largest:
                assert max(map(len, found)) <= largest
            else:
                cost = sum(int(lengths[g].max()) * len(g) + overhead for g in found)
                assert cost <= int(lengths.max()) * size + overhead
        assert len(groups(lengths, 1e9)) == 1
        assert len(groups(lengths, 0.0)) == len(set(lengths.tolist()))


def test_a_token_store_pads_to_the_longest_on_the_side_it_is_told() -> None:
    ids = np.arange(10, 16)
    for left, expected in ((False, [[10, 11, 0], [13, 14, 15]]), (True, [[0, 10, 11], [13, 14, 15]])):
        store = TokenStore(ids, np.array([0, 2, 3, 6]), pad_left=left)
        features = store.features(np.array([0, 2]))
        assert features["input_ids"].tolist() == expected
        assert features["attention_mask"].tolist() == [[int(x > 0) for x in row] for row in expected]


@pytest.mark.parametrize("limit", [1e-3, 1e9, float("inf")])
def test_a_tables_gradient_is_clipped_as_torch_clips_it(tmp_path: Path, limit: float) -> None:
    model = SentenceTransformer(str(tiny_static(tmp_path)), device="cpu")
    engine = StaticEngine(model, batches(model), WeightedInfoNCELoss(None))
    for rows in (ROWS, ROWS[:3]):  # rows of the step before are zero again
        engine.backward(rows)
        assert engine.table.grad is not None
        expected = engine.table.grad.clone()
        norm = engine.clip(limit)

        engine.table.grad, ours = expected, engine.table.grad
        torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_([engine.table], limit))
        torch.testing.assert_close(ours, engine.table.grad)
        engine.table.grad = ours
