"""A sparse retriever is loaded, encoded, kept, searched and evaluated as sentence-transformers does it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import ConfigError, ModelError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import Benchmark, load_benchmark
from cdp.evaluation.evaluate import evaluate_model, protocol_for
from cdp.retrievers import SPARSE, load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding, embed
from cdp.retrievers.inverted_lists import inverted_lists, search_words
from cdp.retrievers.late_interaction import TokenVectors
from cdp.workers.evaluation import named
from tests.benchmarks.folders import write_benchmark
from tests.support_models import tiny_sparse

pytestmark = pytest.mark.slow

TEXTS = [f"text {i} " + "of water and bread " * (i % 5) for i in range(30)]
DOCUMENT = Encoding("m", "document", normalise=False, kind=SPARSE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_sparse(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    return load(resolve(str(folder), Workspace(tmp_path_factory.mktemp("none"))), "cpu")


@pytest.fixture
def small(tmp_path: Path) -> Benchmark:
    return load_benchmark(write_benchmark(tmp_path / "small"))


def dense(pairs: np.ndarray, lengths: np.ndarray, words: int) -> np.ndarray:
    found = np.zeros((len(lengths), words))
    found[np.repeat(np.arange(len(lengths)), lengths), pairs[:, 0].astype(int)] = pairs[:, 1]
    return found


def test_a_folder_tells_its_kind(folder: Path, model, workspace: Workspace) -> None:
    resolved = resolve(str(folder), workspace)
    assert resolved.kind == SPARSE
    assert resolved.similarity["paper"] == protocol_for(model, "paper").similarity == "dot"
    assert not protocol_for(model).normalise


def test_weights_are_those_of_the_library(model) -> None:
    found = embed(model, TEXTS, DOCUMENT, batch_size=4)
    expected = model.encode_document(TEXTS, convert_to_sparse_tensor=False).numpy()
    assert 0 < len(found.parts[0]) < expected.size
    np.testing.assert_allclose(dense(found.parts[0], found.lengths, expected.shape[1]), expected, atol=1e-6)


def test_they_are_kept_once(model, workspace: Workspace) -> None:
    store = EmbeddingStore(workspace, shard_texts=8)
    first = store.get(lambda: model, TEXTS, DOCUMENT)
    assert [len(first), first.reused, len(first.parts)] == [30, 0, 4]
    again = store.get(lambda: pytest.fail("the model was asked for"), TEXTS, DOCUMENT)
    assert again.reused == 30
    np.testing.assert_array_equal(np.concatenate(again.parts), np.concatenate(first.parts))


@pytest.mark.parametrize("block", [3, 4096])
def test_search_equals_the_dense_product(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdp.retrievers.inverted_lists.DOCUMENTS_AT_ONCE", block)
    monkeypatch.setattr("cdp.retrievers.inverted_lists.QUERIES_AT_ONCE", 2)
    random = np.random.default_rng(0)
    sides = [np.round(random.random((n, 40)) * (random.random((n, 40)) < 0.1), 2) for n in (5, 50)]
    sides[1][7] = sides[1][3]  # of equal ones the first comes first
    sides[1][9] = 0  # a text without words is not found
    texts = []
    for side in sides:
        text, word = np.nonzero(side)
        texts.append(TokenVectors(np.stack([word, side[text, word]], 1).astype(np.float32), (side > 0).sum(1)))

    scores, numbers = search_words(texts[0], inverted_lists(texts[1]), 12)
    exact = (sides[0].astype(np.float32).astype(float) @ sides[1].astype(np.float32).astype(float).T).astype(np.float32)
    for row, wanted in enumerate(exact):
        order = [i for i in np.argsort(-wanted, kind="stable")[:12].tolist() if wanted[i] > 0]
        assert numbers[row, : len(order)].tolist() == order
        assert (numbers[row, len(order) :] == -1).all()
        np.testing.assert_array_equal(scores[row, : len(order)], wanted[order])


def test_documents_left_out_for_a_query_are_not_found(model, small: Benchmark) -> None:
    everything = evaluate_model(model, small, top_k=3).ranking
    small.excluded[small.query_ids[0]] = (small.document_ids[everything.documents[0, 0]],)
    found = evaluate_model(model, small, top_k=3).ranking
    assert everything.documents[0, 0] not in found.documents[0]
    assert found.documents[0, :2].tolist() == everything.documents[0, 1:].tolist()


def test_how_words_are_pooled_is_part_of_the_hash(folder: Path, model, tmp_path: Path) -> None:
    assert model_hash(load(resolve(str(folder), Workspace(tmp_path)), "cpu")) == model_hash(model)
    model[1].pooling_strategy, before = "sum", model_hash(model)
    assert model_hash(model) != before
    model[1].pooling_strategy = "max"


def test_folders_of_version_5_are_read_and_others_refused(tmp_path: Path, workspace: Workspace) -> None:
    folder = tiny_sparse(tmp_path)
    modules = read_json(folder / "modules.json")
    former = "sentence_transformers.sparse_encoder.models"
    types = [f"{former}.MLMTransformer", f"{former}.SpladePooling"]
    write_json(folder / "modules.json", [{**m, "type": kind} for m, kind in zip(modules, types, strict=True)])
    assert resolve(str(folder), workspace).kind == SPARSE

    write_json(folder / "modules.json", [modules[0], {**modules[1], "type": "somewhere.SpladePooling"}])
    with pytest.raises(ModelError, match="somewhere"):
        resolve(str(folder), workspace)
    (folder / "1_Idf").mkdir()
    write_json(folder / "1_Idf" / "config.json", {"path": "/elsewhere/idf.json"})
    kind = "sentence_transformers.sparse_encoder.modules.SparseStaticEmbedding"
    module = {**modules[1], "path": "1_Idf", "type": kind}
    write_json(folder / "modules.json", [modules[0], module])
    with pytest.raises(ModelError, match="its weights are in another file"):
        resolve(str(folder), workspace)


def test_the_preset_is_there_for_trainings_alone(workspace: Workspace) -> None:
    resolved = resolve("minilm-sparse", workspace)
    with pytest.raises(ConfigError, match="finds nothing before it is trained"):
        load(resolved, "cpu")
    with pytest.raises(ConfigError, match="finds nothing before it is trained"):
        named(workspace, "minilm-sparse", ())
