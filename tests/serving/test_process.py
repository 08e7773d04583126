"""The search process: one per workspace, started when it is needed, gone when it is not, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdp.base.locks import is_held
from cdp.base.workspace import Workspace
from cdp.services import search
from cdp.serving import client, dashboard, engine
from tests.faults.support import kill
from tests.jobs.support import until
from tests.serving.conftest import AddCorpus
from tests.support import search_processes, stop_search

pytestmark = pytest.mark.slow

TEXTS = ["Bees find their way by the sun.", "A lighthouse guides ships.", "Sugar is made from beets."]


def ids(searched: search.Searched) -> list[list[str]]:
    return [[hit.id for hit in answer.hits] for answer in searched.answers]


def pid_of(workspace: Workspace) -> int:
    [process] = search_processes(workspace)
    return int(process.pid)


def nothing_left(workspace: Workspace) -> bool:
    address = client._address(workspace)
    return not search_processes(workspace) and not address.exists() and not is_held(address.with_suffix(".lock"))


def begin(workspace: Workspace) -> int:
    """Start the process without loading what a search takes; its pid."""
    client._ensure_listening(workspace, client._address(workspace))
    return pid_of(workspace)


def test_ten_at_once_replace_a_process_killed_while_it_works_by_one_and_each_gets_its_answer(
    searched: Workspace, add_corpus: AddCorpus
) -> None:
    corpus = add_corpus(TEXTS)
    first = begin(searched)
    os.kill(first, signal.SIGSTOP)  # from here on it answers nobody: the queries are on their way when it dies
    with ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(search.search, searched, q, ["bm25"], corpus) for q in ["bees", "ships"] * 5]
        threading.Event().wait(0.3)
        assert not any(a.done() for a in asked)
        kill([first])
        assert [ids(a.result()) for a in asked] == [[["d1"]], [["d2"]]] * 5
    assert pid_of(searched) != first
    address = client._address(searched)
    refused_and_goes_on(searched, address)
    assert is_held(address.with_suffix(".lock"))
    assert stat.S_IMODE(address.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(address.parent.stat().st_mode) == 0o700
    assert stop_search(searched)
    until(lambda: nothing_left(searched), "the socket that the killed process left to be gone with the next one's")
    assert not stop_search(searched)


@pytest.mark.parametrize("why", ["idle", "no workspace"])
def test_it_ends_when_nobody_asks_and_with_its_workspace(
    searched: Workspace, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """The program of the process in a thread of this one."""
    if why == "idle":
        monkeypatch.setattr(engine, "IDLE_S", 0.6)
    monkeypatch.setattr(dashboard, "private_files", lambda: None)
    address = client._address(searched)
    thread = threading.Thread(target=dashboard.main, args=(str(searched.root), str(address)))
    thread.start()
    until(lambda: client._listens(address), "it to listen")
    if why == "no workspace":
        assert dashboard.main(str(searched.root), str(address)) == client.ALREADY, "one serves a workspace"
        assert client._listens(address)
    if why == "no workspace":
        shutil.rmtree(searched.root)
    thread.join(20)
    assert not thread.is_alive()
    assert nothing_left(searched)


def refused_and_goes_on(searched: Workspace, address: Path) -> None:
    """Requests that are none get a refusal, or nothing."""
    head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    bodies = (b"[]", b'{"k": 3}', b"\xff\xfe", b"[" * 100_000, b"x" * ((1 << 20) + 10))
    for sent in (b"\n", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"", *(head % len(b) + b for b in bodies)):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(address))
            answer = b""
            try:
                connection.sendall(sent)
                connection.shutdown(1)
                while part := connection.recv(1 << 16):
                    answer += part
            except OSError:
                continue  # it hung up in the middle, as it may
            assert not answer or answer.startswith(b"HTTP/1.1 4"), answer[:100]


def test_a_folder_that_others_may_open_is_not_used(
    searched: Workspace, add_corpus: AddCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = add_corpus(TEXTS)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for name in ("open", "link"):
        monkeypatch.setenv(client.RUNTIME, str(tmp_path / name))
        answer = search.search(searched, "bees", ["bm25"], corpus).answers[0]
        assert answer.problem is not None
        assert "private folder" in answer.problem.message
    assert search_processes(searched) == []
