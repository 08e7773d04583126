"""Training over weights of words: gradients are those of the formula written out text by text in float64."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SparseEncoder

from cdp.base.workspace import Workspace
from cdp.retrievers import load, model_hash, resolve, spelling
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.forward import pooled_weights
from cdp.training.heads import start_head
from cdp.training.infonce import FLOPS_DOCUMENTS, FLOPS_QUERIES, SparseInfoNCE
from cdp.training.lower_layers import freeze_below
from cdp.training.tokens import tokenise
from tests.support import work
from tests.support_models import tiny_sparse
from tests.training.conftest import write_job
from tests.training.test_late_interaction_loss import DOCUMENT_OF, DOCUMENTS, NEGATIVES, QUERIES, ROWS, WEIGHTS

pytestmark = pytest.mark.slow

SCALE = 0.7
DEMO = Path(__file__).parents[2] / "data" / "demo"


def weights(model: SparseEncoder, text: str) -> torch.Tensor:
    """The weights of one text alone, by the formula of SPLADE: nothing is padded."""
    features = model.preprocess([text])
    logits = model[0].model(**{name: features[name] for name in ("input_ids", "attention_mask")}).logits[0]
    return torch.log1p(torch.relu(logits)).max(0).values


def written_out(model: SparseEncoder, strength: float) -> torch.Tensor:
    queries, documents = ([weights(model, text) for text in texts] for texts in (QUERIES, DOCUMENTS))
    columns = [*DOCUMENT_OF, *NEGATIVES.T.ravel()]
    total = torch.zeros((), dtype=torch.float64)
    for i, query in enumerate(queries):
        own = int(DOCUMENT_OF[i])
        others = [int(n) for j, n in enumerate(columns) if j != i and n >= 0 and n != own]
        scores = SCALE * torch.stack([query @ documents[n] for n in (own, *others)])
        total = total - WEIGHTS[i] * torch.log_softmax(scores, 0)[0]

    # A hard negative that is missing stands at the positive.
    seen = [*DOCUMENT_OF, *np.where(NEGATIVES < 0, DOCUMENT_OF[:, None], NEGATIVES).T.ravel()]
    of_queries = FLOPS_QUERIES * torch.stack(queries).mean(0).square().sum()
    of_documents = FLOPS_DOCUMENTS * torch.stack([documents[int(n)] for n in seen]).mean(0).square().sum()
    return total / WEIGHTS.sum() + strength * (of_queries + of_documents)


@pytest.mark.parametrize("mini_batch", [None, 2])
def test_gradients_are_those_of_the_formula(tmp_path: Path, mini_batch: int | None) -> None:
    model = SparseEncoder(str(tiny_sparse(tmp_path)), device="cpu").double().eval()
    loss = SparseInfoNCE(SCALE)
    loss.begin_step(2, 12)
    assert loss.strength == pytest.approx(0.25)

    reference = written_out(model, loss.strength)
    reference.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    bias = next(name for name in gradients if "predictions" in name and name.endswith("bias"))
    assert gradients[bias].abs().max() > 1e-6

    stores = [tokenise(model, QUERIES, role="query"), tokenise(model, DOCUMENTS)]
    batches = Batches(*stores, DOCUMENT_OF, WEIGHTS, negatives=NEGATIVES)
    value = TransformerEngine(model, batches, loss, mini_batch=mini_batch).backward(ROWS)
    torch.testing.assert_close(value, reference.detach(), rtol=1e-8, atol=1e-11)
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-8, atol=1e-11)


def test_the_penalty_grows_over_a_third_of_the_steps() -> None:
    loss, strengths = SparseInfoNCE(), []
    for step in (0, 10, 20, 30, 89):
        loss.begin_step(step, 90)
        strengths.append(round(loss.strength, 4))
    assert strengths == [0.0, 0.1111, 0.4444, 1.0, 1.0]


def test_a_training_keeps_fewer_words_at_a_higher_weight_of_the_penalty(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    kept = {}
    for name, weight in {"published": None, "high": 10.0}.items():
        job = write_job(
            workspace, name, query_set=query_set, retriever=str(tiny_sparse(tmp_path)), batch_size=8, epochs=3,
            learning_rate=1e-2, document_sparsity=weight, gpus=0,
        )  # fmt: skip
        assert work("cdp.workers.training", job) == 0
        model = SparseEncoder(str(job / "model"), device="cpu")
        kept[name] = float((model.encode_document(DOCUMENTS).to_dense() > 0.01).sum())

    assert kept["high"] < 0.8 * kept["published"]


@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_pooling_at_once_is_that_of_the_library(activation: str, tmp_path: Path) -> None:
    model = SparseEncoder(str(tiny_sparse(tmp_path)), device="cpu").eval()
    model[1].activation_function = activation
    features = model.preprocess(DOCUMENTS)
    expected = model({**features})["sentence_embedding"]
    torch.testing.assert_close(pooled_weights(model, features, "document"), expected)
    model[1].pooling_strategy = "sum"
    torch.testing.assert_close(pooled_weights(model, features, ""), model({**features})["sentence_embedding"])


def test_a_saved_one_is_loaded_here_and_by_the_library(tmp_path: Path) -> None:
    model = SparseEncoder(str(tiny_sparse(tmp_path)), device="cpu")
    torch.nn.init.normal_(model[0].model.cls.predictions.bias)
    assert not spelling.save(model, tmp_path / "saved")
    expected = model.encode_document(DOCUMENTS, convert_to_sparse_tensor=False)
    ours = load(resolve(str(tmp_path / "saved"), Workspace(tmp_path / "workspace")), "cpu")
    assert model_hash(ours) == model_hash(model)
    for loaded in (ours, SparseEncoder(str(tmp_path / "saved"), device="cpu")):
        torch.testing.assert_close(loaded.encode_document(DOCUMENTS, convert_to_sparse_tensor=False), expected)


def test_the_head_starts_at_the_words_of_a_text(tmp_path: Path, workspace: Workspace) -> None:
    resolved = resolve("minilm-sparse", workspace)
    hashes = []
    for _ in range(2):
        model = load(resolved, "cpu", to_train=True)
        hashes.append(model_hash(model))
    assert hashes[0] == hashes[1]  # nothing is drawn at random

    lines = (DEMO / "corpus.jsonl").read_text().splitlines()[:60]
    documents = [json.loads(line)["text"] for line in lines]
    start_head(model, resolved, [tokenise(model, QUERIES, role="query"), tokenise(model, documents), None])
    (weights,) = model.eval().encode_document(["a ship and its hull of wood"], convert_to_sparse_tensor=False)
    assert 3 < int((weights > 0).sum()) < 500
    best = model.tokenizer.convert_ids_to_tokens(weights.topk(8).indices.tolist())
    assert {"ship", "hull", "wood"} & set(best)


def test_frozen_layers_stay_and_the_head_is_trained(tmp_path: Path) -> None:
    model = SparseEncoder(str(tiny_sparse(tmp_path)), device="cpu")
    freeze_below(model, 1)
    transformer = model[0].model
    assert transformer.cls.predictions.bias.requires_grad
    assert transformer.cls.predictions.transform.dense.weight.requires_grad
    assert not transformer.bert.embeddings.word_embeddings.weight.requires_grad
    assert not transformer.bert.encoder.layer[0].output.dense.weight.requires_grad
    assert transformer.bert.encoder.layer[1].output.dense.weight.requires_grad
