"""A tiny static model, and a server of it that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.services.workspace import demo
from cdp.serving.server import Serving
from tests.serving.support import serving
from tests.support_models import tiny_static


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
    with serving(demo_workspace, str(static_model), name="tiny", corpus="demo", max_body_mb=0.5) as made:
        yield made
