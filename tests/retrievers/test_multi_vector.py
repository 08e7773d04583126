"""A retriever of token vectors is loaded, encoded, kept, searched and evaluated as sentence-transformers does it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from cdp.base.errors import ConfigError, ModelError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import Benchmark, load_benchmark
from cdp.benchmarks.benchmark import texts_hash
from cdp.evaluation.combined import hybrid
from cdp.evaluation.evaluate import evaluate_bm25, evaluate_model, protocol_for
from cdp.retrievers import MULTI_VECTOR, load, model_hash, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding, embed
from tests.benchmarks.folders import write_benchmark
from tests.support_models import tiny_bert, tiny_multi_vector

pytestmark = pytest.mark.slow

TEXTS = [f"text {i} " + "of water and bread " * (i % 5) for i in range(30)]
DOCUMENT = Encoding("m", "document", normalise=False, kind=MULTI_VECTOR)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_multi_vector(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    return load(resolve(str(folder), Workspace(tmp_path_factory.mktemp("none"))), "cpu")


@pytest.fixture
def small(tmp_path: Path) -> Benchmark:
    return load_benchmark(write_benchmark(tmp_path / "small"))


def test_a_folder_tells_its_kind(folder: Path, model, workspace: Workspace) -> None:
    resolved = resolve(str(folder), workspace)
    assert resolved.kind == MULTI_VECTOR
    assert resolved.similarity["paper"] == protocol_for(model, "paper").similarity == "maxsim"
    with pytest.raises(ConfigError, match="is a multi-vector retriever, and a measure of queries needs a dense one"):
        resolved.require(["dense"], "a measure of queries")


def test_token_vectors_are_those_of_the_library(model) -> None:
    found = embed(model, TEXTS, DOCUMENT, batch_size=4)
    expected = model.encode_document(TEXTS, convert_to_numpy=True)
    assert found.parts[0].dtype == np.float16
    for i, vectors in enumerate(expected):
        np.testing.assert_allclose(found.tokens.of(i, i + 1), vectors, atol=1e-3)


def test_they_are_kept_once_and_a_damaged_shard_is_made_again(model, workspace: Workspace) -> None:
    store = EmbeddingStore(workspace, shard_texts=8)
    first = store.get(lambda: model, TEXTS, DOCUMENT)
    assert [len(first), first.reused, len(first.parts)] == [30, 0, 4]
    assert isinstance(first.parts[0], np.memmap)
    before = [first.tokens.of(i, i + 1).copy() for i in range(30)]

    assert store.get(lambda: pytest.fail("the model was asked for"), TEXTS, DOCUMENT).reused == 30

    shards = sorted((store.root / DOCUMENT.key(texts_hash(TEXTS))).glob("*.npy"))
    shards[1].write_bytes(shards[1].read_bytes()[:-10])
    shards[2].write_bytes(shards[2].read_bytes()[:20])
    assert store.missing(DOCUMENT, "", 30) == 30  # of other texts
    again = store.get(lambda: model, TEXTS, DOCUMENT)
    tokens = again.tokens
    assert again.reused == 14
    for i in range(30):
        np.testing.assert_array_equal(tokens.of(i, i + 1), before[i])


def test_keys_of_single_vectors_are_those_of_before_there_were_kinds() -> None:
    assert Encoding("m", "document").key("h") == "16311d9e241f2474fe2753c6"


def test_documents_left_out_for_a_query_are_not_found(model, tmp_path: Path) -> None:
    small = load_benchmark(write_benchmark(tmp_path / "small"))
    everything = evaluate_model(model, small, top_k=3).ranking
    small.excluded[small.query_ids[0]] = (small.document_ids[everything.documents[0, 0]],)
    found = evaluate_model(model, small, top_k=3).ranking
    assert everything.documents[0, 0] not in found.documents[0]
    assert found.documents[0, :2].tolist() == everything.documents[0, 1:].tolist()
    assert found.documents[1:].tolist() == everything.documents[1:].tolist()


def test_it_is_fused_with_bm25(model, small: Benchmark) -> None:
    fused = hybrid(small, evaluate_model(model, small, top_k=10), evaluate_bm25(small, top_k=10))
    assert fused.measures["ndcg@10"] > 0
    assert fused.settings["similarity"] == "maxsim"


def test_what_chooses_the_tokens_is_part_of_the_hash(folder: Path, model, tmp_path: Path) -> None:
    assert model_hash(load(resolve(str(folder), Workspace(tmp_path)), "cpu")) == model_hash(model)
    model[1].skiplist_words, before = [","], model_hash(model)
    assert model_hash(model) != before
    model[1].skiplist_words = []


def test_a_module_from_elsewhere_is_refused(tmp_path: Path, workspace: Workspace) -> None:
    folder = tiny_multi_vector(tmp_path)
    modules = read_json(folder / "modules.json")
    write_json(folder / "modules.json", [modules[0], {**modules[1], "type": "somewhere.MultiVectorMask"}])
    with pytest.raises(ModelError, match="somewhere"):
        resolve(str(folder), workspace)


def as_pylate(folder: Path) -> Path:
    """The folder as PyLate 1 saves it: Transformer and its own projection; prefixes beside the prompts."""
    first, second, *_ = read_json(folder / "modules.json")
    former = {"type": "sentence_transformers.models.Transformer"}
    write_json(folder / "modules.json", [{**first, **former}, {**second, "type": "pylate.models.Dense.Dense"}])
    head = folder / second["path"] / "config.json"
    kept = ("in_features", "out_features", "bias", "activation_function")
    write_json(head, {name: value for name, value in read_json(head).items() if name in kept})
    facts = folder / "config_sentence_transformers.json"
    told = {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 8, "do_query_expansion": False}
    write_json(facts, {**read_json(facts), "model_type": "ColBERT", **told})
    return folder


def as_stanford(folder: Path) -> Path:
    """The folder of a BERT as Stanford's ColBERT saves it: the projection among the encoder's weights."""
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "linear.weight": torch.eye(8, 32)}, folder / "model.safetensors", {"format": "pt"})
    write_json(folder / "config.json", {**read_json(folder / "config.json"), "architectures": ["HF_ColBERT"]})
    write_json(folder / "artifact.metadata", {"query_maxlen": 8, "doc_maxlen": 40, "attend_to_mask_tokens": False})
    return folder


@pytest.mark.parametrize("by", ["pylate", "stanford"])
def test_folders_of_other_programs_are_read_as_they_were_meant(by: str, tmp_path: Path) -> None:
    pylate = by == "pylate"
    folder = as_pylate(tiny_multi_vector(tmp_path, dim=8)) if pylate else as_stanford(tiny_bert(tmp_path / "bert"))
    resolved = resolve(str(folder), Workspace(tmp_path / "workspace"))
    assert resolved.kind == MULTI_VECTOR
    model = load(resolved, "cpu")
    assert [type(module).__name__ for module in model][1:] == ["Dense", "MultiVectorMask", "Normalize"]

    plain, dotted = (embed(model, [text], DOCUMENT).tokens for text in ("tea and water", "tea, and water."))
    assert plain.dim == 8
    assert len(dotted.rows) == len(plain.rows)  # both leave punctuation out
    small = load_benchmark(write_benchmark(tmp_path / "small"))
    assert evaluate_model(model, small, top_k=10).settings["max_tokens"] == (128 if pylate else 40)
