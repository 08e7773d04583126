"""Training over MaxSim: gradients are those of the formula written out text by text in float64, in every engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder

from cdp.base.workspace import Workspace, read_json
from cdp.retrievers import load, model_hash, resolve, spelling
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.heads import principal_directions, project_tokens
from cdp.training.infonce import MaxSimInfoNCE
from cdp.training.lower_layers import freeze_below
from cdp.training.tokens import tokenise
from tests.support_models import tiny_multi_vector

pytestmark = pytest.mark.slow

QUERIES = ["what is tea", "why do ships float", "snow", "who made ink, and of what", "tea again"]
DOCUMENTS = ["tea leaves and water", "a ship and its hull of wood", "snow", "soot and gum", "a railway line", "an owl"]
DOCUMENT_OF = np.array([0, 1, 2, 3, 0])  # the first and the last are no negatives of each other
NEGATIVES = np.array([[4, 5], [5, 4], [4, -1], [-1, -1], [2, 5]])
WEIGHTS = np.array([1.0, 6.0, 2.0, 0.5, 3.0])
TEACHER = np.array([[2.0, 1, -1], [0.5, 0.1, 0.2], [3, 1, np.nan], [np.nan] * 3, [1, 2, 0]])
SCALE, DISTIL = 1.5, 0.3
ROWS = np.arange(5)


def maxsim(query: torch.Tensor, document: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([q @ d for d in document]).max() for q in query]).sum()


def vectors(model: MultiVectorEncoder, text: str, task: str) -> torch.Tensor:
    """The token vectors of one text alone: nothing is padded."""
    output = model(model.preprocess([text], task=task), task=task)
    return output["token_embeddings"][0]


def written_out(model: MultiVectorEncoder) -> torch.Tensor:
    """The weighted mean of InfoNCE, part of it replaced by the KL divergence from the teacher's choice."""
    queries = [vectors(model, text, "query") for text in QUERIES]
    documents = [vectors(model, text, "document") for text in DOCUMENTS]
    columns = [*DOCUMENT_OF, *NEGATIVES.T.ravel()]
    total = torch.zeros((), dtype=torch.float64)

    for i, query in enumerate(queries):
        own = int(DOCUMENT_OF[i])
        others = [int(n) for j, n in enumerate(columns) if j != i and n >= 0 and n != own]
        scores = SCALE * torch.stack([maxsim(query, documents[n]) for n in (own, *others)])
        loss = -torch.log_softmax(scores, 0)[0]

        taught = [(own, TEACHER[i, 0]), *zip(NEGATIVES[i].tolist(), TEACHER[i, 1:], strict=True)]
        taught = [(n, label) for n, label in taught if not np.isnan(label)]
        if len(taught) > 1:
            wanted = torch.log_softmax(torch.tensor([label for _, label in taught], dtype=torch.float64), 0)
            given = torch.log_softmax(SCALE * torch.stack([maxsim(query, documents[n]) for n, _ in taught]), 0)
            loss = (1 - DISTIL) * loss + DISTIL * (wanted.exp() * (wanted - given)).sum()
        total = total + WEIGHTS[i] * loss

    return total / WEIGHTS.sum()


@pytest.mark.parametrize("mini_batch", [None, 2])
def test_gradients_are_those_of_the_formula(tmp_path: Path, mini_batch: int | None) -> None:
    model = MultiVectorEncoder(str(tiny_multi_vector(tmp_path)), device="cpu")
    project_tokens(model, torch.nn.init.orthogonal_(torch.empty(8, 32)))
    model = model.double().eval()
    reference = written_out(model)
    reference.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    assert gradients["1.linear.weight"].abs().max() > 1e-3

    stores = [tokenise(model, QUERIES, role="query"), tokenise(model, DOCUMENTS)]
    batches = Batches(*stores, DOCUMENT_OF, WEIGHTS, negatives=NEGATIVES, teacher=TEACHER)
    loss = MaxSimInfoNCE(SCALE, distil=DISTIL)
    value = TransformerEngine(model, batches, loss, mini_batch=mini_batch).backward(ROWS)
    torch.testing.assert_close(value, reference.detach(), rtol=1e-8, atol=1e-11)
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-8, atol=1e-11)


def test_a_saved_one_is_loaded_here_and_by_the_library(tmp_path: Path) -> None:
    model = MultiVectorEncoder(str(tiny_multi_vector(tmp_path)), device="cpu")
    project_tokens(model, torch.nn.init.orthogonal_(torch.empty(8, 32)))
    assert not spelling.save(model, tmp_path / "saved")  # no version before 6 has such modules
    # As PyLate 1 writes it (its ColBERT reads these names), and nothing that it does by default to texts.
    types = [module["type"] for module in read_json(tmp_path / "saved" / "modules.json")]
    assert types == ["sentence_transformers.models.Transformer", "pylate.models.Dense.Dense"]
    usage = read_json(tmp_path / "saved" / "config_sentence_transformers.json")
    told = [usage[name] for name in ("query_prefix", "document_prefix", "skiplist_words", "do_query_expansion")]
    assert told == ["", "", [], False]
    expected = model.encode_document(DOCUMENTS, convert_to_numpy=True)

    ours = load(resolve(str(tmp_path / "saved"), Workspace(tmp_path / "workspace")), "cpu")
    assert model_hash(ours) == model_hash(model)
    for loaded in (ours, MultiVectorEncoder(str(tmp_path / "saved"), device="cpu")):
        for found, wanted in zip(loaded.encode_document(DOCUMENTS, convert_to_numpy=True), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_frozen_layers_stay_and_the_projection_is_trained(tmp_path: Path) -> None:
    model = MultiVectorEncoder(str(tiny_multi_vector(tmp_path)), device="cpu")
    project_tokens(model, torch.nn.init.orthogonal_(torch.empty(8, 32)))
    freeze_below(model, 1)
    assert model[1].linear.weight.requires_grad
    assert not model.transformers_model.encoder.layer[0].output.dense.weight.requires_grad
    assert model.transformers_model.encoder.layer[1].output.dense.weight.requires_grad


def test_the_projection_keeps_what_lies_in_its_directions(tmp_path: Path) -> None:
    model = MultiVectorEncoder(str(tiny_multi_vector(tmp_path)), device="cpu")
    random = torch.Generator().manual_seed(0)
    states = torch.randn(500, 8, generator=random) @ torch.randn(8, 32, generator=random)
    directions = principal_directions(states, 8)
    torch.testing.assert_close(directions @ directions.T, torch.eye(8), rtol=0, atol=1e-5)
    kept = states @ directions.T
    torch.testing.assert_close(kept @ kept.T, states @ states.T, rtol=1e-3, atol=1e-3)
    assert torch.equal(directions, principal_directions(states, 8))

    project_tokens(model, directions)
    assert model.encode_document(["tea"])[0].shape[1] == 8
