"""Embeddings are those of the model, kept in shards, computed once, and continued where they were interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp.base.errors import ConfigError
from cdp.base.worker import Stopped
from cdp.base.workspace import Workspace
from cdp.benchmarks.benchmark import texts_hash
from cdp.evaluation.evaluate import length_of, protocol_for
from cdp.retrievers import load, resolve
from cdp.retrievers.encode import EmbeddingStore, Encoding, encode, unit_length
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow

TEXTS = [f"text number {i} " + "about water and bread " * (i % 7) for i in range(50)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    return load(resolve("static-minilm", Workspace(tmp_path_factory.mktemp("none"))), "cpu")


def test_embeddings_come_in_the_order_of_the_texts(model) -> None:
    found = encode(model, TEXTS, Encoding("m", "document", normalise=False), batch_size=3)
    np.testing.assert_allclose(found, model.encode(TEXTS), atol=1e-6)


def test_the_prompt_stands_before_each_text(model) -> None:
    found = encode(model, ["water"], Encoding("m", "query", prompt="Find: ", normalise=False))
    np.testing.assert_allclose(found, model.encode(["Find: water"]), atol=1e-6)


def test_cosine_scales_to_length_one_and_leaves_zeros(model) -> None:
    found = encode(model, ["water", ""], Encoding("m", "document"))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1.0, 0.0], atol=1e-6)
    np.testing.assert_array_equal(unit_length(np.zeros((2, 3), np.float32)), 0)


def test_half_precision_is_stored_as_such(model) -> None:
    exact = encode(model, TEXTS, Encoding("m", "document"))
    half = encode(model, TEXTS, Encoding("m", "document", precision="fp16"))
    assert half.dtype == np.float16
    assert np.abs(half.astype(np.float32) - exact).max() < 2e-3


def test_nothing_is_computed_twice(model, workspace: Workspace) -> None:
    store, encoding = EmbeddingStore(workspace, shard_texts=16), Encoding("m", "document")
    first = store.get(lambda: model, TEXTS, encoding)
    assert first.reused == 0
    assert [len(part) for part in first.parts] == [16, 16, 16, 2]

    def unwanted():
        raise AssertionError("the model was asked for")

    again = store.get(unwanted, TEXTS, encoding)
    assert again.reused == 50
    np.testing.assert_array_equal(np.concatenate(again.parts), np.concatenate(first.parts))


def test_an_interrupted_run_continues_with_the_first_missing_shard(model, workspace: Workspace) -> None:
    store, encoding = EmbeddingStore(workspace, shard_texts=16), Encoding("m", "document")
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        if done >= 32:
            raise Stopped

    with pytest.raises(Stopped):
        store.get(lambda: model, TEXTS, encoding, progress=progress)
    assert seen == [(0, 50), (16, 50), (32, 50)]
    folder = store.root / encoding.key(texts_hash(TEXTS))
    assert sorted(p.name for p in folder.glob("*.npy")) == ["shard-00000.npy", "shard-00001.npy"]
    found = store.get(lambda: model, TEXTS, encoding)
    assert found.reused == 32
    np.testing.assert_array_equal(np.concatenate(found.parts), encode(model, TEXTS, encoding))


def test_a_torn_shard_is_computed_again(model, workspace: Workspace) -> None:
    store, encoding = EmbeddingStore(workspace, shard_texts=16), Encoding("m", "document")
    first = np.concatenate(store.get(lambda: model, TEXTS, encoding).parts)
    path = store.root / encoding.key(texts_hash(TEXTS)) / "shard-00001.npy"
    path.write_bytes(path.read_bytes()[:100])
    again = store.get(lambda: model, TEXTS, encoding)
    assert again.reused == 34
    np.testing.assert_array_equal(np.concatenate(again.parts), first)


def test_the_key_follows_everything_that_changes_an_embedding() -> None:
    base = Encoding("m", "document")
    others = [
        Encoding("other", "document"),
        Encoding("m", "query"),
        Encoding("m", "document", prompt="p: "),
        Encoding("m", "document", normalise=False),
        Encoding("m", "document", max_length=64),
        Encoding("m", "document", precision="fp16"),
    ]
    keys = {encoding.key(texts_hash(TEXTS)) for encoding in [base, *others]} | {base.key(texts_hash(TEXTS[:-1]))}
    assert len(keys) == 8


def test_protocols_differ_in_similarity(model) -> None:
    model.similarity_fn_name = "dot"
    try:
        assert protocol_for(model, "published").similarity == "dot"
        assert protocol_for(model, "paper").similarity == "cosine"
        model.similarity_fn_name = "euclidean"
        with pytest.raises(ConfigError, match="euclidean"):
            protocol_for(model, "published")
    finally:
        model.similarity_fn_name = "cosine"
    with pytest.raises(ConfigError, match="not a protocol"):
        protocol_for(model, "mine")


def test_nothing_lies_outside_the_embeddings_folder(model, workspace: Workspace) -> None:
    EmbeddingStore(workspace).get(lambda: model, TEXTS[:3], Encoding("m", "document"))
    assert [path.name for path in workspace.root.iterdir()] == ["embeddings"]
    (folder,) = workspace.embeddings.iterdir()
    assert sorted(path.name for path in Path(folder).iterdir()) == ["manifest.json", "shard-00000.npy"]


def test_a_tokenizer_without_a_length_cuts_nothing(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_retriever(tmp_path)), device="cpu")
    assert length_of(model) == 128
    model.tokenizer.model_max_length = int(1e30)  # as Transformers has it for a T5 whose folder names none
    assert length_of(model) is None
