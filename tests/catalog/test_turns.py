"""Many at once: readers that never pause do not keep a writer out."""

from __future__ import annotations

import threading
import time

import pytest

from cdp import catalog
from cdp.base.workspace import Workspace
from cdp.catalog import connection
from tests.catalog.support import add_evaluation

pytestmark = pytest.mark.slow


def test_a_writer_gets_in_between_readers_that_overlap_without_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WAIT_S", 20)
    add_evaluation(workspace, "evaluate-1", "a")
    catalog.ingest(workspace)
    over = threading.Event()
    reads = [0, 0]
    inside = [threading.Event(), threading.Event()]

    def read(me: int) -> None:
        """Each stays inside until the other is inside too: somebody holds the lock at any moment, unless one waits."""
        while not over.is_set():
            with connection.reading(workspace):
                inside[me].set()
                last = time.monotonic() + 1.0
                while not inside[1 - me].is_set() and time.monotonic() < last and not over.is_set():
                    time.sleep(0.005)
                time.sleep(0.1)
                inside[me].clear()
                reads[me] += 1

    readers = [threading.Thread(target=read, args=(me,), daemon=True) for me in (0, 1)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(3):
            with connection.writing(workspace) as opened:
                opened.execute("INSERT INTO notes VALUES ('now', 'written')")
    finally:
        over.set()
        for reader in readers:
            reader.join(timeout=60)
    assert min(reads) > 0
    assert catalog.query(workspace, "SELECT count(*) FROM notes").rows == [(3,)]
