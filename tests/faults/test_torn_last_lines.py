"""A crash in the midst of writing a line: the lines before it count, and later lines are not glued to the torn one."""

from __future__ import annotations

from pathlib import Path

from cdp.base.workspace import append_jsonl, read_jsonl

RECORDS = [{"step": n, "text": "ünï\ncode"} for n in range(3)]


def test_torn_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    append_jsonl(path, RECORDS)
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for cut in range(last, len(whole) + 1):
        path.write_bytes(whole[:cut])
        kept = RECORDS if cut == len(whole) else RECORDS[:2]
        assert list(read_jsonl(path)) == kept
        append_jsonl(path, [{"step": "after"}])
        complete = RECORDS if cut >= len(whole) - 1 else RECORDS[:2]
        assert list(read_jsonl(path)) == [*complete, {"step": "after"}]
