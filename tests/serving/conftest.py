"""A tiny static model, a public server of it that a module's tests share, and workspaces to search."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services import corpora, demo
from cdp.serving import client
from cdp.serving.public import Serving
from tests.serving.support import serving
from tests.support import stop_search
from tests.support_models import tiny_static

AddCorpus = Callable[..., str]


@pytest.fixture(scope="module")
def static_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_static(tmp_path_factory.mktemp("static"))


@pytest.fixture(scope="module")
def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("served") / "workspace")
    demo.load(workspace)
    return workspace


@pytest.fixture(scope="module")
def server(demo_workspace: Workspace, static_model: Path) -> Iterator[Serving]:
    """Embeddings and search by a tiny static model over the demo's documents."""
    with serving(demo_workspace, str(static_model), name="tiny", corpus="demo") as made:
        yield made


@pytest.fixture
def searched(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose search process, if one is started, has ended when the test has."""
    monkeypatch.setenv(client.RUNTIME, str(tmp_path / "run"))
    workspace.root.mkdir()
    yield workspace
    stop_search(workspace)


@pytest.fixture
def add_corpus(workspace: Workspace, tmp_path: Path) -> AddCorpus:
    """Add a corpus of these texts, whose ids are d1, d2 …; its id."""

    def added(texts: Sequence[str], name: str = "mine") -> str:
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts, 1)))
        return corpora.add(workspace, file, name=name).corpus.id

    return added
