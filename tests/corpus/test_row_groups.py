"""Row groups are stored by a thread while the next rows are read: a full disk ends the import, one that is stopped
leaves no thread, and rows stay in order."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from cdp.base.workspace import sha256_text
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.documents import ROW_GROUP_ROWS
from tests.corpus.files import reasons


@pytest.mark.slow
def test_a_disk_that_refuses_ends_the_import(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    given, scratch = tmp_path / "d.jsonl", tmp_path / "scratch"
    rows = [{"_id": f"d{n}", "text": sha256_text(str(n)) * 4} for n in range(3 * ROW_GROUP_ROWS)]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            read_documents(given, scratch=scratch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(scratch.iterdir())


@pytest.mark.slow
def test_an_import_that_is_stopped_leaves_no_thread_and_no_file(tmp_path: Path) -> None:
    given, scratch = tmp_path / "given", tmp_path / "scratch"
    given.mkdir()
    line = '{"_id": "%d", "text": "A text."}\n'
    (given / "1.jsonl").write_text("".join(line % n for n in range(ROW_GROUP_ROWS + 1)), encoding="utf-8")
    (given / "2.jsonl").write_text(line % -1, encoding="utf-8")

    def stop(name: str, done: int, total: int) -> None:
        if done > total / 2 and name == "2.jsonl":
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        read_documents(given, scratch=scratch, watch=stop)
    assert threading.active_count() == before
    assert not list(scratch.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(passages=100)], ids=["columns", "rows"])
def test_rows_of_several_groups_stay_in_order(tmp_path: Path, options: ReadOptions) -> None:
    n = 3 * ROW_GROUP_ROWS + 5
    rows = [{"_id": f"d{i}", "text": f"Text {i}."} for i in range(n)]
    rows.insert(ROW_GROUP_ROWS + 3, {"_id": "d7", "text": "Text 7."})
    rows.insert(3 * ROW_GROUP_ROWS, {"_id": "d9", "text": "Another."})
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with read_documents(tmp_path / "d.jsonl", options) as result:
        assert [document.id for document in result.documents] == [f"d{i}" for i in range(n)]
        assert reasons(result) == [(ROW_GROUP_ROWS + 4, "duplicate id"), (3 * ROW_GROUP_ROWS + 1, "duplicate id")]
        assert [rejected.reason for rejected in result.rejected] == [
            "the same document stands on line 8", "another document has this id on line 10",
        ]  # fmt: skip
