"""``python -m perf [name …]``: run the benchmarks, print one table, write ``results/latest.json``.

A benchmark is a module here with ``run() -> list[Row]``; a ratio above 1 means that ours is ahead. One that cannot run
on this machine (no browser, no reference data) says so and is left out of the table.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from cdp.base.workspace import write_json
from perf.timing import Row, show

RESULTS = Path(__file__).parent / "results" / "latest.json"
NOT_BENCHMARKS = ("__main__", "timing", "large_workspace")


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all; 1 if one failed."""
    known = [
        info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]) if info.name not in NOT_BENCHMARKS
    ]
    rows: list[Row] = []
    failed = 0
    for name in names or known:
        module = importlib.import_module(f"perf.{name}")
        if not hasattr(module, "run"):
            continue
        print(f"\n{name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        try:
            rows += [row for row in module.run() if "ratio" in row]
        except Exception as error:
            failed = 1
            print(f"{name} could not run: {type(error).__name__}: {error}", file=sys.stderr)
    print()
    show(rows)
    if not names:
        write_json(RESULTS, rows)
    return failed


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
