"""Shards made by a crew are, byte for byte, those that one machine makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ModelError
from cdp.base.workspace import Workspace
from cdp.retrievers import load, model_hash, resolve
from cdp.retrievers.divided import Elsewhere
from cdp.retrievers.encode import EmbeddingStore, Encoding, Stopped
from tests.crews import Backwards
from tests.support_models import tiny_bert

pytestmark = pytest.mark.slow

TEXTS = [f"text number {i} " + "about water and bread " * (i % 7) for i in range(50)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def shards(workspace: Workspace) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(workspace.embeddings.rglob("shard-*.npy"))}


def test_shards_are_those_of_one_machine(folder: Path, tmp_path: Path) -> None:
    here, there = Workspace(tmp_path / "here"), Workspace(tmp_path / "there")
    model = load(resolve(str(folder), here), "cpu", 32)
    encoding = Encoding(model_hash(model), "document", "doc: ", max_length=32)
    alone = EmbeddingStore(here, shard_texts=16).get(lambda: model, TEXTS, encoding, batch_size=4)
    crew, told = Backwards(), []
    store = EmbeddingStore(there, shard_texts=16, makers=Elsewhere.of(crew, there, resolve(str(folder), there), 32))

    def unwanted():
        raise AssertionError("the model was asked for in this process")

    made = store.get(unwanted, TEXTS, encoding, batch_size=4, progress=lambda done, total: told.append((done, total)))
    assert made.reused == alone.reused == 0
    assert shards(there) == shards(here)
    assert len(shards(there)) == 4
    assert told == sorted(told)
    assert told[-1] == (50, 50)
    assert len(crew.parts) == 4
    (there.embeddings / encoding.key_of(TEXTS) / "shard-00002.npy").unlink()
    again = store.get(unwanted, TEXTS, encoding, batch_size=4)
    assert (again.reused, len(crew.parts)) == (34, 5), "only what is missing is made again"
    assert shards(there) == shards(here)


def test_a_stop_leaves_what_is_done(folder: Path, workspace: Workspace) -> None:
    model = load(resolve(str(folder), workspace), "cpu")
    encoding = Encoding(model_hash(model), "document")
    store = EmbeddingStore(workspace, shard_texts=16, makers=Elsewhere(Backwards(), workspace, str(folder)))
    with pytest.raises(Stopped):
        store.get(lambda: model, TEXTS, encoding, should_stop=lambda: len(shards(workspace)) >= 2)
    assert sorted(shards(workspace)) == ["shard-00002.npy", "shard-00003.npy"]


def test_a_node_with_another_model_of_that_name_is_refused(folder: Path, workspace: Workspace) -> None:
    store = EmbeddingStore(workspace, shard_texts=16, makers=Elsewhere(Backwards(), workspace, str(folder)))
    with pytest.raises(ModelError, match="has another model called"):
        store.get(lambda: None, TEXTS, Encoding("0123456789abcdef", "document"))  # type: ignore[arg-type, return-value]
    assert shards(workspace) == {}


def test_a_folder_goes_by_its_whole_path(folder: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    found = resolve(f"./{folder.name}", workspace)
    makers = Elsewhere.of(Backwards(), workspace, found)
    assert makers is not None
    assert makers.retriever == str(folder)
    assert Elsewhere.of(None, workspace, found) is None
