"""Fixtures of the synthesis tests: a chat server, a small corpus, and jobs as the submitter writes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdp.base.worker import Job
from cdp.base.workspace import Workspace, new_id, write_json
from cdp.corpus import CorpusManifest, read_documents, store
from tests.synthesis.server import ChatServer, chat_server

CorpusMaker = Callable[..., CorpusManifest]
JobMaker = Callable[..., Job]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CDP_API_KEY", "OPENAI_API_KEY", "CDP_BASE_URL", "OPENAI_BASE_URL", "CDP_SUPERVISOR_PID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)


@pytest.fixture
def make_corpus(workspace: Workspace, tmp_path: Path) -> CorpusMaker:
    """A corpus of ``n`` documents d0, d1, … or of given (id, title, text) rows."""

    def make(n: int = 6, rows: list[tuple[str, str, str]] | None = None, name: str = "small") -> CorpusManifest:
        if rows is None:
            rows = [
                (
                    f"d{i}",
                    f"Thing{i}",
                    f"Thing{i} is device number {i}. It works because wheel {i} turns. Nobody sells it.",
                )
                for i in range(n)
            ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text(
            "".join(json.dumps({"_id": a, "title": b, "text": c}, ensure_ascii=False) + "\n" for a, b, c in rows),
            encoding="utf-8",
        )
        with read_documents(path) as result:
            return store(result, name, workspace)

    return make


@pytest.fixture
def make_job(workspace: Workspace) -> JobMaker:
    """A job folder with its spec; pass the SynthesisConfig fields."""

    def make(**config: object) -> Job:
        job_id = new_id("synthesis")
        folder = workspace.job(job_id)
        write_json(folder / "spec.json", {"id": job_id, "kind": "synthesis", "config": config})
        return Job(folder)

    return make
