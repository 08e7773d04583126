"""Models with modules of their own for queries or documents are trained as they are used: each text by its role's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from sentence_transformers.base.modules import Dense, Router
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

from cdp.base.errors import ModelError
from cdp.base.workspace import Workspace
from cdp.retrievers import load, resolve
from cdp.retrievers.load import kind_of
from cdp.training.engine import Batches, TransformerEngine
from cdp.training.forward import forward
from cdp.training.infonce import WeightedInfoNCE
from cdp.training.loop import add_lora
from cdp.training.lower_layers import LowerLayers, freeze_below
from cdp.training.tokens import tokenise
from tests.support_models import tiny_retriever, tiny_sparse, tiny_static
from tests.training.test_engine import DOCUMENT_OF, DOCUMENTS, QUERIES, ROWS, WEIGHTS

pytestmark = pytest.mark.slow


def encoder(folder: Path, seed: int = 0) -> SentenceTransformer:
    return SentenceTransformer(str(tiny_retriever(folder / f"encoder-{seed}", seed=seed)), device="cpu")


def by_projection(folder: Path) -> Any:
    router = Router.for_query_document([Dense(32, 8)], [Dense(32, 8)])
    return SentenceTransformer(modules=[*encoder(folder), router], device="cpu")


def by_transformer(folder: Path) -> Any:
    router = Router.for_query_document([*encoder(folder)], [*encoder(folder, seed=1)])
    return SentenceTransformer(modules=[router], device="cpu")


def queries_by_table(folder: Path) -> Any:
    table = SentenceTransformer(str(tiny_static(folder / "table", dimension=32)), device="cpu")
    return SentenceTransformer(modules=[Router.for_query_document([*table], [*encoder(folder)])], device="cpu")


def table_and_projection(folder: Path) -> Any:
    table = SentenceTransformer(str(tiny_static(folder / "table", dimension=32)), device="cpu")
    return SentenceTransformer(modules=[*table, Dense(32, 8)], device="cpu")


def inference_free(folder: Path) -> Any:
    sparse = SparseEncoder(str(tiny_sparse(folder / "sparse")), device="cpu")
    weights = torch.rand(len(sparse.tokenizer), generator=torch.Generator().manual_seed(0))
    words = SparseStaticEmbedding(tokenizer=sparse.tokenizer, weight=weights)
    return SparseEncoder(modules=[Router.for_query_document([words], [*sparse])], device="cpu")


MODELS = [by_projection, by_transformer, queries_by_table, table_and_projection, inference_free]


@pytest.fixture(params=MODELS, ids=lambda make: make.__name__)
def model(request: pytest.FixtureRequest, tmp_path: Path, workspace: Workspace) -> Any:
    saved = tmp_path / "saved"
    request.param(tmp_path).save(str(saved), create_model_card=False)
    return load(resolve(str(saved), workspace), "cpu")


def test_training_reads_texts_as_the_library_does(model: Any) -> None:
    options = {"convert_to_sparse_tensor": False} if kind_of(model) == "sparse" else {"convert_to_numpy": True}
    for role, embed in (("query", model.encode_query), ("document", model.encode_document)):
        store = tokenise(model, DOCUMENTS, "", role=role)
        found = forward(model, kind_of(model), store.features(np.arange(len(DOCUMENTS))), store.role)
        assert found.requires_grad
        expected = torch.as_tensor(np.asarray(embed(DOCUMENTS, **options)))
        torch.testing.assert_close(found.detach(), expected, rtol=1e-5, atol=1e-5)


def test_modules_of_both_roles_are_trained(model: Any) -> None:
    if kind_of(model) == "sparse":
        pytest.skip("its loss is another")
    queries, documents = tokenise(model, QUERIES, role="query"), tokenise(model, DOCUMENTS)
    batches = Batches(queries, documents, DOCUMENT_OF, WEIGHTS)
    TransformerEngine(model, batches, WeightedInfoNCE(20.0), mini_batch=3).backward(ROWS)
    untouched = [name for name, p in model.named_parameters() if p.grad is None and "pooler" not in name]
    assert not untouched


def test_layers_are_frozen_where_it_is_clear_which(tmp_path: Path) -> None:
    assert not LowerLayers.fits(by_projection(tmp_path / "one"))
    with pytest.raises(ModelError, match="two transformers"):
        freeze_below(by_transformer(tmp_path / "two"), 1)
    with pytest.raises(ModelError, match="begins with a transformer"):
        add_lora(by_transformer(tmp_path / "two"), 2)


def test_a_mean_over_layers_needs_the_frozen_ones(tmp_path: Path) -> None:
    transformer, pooling = encoder(tmp_path)
    transformer.model.config.output_hidden_states = True
    mean = WeightedLayerPooling(32, num_hidden_layers=2, layer_start=1)
    model = SentenceTransformer(modules=[transformer, mean, pooling], device="cpu")
    assert not LowerLayers.fits(model)
    assert LowerLayers.fits(encoder(tmp_path / "plain"))
