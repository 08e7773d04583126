"""Answers that were paid for, kept in ``llm_cache/answers.sqlite`` so that they are never paid for twice.

An answer is addressed by the document's content, the rendered prompt, the model and the parameters. SQLite (in WAL
mode) holds one small row per answer: each is on disk before the next is asked for, a killed process loses none that
had arrived, and a million answers need no memory and no million files.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cdp.errors import WorkspaceError
from cdp.synthesis.generators.base import Answer, Usage
from cdp.workspace import Workspace, now, sha256_text

BUSY_TIMEOUT_S = 30.0


def cache_key(content_hash: str, prompt: str, model: str, parameters: Mapping[str, object]) -> str:
    """The address of an answer: 64 hex digits."""
    return sha256_text(content_hash, sha256_text(prompt), model, json.dumps(parameters, sort_keys=True, default=str))


class AnswerCache:
    """Safe to share between the threads of a run and between processes."""

    def __init__(self, workspace: Workspace) -> None:
        self.path: Path = workspace.llm_cache / "answers.sqlite"
        self._lock = threading.Lock()
        self._in_flight: dict[str, threading.Event] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, check_same_thread=False, isolation_level=None
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, created TEXT, answer TEXT) WITHOUT ROWID"
            )
        except (OSError, sqlite3.Error) as error:
            raise WorkspaceError(f"The answer cache {self.path} cannot be opened: {error}.") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM answers").fetchone()[0])

    def get(self, key: str) -> Answer | None:
        """The kept answer, with nothing paid for it (its usage is zero)."""
        with self._lock:
            row = self._connection.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        kept: dict[str, Any] = json.loads(row[0])
        return Answer(text=kept["text"], model=kept["model"], finish_reason=kept["finish_reason"], usage=Usage())

    def put(self, key: str, answer: Answer) -> None:
        kept = {"text": answer.text, "model": answer.model, "finish_reason": answer.finish_reason}
        value = json.dumps({**kept, "usage": answer.usage.to_dict()}, ensure_ascii=False)
        try:
            with self._lock:
                self._connection.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, now(), value))
        except sqlite3.Error as error:
            raise WorkspaceError(f"An answer could not be kept in {self.path}: {error}.") from error

    def get_or_ask(self, key: str, ask: Callable[[], Answer]) -> Answer:
        """The kept answer, or what ``ask`` gives; two threads with the same key ask once."""
        while True:
            with self._lock:
                other = self._in_flight.get(key)
                if other is None:
                    self._in_flight[key] = mine = threading.Event()
            if other is not None:
                other.wait()
                continue
            try:
                answer = self.get(key)
                if answer is None:
                    answer = ask()
                    self.put(key, answer)
                return answer
            finally:
                with self._lock:
                    del self._in_flight[key]
                mine.set()
