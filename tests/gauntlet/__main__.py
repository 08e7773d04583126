"""The whole gauntlet: ``python -m tests.gauntlet``, which is ``make gauntlet``. It takes an hour or so on two cores.

The table is written anew after each query set, so that a run which is cut short leaves what it has seen.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.gauntlet import table
from tests.gauntlet.corpora import collections, query_files, sampled
from tests.gauntlet.stages import Course, Row
from tests.gauntlet.typed import Clock, Terminal
from tests.support import REPOSITORY, SHARED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gauntlet", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="only this collection; repeatable")
    parser.add_argument("--documents-in-a-hundred", type=int, default=100, help="take only so many documents")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "gauntlet", help="workspace and table")
    a = parser.parse_args()
    root = SHARED / "data"
    if not root.is_dir():
        print("gauntlet: ../shared/data is not on this machine: there is nothing to run over", file=sys.stderr)
        return 2
    out = a.out.resolve()
    if out.exists():
        shutil.rmtree(out)
    typed, clock, rows = Terminal(out / "workspace"), Clock(), list[Row]()
    for collection in collections(root):
        if a.only and collection.name not in a.only:
            continue
        if a.documents_in_a_hundred < 100:
            collection = sampled(collection, a.documents_in_a_hundred, out / "sampled")
        print(f"{clock.seconds / 60:5.1f} min  {collection.name}", file=sys.stderr, flush=True)
        for row in Course(typed, collection, out / "exports").rows():
            rows.append(row)
            table.save(out, rows, typed, clock.seconds)
    if not a.only:
        for language, file in query_files(root):
            typed(f"{file.parent.name} queries", "cw", "profile", "--file", str(file), "--language", language)
    typed("workspace", "results", "compare", "--baseline", "static-minilm")
    typed("workspace", "catalog", "rebuild")
    table.save(out, rows, typed, clock.seconds)
    print((out / "table.md").read_text(encoding="utf-8"))
    return 1 if typed.faults or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
