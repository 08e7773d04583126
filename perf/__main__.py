"""``python -m perf [name …]``: run the benchmarks, each in a process of its own, and keep what they say.

A benchmark is a module here with ``run() -> list[Row]``; a ratio above 1 means that ours is ahead. What is measured
goes into ``perf/results``, one file per kind of machine, and from there into ``docs/BENCHMARKS.md`` (``make
docs``). One that cannot run here (no browser, no reference data) says so and leaves what was measured before as it is.

Without names the parts of ``PARTS`` run, each for so many seconds at most: together less than twenty minutes, however
slow the machine is. A name runs one without a limit; those of ``ON_REQUEST`` take longer than that.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdp.base.workspace import REPOSITORY, read_json, write_json
from perf.machine import this_machine
from perf.report import keep
from perf.timing import Row, show

# Seconds that each part may take, from its CPU seconds on two cores with room for a slower machine.
PARTS = {
    "content_words": 45,
    "ndcg": 18,
    "self_bleu": 14,
    "search": 115,
    "encoding": 90,
    "reading": 130,
    "pdf": 45,
    "growth": 105,
    "training_throughput": 298,
    "synthesis_rate": 85,
    "warm_query": 95,
    "first_step": 75,
    "startup": 45,
    "end_to_end": 35,
}

LONGEST_S = 1200
ON_REQUEST = ("calibrate_paraphrase", "gpu", "judging", "pages", "search_from_disk", "serving")


@dataclass(frozen=True)
class Taken:
    """What one part gave, and what it cost."""

    rows: list[Row]
    seconds: float
    cpu_seconds: float
    problem: str = ""


def main(names: list[str]) -> int:
    """Run the named benchmarks, or those of ``PARTS``; 1 if one failed."""
    if len(names) == 3 and names[0] == "--part":
        write_json(Path(names[2]), [row for row in importlib.import_module(f"perf.{names[1]}").run() if "ratio" in row])
        return 0
    unknown = [name for name in names if name not in (*PARTS, *ON_REQUEST)]
    if unknown:
        print(f"There is no benchmark {unknown[0]}; there are: {', '.join((*PARTS, *ON_REQUEST))}.", file=sys.stderr)
        return 2
    rows: list[Row] = []
    moved: list[str] = []
    costs: list[str] = []
    problems: list[str] = []
    for name in names or PARTS:
        machine = this_machine(gpu=name == "gpu")
        print(f"\n{name}, on {machine.kind}", flush=True)
        taken = run_part(name, None if names else PARTS[name])
        load = os.getloadavg()[0]
        costs.append(f"{name:22} {taken.seconds:7.0f} s {taken.cpu_seconds:9.0f} CPU s   load {load:.1f}")
        if taken.problem:
            problems.append(f"{name}: {taken.problem}")
        elif taken.rows:
            rows += taken.rows
            cost = {"seconds": taken.seconds, "cpu_seconds": taken.cpu_seconds, "load": load}
            moved += keep(machine, name, taken.rows, **cost)
    print()
    show(rows)
    for title, lines in (
        ("What each part took", costs),
        ("Outside the range that the runs before stated", moved),
        ("Could not run", problems),
    ):
        if lines:
            print(f"\n{title}:\n  " + "\n  ".join(lines), file=sys.stderr if lines is problems else sys.stdout)
    return 1 if problems else 0


def run_part(name: str, limit: float | None, command: Sequence[str] = (sys.executable, "-m", "perf")) -> Taken:
    """Run one part in a process group of its own, which ends with its ``limit`` in seconds at the latest."""
    with tempfile.TemporaryDirectory() as folder:  # what a part that is ended leaves behind goes with it
        path = Path(folder) / "rows.json"
        before, began = _cpu_seconds(), time.perf_counter()
        process = subprocess.Popen(
            [*command, "--part", name, str(path)], cwd=REPOSITORY, start_new_session=True,
            env={**os.environ, "TMPDIR": folder},
        )  # fmt: skip
        problem = ""
        try:
            code = process.wait(limit)
            problem = f"it ended with code {code}; see above" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"not finished in its {limit:.0f} s"
        finally:
            _end(process)
        seconds, cpu = time.perf_counter() - began, _cpu_seconds() - before
        return Taken([] if problem else read_json(path), seconds, cpu, problem)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End processes that the part left running: they are in its process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _cpu_seconds() -> float:
    """Of all children that have ended, with their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    # As Ctrl-C, which a run in the background ignores: the part at work is ended too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main(sys.argv[1:]))
