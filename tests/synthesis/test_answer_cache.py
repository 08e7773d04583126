"""The answer cache: what no longer is an answer is taken out when it is read, and asked for anew."""

from __future__ import annotations

import sqlite3

import pytest

from cdp.base.errors import WorkspaceError
from cdp.base.worker import NODE_VARIABLE
from cdp.base.workspace import Workspace
from cdp.llm.answers import Answer, Usage
from cdp.llm.cache import AnswerCache
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, ChatServer
from tests.synthesis.test_run import settings

KEY_OF_IT = "a" * 64
ROWS = {
    "torn": '{"text": "What',
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "no text": '{"model": "m", "finish_reason": "stop"}',
    "text null": '{"text": null, "model": "m", "finish_reason": "stop"}',
    "text number": '{"text": 7, "model": "m", "finish_reason": "stop"}',
    "model null": '{"text": "x", "model": null, "finish_reason": "stop"}',
    "half a character": '{"text": "x \\ud83d", "model": "m", "finish_reason": "stop"}',
    "half a character in the model": '{"text": "x", "model": "\\udc00", "finish_reason": "stop"}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_that_is_no_answer_is_taken_out(workspace: Workspace, row: str) -> None:
    with AnswerCache(workspace) as cache:
        with sqlite3.connect(cache.path) as database:
            database.execute("INSERT INTO answers VALUES (?, 'then', ?)", (KEY_OF_IT, ROWS[row]))
        database.close()
        assert cache.get(KEY_OF_IT) is None
        assert len(cache) == 0
        asked = Answer("x", usage=Usage(1, 1, 1))
        assert cache.get_or_ask(KEY_OF_IT, lambda: asked) == asked
        assert cache.get(KEY_OF_IT) == Answer("x")


@pytest.mark.slow
def test_a_damaged_answer_is_asked_for_anew_and_no_other(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker, workspace: Workspace
) -> None:
    """Before, the answer below failed its document at every resume and left the manifest open."""
    corpus = make_corpus(4)
    SynthesisRun(make_job(**settings(server, corpus.id)), api_key=KEY).execute()
    with sqlite3.connect(workspace.llm_cache / "answers.sqlite") as database:
        (first,) = database.execute("SELECT min(key) FROM answers").fetchone()
        database.execute("UPDATE answers SET answer = ? WHERE key = ?", (ROWS["half a character"], first))
    database.close()
    result = SynthesisRun(make_job(**settings(server, corpus.id)), api_key=KEY).execute()
    assert (result["n_documents"], result["failures"], result["complete"]) == (4, 0, True)
    assert result["usage"]["requests"] == 1
    assert len(server.bodies) == 5


def test_half_a_character_is_kept_as_a_question_mark(workspace: Workspace) -> None:
    half = Answer("half \ud83d", usage=Usage(5, 5, 1))
    with AnswerCache(workspace) as cache:
        cache.begin("job", KEY_OF_IT, Usage())
        cache.settle("job", KEY_OF_IT, half.usage, {KEY_OF_IT: half})
        kept = cache.get(KEY_OF_IT)
        assert kept is not None
        assert kept.text == "half ?"
        assert cache.spent("job") == half.usage
        assert cache.settle_interrupted("job", charged=True) == 0


def test_a_file_that_is_no_database_says_what_to_do(workspace: Workspace) -> None:
    workspace.llm_cache.mkdir(parents=True)
    (workspace.llm_cache / "answers.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(WorkspaceError, match=r"cannot be opened.*can be moved away"):
        AnswerCache(workspace)


def mode_of(cache: AnswerCache) -> str:
    with sqlite3.connect(cache.path) as database:
        (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    database.close()
    return str(mode)


def test_once_a_node_has_used_it_no_process_needs_shared_memory(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnswerCache(workspace) as cache:
        cache.put(KEY_OF_IT, Answer("x"))
        assert mode_of(cache) == "wal"
    monkeypatch.setenv(NODE_VARIABLE, "0.1.0")
    with AnswerCache(workspace) as cache:
        assert mode_of(cache) == "delete"
        monkeypatch.delenv(NODE_VARIABLE)
        with AnswerCache(workspace) as beside:
            assert mode_of(beside) == "delete"
            assert beside.get(KEY_OF_IT) == Answer("x")
            beside.put("b" * 64, Answer("y"))
        assert cache.get("b" * 64) == Answer("y")


def test_a_node_waits_for_nobody_who_uses_it_with_shared_memory(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdp.llm.cache.BUSY_TIMEOUT_S", 0.1)
    with AnswerCache(workspace) as cache:
        cache.put(KEY_OF_IT, Answer("x"))
        with monkeypatch.context() as there:
            there.setenv(NODE_VARIABLE, "0.1.0")
            with pytest.raises(WorkspaceError, match="Resume this job when that one has ended"):
                AnswerCache(workspace)
        with AnswerCache(workspace) as beside:  # on the machine that has the memory
            assert beside.get(KEY_OF_IT) == Answer("x")
    with AnswerCache(workspace) as cache:
        assert mode_of(cache) == "delete"
