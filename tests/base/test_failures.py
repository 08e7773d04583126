"""One item that fails does not end a run; what concerns the run does, and so do twenty items in a row."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError, ModelError, RepeatedFailureError, WorkspaceError
from cdp.base.failures import FILE, LONGEST_TEXT, Failures, Streak, failed_items, lost
from cdp.base.workspace import append_jsonl, read_jsonl


def test_a_failure_is_written_with_the_item_its_text_and_the_traceback_and_the_rest_goes_on(tmp_path: Path) -> None:
    failures = Failures(tmp_path / FILE, "measuring")
    done = []
    for name, text in (("a", "one two"), ("b", ", three"), ("c", "four")):
        with failures.item(name, text, position=len(done)) as attempt:
            done.append({"one": 1, "four": 4}[text.split()[0]])
        assert attempt.failed == (name == "b")
    failures.close()
    assert done == [1, 4]
    (line,) = read_jsonl(tmp_path / FILE)
    assert (line["id"], line["document_id"], line["text"], line["position"]) == ("b", "b", ", three", 1)
    assert line["reason"].startswith("KeyError: ','")
    assert "Traceback" in line["traceback"]
    assert "test_failures.py" in line["traceback"]
    assert (failures.n, failures.n_done) == (1, 2)


def test_an_error_of_our_own_needs_no_traceback_and_a_long_text_is_an_excerpt(tmp_path: Path) -> None:
    failures = Failures(tmp_path / FILE, unit="query")
    failures.record("q", InputError("This is no query.", hint="Write one."), "x" * 10_000)
    (line,) = read_jsonl(tmp_path / FILE)
    assert line["reason"] == "This is no query. Write one."
    assert "traceback" not in line
    assert "document_id" not in line
    assert (len(line["text"]), line["text_length"]) == (LONGEST_TEXT, 10_000)


def test_a_text_that_utf8_cannot_hold_can_still_be_recorded(tmp_path: Path) -> None:
    failures = Failures(tmp_path / FILE)
    failures.record("id \udc80", ValueError("bad \ud800"), "text \udfff\x00")
    (line,) = read_jsonl(tmp_path / FILE)
    assert (line["id"], line["text"]) == ("id \\udc80", "text \\udfff\\x00")
    (tmp_path / FILE).read_bytes().decode("utf-8")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EMFILE, "Too many open files"),
        ConnectionResetError("reset"),
        WorkspaceError("The disk is full."),
        ConfigError("No such language."),
        ModelError("No such model."),
        RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
        KeyboardInterrupt(),
        SystemExit(1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_concerns_the_run_ends_it(tmp_path: Path, error: BaseException) -> None:
    failures = Failures(tmp_path / FILE)
    with pytest.raises(type(error)) as raised, failures.item("a"):
        raise error
    assert raised.value is error
    assert not (tmp_path / FILE).exists()


def test_twenty_in_a_row_end_the_run_with_the_last_cause(tmp_path: Path) -> None:
    failures = Failures(tmp_path / FILE)
    for number in range(19):
        failures.record(f"d{number}", IndexError("gone"))
    failures.done()
    for number in range(19):
        failures.record(f"e{number}", IndexError("gone"))
    with pytest.raises(RepeatedFailureError, match=r"20 documents in a row failed; the last was document e19: ") as end:
        failures.record("e19", IndexError("gone"))
    assert end.value.kind == "bug"
    assert len(list(read_jsonl(tmp_path / FILE))) == 39


def test_a_run_in_which_nothing_went_well_does_not_pass_as_done() -> None:
    failures = Failures()
    failures.record("a", ValueError("no"))
    with pytest.raises(RepeatedFailureError, match="Every document failed"):
        failures.close()
    Failures().close()


def test_a_new_attempt_drops_what_the_last_one_left_of_the_same_stage(tmp_path: Path) -> None:
    path = tmp_path / FILE
    Failures(path, "reading").record("a", ValueError("no"))
    Failures(path, "measuring").record("b", ValueError("no"))
    Failures(path, "measuring", keep=True)
    assert [line["id"] for line in read_jsonl(path)] == ["a", "b"]
    Failures(path, "measuring")
    assert [line["id"] for line in read_jsonl(path)] == ["a"]


def test_the_summary_counts_by_unit_and_leaves_out_documents_that_kept_some_queries(tmp_path: Path) -> None:
    path = tmp_path / FILE
    append_jsonl(path, [{"document_id": "a", "reason": "Only 2 of 5 queries.", "kept": 2}])
    Failures(path, "generating").record("b", ValueError("no"))
    pairs = Failures(path, "scoring", unit="pair")
    pairs.record("c", ValueError("no"))
    pairs.record("d", ValueError("no"))
    told = failed_items(path)
    assert (told.n, told.words) == (3, "1 document and 2 pairs failed")
    assert [line["id"] for line in lost(read_jsonl(path))] == ["b", "c", "d"]
    assert failed_items().words == ""


def test_a_streak_is_at_its_limit_until_a_success_ends_it() -> None:
    streak = Streak(limit=3)
    assert [streak.add() for _ in range(4)] == [False, False, True, True]

    streak.end()
    assert (streak.n, streak.add()) == (0, False)


def test_a_folder_of_another_account_and_a_full_disk_have_their_own_way_out() -> None:
    denied = WorkspaceError.refused(Path("ws"), "made", PermissionError(errno.EACCES, "Permission denied"))
    full = WorkspaceError.refused(Path("ws"), "made", OSError(errno.ENOSPC, "No space left on device"))
    assert "CDP_WORKSPACE" in denied.hint
    assert full.hint == "Is the disk full or read-only?"
