"""The weighted loss against independent references: MNRL, and a float64 formula written out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from cdp.base.errors import ConfigError, InputError
from cdp.complexity import cw_weights
from cdp.training.infonce import normalised
from cdp.training.loss import WeightedInfoNCELoss
from tests.support_models import tiny_retriever, tiny_static

B, DIM = 9, 8


def vectors(columns: int = 2, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(B, DIM, generator=generator, dtype=dtype).requires_grad_() for _ in range(columns)]


def labels(weights: list[float], documents: list[int]) -> torch.Tensor:
    return torch.tensor(list(zip(weights, documents, strict=True)), dtype=torch.float64)


def written_out(
    queries: np.ndarray, documents: np.ndarray, weights: np.ndarray, index: np.ndarray, scale: float
) -> float:
    """The weighted mean of −log softmax over the documents that are not the query's own, in plain Python."""
    q = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    d = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    total = 0.0
    for i in range(len(q)):
        kept = [j for j in range(len(d)) if j == i or index[j] != index[i]]
        exponentials = {j: math.exp(scale * float(q[i] @ d[j])) for j in kept}
        total += float(weights[i]) * -math.log(exponentials[i] / sum(exponentials.values()))
    return total / float(weights.sum())


@pytest.mark.parametrize("negatives", [0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_weights_without_repeated_documents_is_multiple_negatives_ranking(
    negatives: int, dtype: torch.dtype
) -> None:
    ours, theirs = vectors(2 + negatives, dtype), vectors(2 + negatives, dtype)
    loss = WeightedInfoNCELoss(None).compute_loss_from_embeddings(ours, labels([1.0] * B, list(range(B))))
    peer = MultipleNegativesRankingLoss(None).compute_loss_from_embeddings(theirs, None)
    assert loss.item() == pytest.approx(peer.item(), abs=1e-6)
    loss.backward()
    peer.backward()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-6)


def test_weights_and_masking_agree_with_the_formula_written_out() -> None:
    weights = [1.0, 3.0, 0.0, 7.0, 2.0, 5.0, 1.0, 4.0, 2.0]
    documents = [0, 1, 0, 2, 3, 2, 2, 4, 5]
    queries, docs = vectors()
    loss = WeightedInfoNCELoss(None, scale=13.0)
    value = loss.compute_loss_from_embeddings([queries, docs], labels(weights, documents))
    expected = written_out(
        queries.detach().numpy(), docs.detach().numpy(), np.array(weights), np.array(documents), 13.0
    )
    assert float(value) == pytest.approx(expected, rel=1e-12)
    assert loss.masked == 2 + 6  # two rows share document 0, three share document 2


def test_gradients_agree_with_finite_differences() -> None:
    queries, docs = vectors()
    marks = labels([1.0, 3.0, 0.5, 7.0, 2.0, 5.0, 1.0, 4.0, 2.0], [0, 1, 0, 2, 3, 2, 2, 4, 5])
    loss = WeightedInfoNCELoss(None)
    assert torch.autograd.gradcheck(lambda q, d: loss.compute_loss_from_embeddings([q, d], marks), (queries, docs))


def test_normalisation_is_equation_two() -> None:
    cw = np.array([3.0, 150.0, 7.0, 0.0, 12.0])
    ours = normalised(torch.from_numpy(np.minimum(cw, 100.0)))
    np.testing.assert_allclose(ours.numpy(), cw_weights(cw, kappa=100.0), rtol=1e-15)
    assert float(ours.mean()) == pytest.approx(1.0)


def test_a_batch_of_zero_weights_counts_equally() -> None:
    assert normalised(torch.zeros(4)).tolist() == [1.0] * 4
    queries, docs = vectors()
    zero = WeightedInfoNCELoss(None).compute_loss_from_embeddings([queries, docs], labels([0.0] * B, list(range(B))))
    one = WeightedInfoNCELoss(None).compute_loss_from_embeddings([queries, docs], labels([1.0] * B, list(range(B))))
    assert float(zero) == float(one) > 0


@pytest.mark.parametrize("size", [1e-60, 1e98])
def test_only_the_proportions_of_weights_matter_however_large_or_small_they_are(size: float) -> None:
    weights = [1.0, 3.0, 0.0, 7.0, 2.0, 5.0, 1.0, 4.0, 2.0]
    columns = vectors(dtype=torch.float32)
    expected = WeightedInfoNCELoss(None).compute_loss_from_embeddings(columns, labels(weights, list(range(B))))
    scaled = WeightedInfoNCELoss(None).compute_loss_from_embeddings(
        columns, labels([w * size for w in weights], list(range(B)))
    )
    assert scaled.dtype == torch.float32
    assert float(scaled) == pytest.approx(float(expected), rel=1e-6)


def test_weights_may_be_whole_numbers_in_a_column_of_their_own() -> None:
    weights = [1, 3, 0, 7, 2, 5, 1, 4, 2]
    expected, found = (
        WeightedInfoNCELoss(None).compute_loss_from_embeddings(vectors(), column)
        for column in (labels([float(w) for w in weights], list(range(B))), torch.tensor(weights))
    )
    assert float(found) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -0.5])
@pytest.mark.parametrize("shape", ["weights only", "weights and documents"])
def test_a_weight_that_is_none_is_named_and_never_becomes_equal_weights(bad: float, shape: str) -> None:
    weights = [1.0] * B
    weights[4] = bad
    given = labels(weights, list(range(B))) if shape == "weights and documents" else torch.tensor(weights)
    with pytest.raises(InputError, match="weight of row 4"):
        WeightedInfoNCELoss(None).compute_loss_from_embeddings(vectors(), given)
    # Where looking would cost a wait (a GPU), a NaN has to reach the loss instead of being replaced.
    assert normalised(torch.tensor([1.0, math.nan])).isnan().all()


def test_hard_negatives_that_are_the_rows_own_document_are_masked() -> None:
    queries, docs, hard = vectors(3)
    loss = WeightedInfoNCELoss(None)
    own = [float(i) for i in range(B)]
    marks = torch.tensor([[1.0, i, own[i] if i < 2 else 100 + i] for i in range(B)], dtype=torch.float64)
    value = loss.compute_loss_from_embeddings([queries, docs, hard], marks)
    assert loss.masked == 2
    with torch.no_grad():
        hard[0] = hard[1] = 1e3  # what is masked cannot matter … for the rows that mask it
    moved = loss.compute_loss_from_embeddings([queries[:1], docs[:1], hard[:1]], marks[:1])
    assert float(moved) == 0.0  # one row whose only negative is its own document
    assert math.isfinite(float(value))


def test_half_precision_embeddings_give_a_float32_loss() -> None:
    halves = [v.detach().to(torch.bfloat16) for v in vectors()]
    value = WeightedInfoNCELoss(None).compute_loss_from_embeddings(halves)
    assert value.dtype == torch.float32


@pytest.mark.parametrize("wrong", [{"scale": 0.0}, {"scale": -1.0}, {"mini_batch": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        WeightedInfoNCELoss(None, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("mini_batch", [1, 2, 4, 100])
def test_gradcache_gives_the_gradients_of_the_full_batch_in_float64(tmp_path: Path, mini_batch: int) -> None:
    folder = str(tiny_retriever(tmp_path))
    queries = [f"question about {w}" for w in ("tea", "ships", "snow", "a long one about railways", "ink")]
    documents = [f"document on {w}" for w in ("tea leaves", "sailing ships", "snow", "railways", "ink")]
    marks = labels([1.0, 6.0, 2.0, 0.5, 3.0], [0, 1, 2, 1, 4])
    gradients = []
    for cached in (None, mini_batch):
        model = SentenceTransformer(folder, device="cpu").double().eval()
        loss = WeightedInfoNCELoss(model, mini_batch=cached)
        value = loss([model.preprocess(queries), model.preprocess(documents)], marks)
        (value * 3.0).backward()  # a factor from outside, such as a gradient scaler's, must reach every mini-batch
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys() != set()
    for name in gradients[0]:
        torch.testing.assert_close(gradients[1][name], gradients[0][name], rtol=1e-9, atol=1e-12)


def test_gradcache_refuses_a_static_model(tmp_path: Path) -> None:
    model = SentenceTransformer(str(tiny_static(tmp_path)), device="cpu")
    with pytest.raises(ConfigError, match="GradCache does not apply"):
        WeightedInfoNCELoss(model, mini_batch=2)
