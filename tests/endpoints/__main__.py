"""All counterparts: ``python -m tests.endpoints``, which is ``make endpoints``.

What could not be installed is skipped, and said. Exit code 1: this program did something wrong at one of them, or
docs/how-to/endpoint.md says something else than was seen (``--document`` writes it there); 2: none could be installed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path

from tests.endpoints import counterparts, course, probes, table
from tests.endpoints.counterparts import COUNTERPARTS, Counterpart
from tests.endpoints.table import Column
from tests.support import REPOSITORY


def tried(counterpart: Counterpart, environments: Path, out: Path) -> Column:
    """Install and start one counterpart, ask it plainly, and take this program through it."""
    column = Column(counterpart)
    environment = environments / counterpart.name
    try:
        counterparts.install(counterpart, environment)
    except counterparts.NotInstalledError as error:
        column.skipped = str(error)
        return column
    folder = out / counterpart.name
    try:
        with counterparts.started(counterpart, environment, folder) as server:
            column.cells = probes.tried(server)
            came = course.gone_through(server, folder)
    except Exception as error:
        column.faults.append(f"{type(error).__name__}: {error}")
        return column
    column.cells |= came.cells
    column.faults += came.faults
    column.notes = [*came.notes, *came.reasons, f"{came.seconds:.0f} s"]
    return column


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endpoints", description=__doc__)
    names = [counterpart.name for counterpart in COUNTERPARTS]
    parser.add_argument("--only", action="append", default=[], choices=names, help="only this one; repeatable")
    parser.add_argument("--document", action="store_true", help="write the table into docs/how-to/endpoint.md")
    parser.add_argument(
        "--out", type=Path, default=REPOSITORY / "build" / "endpoints" / "runs", help="workspaces, logs"
    )
    a = parser.parse_args()
    out, began = a.out.resolve(), time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    columns = list[Column]()
    for counterpart in COUNTERPARTS:
        if a.only and counterpart.name not in a.only:
            continue
        print(f"{(time.monotonic() - began) / 60:5.1f} min  {counterpart.name}", file=sys.stderr, flush=True)
        columns.append(tried(counterpart, REPOSITORY / "build" / "endpoints", out))
        text = table.write(columns, out, (time.monotonic() - began) / 60)
    print(text)
    if all(column.skipped for column in columns):
        return 2
    if a.document:
        table.document(columns)
    different = table.differences([column for column in columns if not column.faults])
    print("".join(f"docs/how-to/endpoint.md: {line}\n" for line in different), end="")
    return 1 if different or any(column.faults for column in columns) else 0


if __name__ == "__main__":
    sys.exit(main())
