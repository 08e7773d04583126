"""Workspaces to search, and the end of every search process that a test started."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cdp.base.errors import CdpError
from cdp.base.workspace import Workspace
from cdp.searching import wire
from cdp.services import corpora
from cdp.services.search import process

AddCorpus = Callable[..., str]


@pytest.fixture
def searched(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose search process, if one is started, has ended when the test has."""
    monkeypatch.setenv(wire.RUNTIME, str(tmp_path / "run"))
    workspace.root.mkdir()
    yield workspace
    with suppress(CdpError):
        process.stop(workspace)


@pytest.fixture
def add_corpus(workspace: Workspace, tmp_path: Path) -> AddCorpus:
    """Add a corpus of these texts, whose ids are d1, d2 …; its id."""

    def added(texts: Sequence[str], name: str = "mine") -> str:
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts, 1)))
        return corpora.add(workspace, file, name=name).corpus.id

    return added
