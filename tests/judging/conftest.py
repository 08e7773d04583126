"""Fixtures of the judging tests: a small corpus with queries, and a server that grades as it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.config import JudgeConfig
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest
from tests.judging.made import corpus_of
from tests.synthesis.conftest import _no_keys, _short_backoff, server
from tests.synthesis.server import KEY, MODEL, ChatServer, marked

__all__ = ["_no_keys", "_short_backoff", "server"]

ANIMALS = ("heron", "otter", "badger", "lynx", "marten", "beaver", "stoat", "crane", "viper", "newt", "toad", "shrew")


def passage(animal: str, number: int) -> str:
    return f"The {animal} of valley {number} sleeps in reeds. It hunts at night near water number {number}."


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> CorpusManifest:
    """Three passages about each of twelve animals."""
    texts = {f"{animal}-{number}": passage(animal, number) for animal in ANIMALS for number in range(3)}
    return corpus_of(workspace, tmp_path, "animals", texts)


@pytest.fixture
def log(workspace: Workspace) -> Path:
    """A log with one query about each animal, one of them twice, where a submitter would have saved it."""
    path = workspace.root / "log.txt"
    lines = [f"where does the {animal} sleep" for animal in ANIMALS] + [f"Where does the {ANIMALS[0]} sleep?"]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def by_animal(prompt: str, _: int) -> str:
    """Grade 3 where the passage is about the query's animal, else 0."""
    asked = next(animal for animal in ANIMALS if animal in marked(prompt, "query"))
    same = f"The {asked} " in marked(prompt, "passage")
    return json.dumps({"reason": "It names the animal." if same else "Another animal.", "grade": 3 if same else 0})


@pytest.fixture
def judge(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """The server as a judge that knows the animals, with its key in the environment."""
    monkeypatch.setenv("CDP_BASE_URL", server.url)
    monkeypatch.setenv("CDP_API_KEY", KEY)
    server.answer = by_animal
    return server


def settings(corpus: CorpusManifest, queries: object, **more: object) -> JudgeConfig:
    """The settings of a judging job at the test server."""
    values = {"corpus": corpus.id, "queries": str(queries), "model": MODEL, "name": "animals-judged", "depth": 5}
    return JudgeConfig.from_dict({**values, **more})
