"""``python -m tests.never_run FILE``: lines of ``cdp/`` that no test runs, per room, from coverage.py's JSON.

Made by ``make coverage``. A process that is killed, or that gets an environment of its own (the one that reads hostile
files), records nothing: what only it runs counts as never run.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any


def by_room(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of the rooms, the one with the most lines never run first, and their sum."""
    lines, never = Counter[str](), Counter[str]()
    for path, measured in files.items():
        room = PurePosixPath(path).parts[1].removesuffix(".py")
        lines[room] += measured["summary"]["num_statements"]
        never[room] += measured["summary"]["missing_lines"]

    rows = sorted(lines, key=lambda room: (-never[room], room))
    table = [(room, lines[room], never[room]) for room in rows] + [("all", lines.total(), never.total())]
    shown = [f"{room:<14} {n:>7,} {missing:>10,} {missing / max(1, n):>7.1%}" for room, n, missing in table]
    return "\n".join([f"{'room':<14} {'lines':>7} {'never run':>10}", *shown])


if __name__ == "__main__":
    print(by_room(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]))
