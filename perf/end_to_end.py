"""How long is it from an empty workspace to the sentence of Decide on SciFact, command by command?

The commands that a new user types: `demo`, which `make app` runs, documents, benchmark, `decide`. Each is a process of
its own, in a workspace of its own for each repeat, in turns with a process that only imports the libraries they stand
on (DuckDB, pyarrow, pydantic, NumPy): below that no command can be. Opening the dashboard is in `startup`; the test on
one's own data takes minutes by design. Needs ../shared/data.

    python -m perf end_to_end
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cdp.base.workspace import REPOSITORY
from perf.timing import Row, paired, show

SCIFACT = REPOSITORY.parent / "shared" / "data" / "scifact"
REPEATS = 3
LIBRARIES = "import duckdb, numpy, pyarrow.compute, pyarrow.parquet, pydantic"

COMMANDS = {
    "the demo": ["demo"],
    "documents": ["corpus", "add", str(SCIFACT / "corpus.jsonl.gz"), "--name", "scifact"],
    "benchmark": ["benchmarks", "add", str(SCIFACT), "--name", "scifact"],
    "decide": ["decide", "--benchmark", "scifact", "--corpus", "scifact"],
}


def run() -> list[Row]:
    """A row per command in seconds on the wall, and one for all of them; none without the reference data."""
    if not SCIFACT.exists():
        print("not run: needs ../shared/data")
        return []

    taken: dict[str, list[float]] = {name: [] for name in (*COMMANDS, "libraries")}
    _seconds([sys.executable, "-c", LIBRARIES], {})  # from the disk into memory

    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            workspace = {"CDP_WORKSPACE": str(Path(folder) / "workspace")}
            for name, words in COMMANDS.items():
                taken[name].append(_seconds([sys.executable, "-m", "cdp", *words], workspace))
            taken["libraries"].append(_seconds([sys.executable, "-c", LIBRARIES], workspace))

    libraries = taken.pop("libraries")
    rows = [
        paired(f"SciFact from the command line, {name}, importing the libraries", seconds, libraries, target=0.25)
        for name, seconds in taken.items()
    ]

    whole = [sum(seconds) for seconds in zip(*taken.values(), strict=True)]
    every = [len(taken) * seconds for seconds in libraries]
    rows.append(paired("from an empty workspace to the sentence of Decide on SciFact", whole, every, target=0.25))
    show(rows)

    return rows


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=REPOSITORY, env={**os.environ, **environment}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
