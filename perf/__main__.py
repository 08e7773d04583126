"""``python -m perf [name …]``: run the benchmarks, each in a process of its own, and keep what they say.

A benchmark is a module here with ``run() -> list[Row]``; a ratio above 1 means that ours is ahead. What is measured
goes into ``perf/results``, one file per kind of machine, and from there into ``docs/BENCHMARKS.md`` (``make
docs``). One that cannot run here (no browser, no reference data) says so and leaves what was measured before as it is.

Without names all parts that have seconds in ``PARTS`` run, each for so many at most: together less than twenty minutes,
however slow the machine is. A name runs one without a limit.

``--against REV`` compares with a commit instead of a peer and keeps nothing (``perf/against.py``); ``--changed`` does
so for the parts whose rooms differ from REV, by default the commit at which the branch left ``main``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from cdp.base.workspace import write_json
from perf import against
from perf.machine import this_machine
from perf.parts import PARTS, run_part
from perf.report import keep
from perf.timing import Row, show


def main(words: Sequence[str]) -> int:
    """Run the named benchmarks, or those of ``make bench``; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m perf")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--against", metavar="REV", help="compare with a commit, in turns")
    parser.add_argument("--changed", action="store_true", help="the parts whose rooms differ from REV")
    parser.add_argument("--turns", type=int, default=against.TURNS, help="how often each tree runs a part")
    parser.add_argument("--part", nargs=2, metavar=("NAME", "FILE"), help=argparse.SUPPRESS)

    typed = parser.parse_args(words)
    if typed.part:
        name, file = typed.part
        write_json(Path(file), [row for row in importlib.import_module(f"perf.{name}").run() if "ratio" in row])
        return 0

    unknown = [name for name in typed.names if name not in PARTS]
    if unknown:
        print(f"There is no benchmark {unknown[0]}; there are: {', '.join(PARTS)}.", file=sys.stderr)
        return 2

    if typed.against or typed.changed:
        return compare(typed.names, typed.against or against.base(), changed=typed.changed, turns=typed.turns)

    return measure(typed.names)


def measure(names: Sequence[str]) -> int:
    """Run parts against their peers and keep what they say."""
    rows: list[Row] = []
    moved: list[str] = []
    costs: list[str] = []
    problems: list[str] = []
    for name in names or [name for name, part in PARTS.items() if part.limit_s]:
        machine = this_machine(gpu=name == "gpu")
        print(f"\n{name}, on {machine.kind}", flush=True)
        taken = run_part(name, None if names else PARTS[name].limit_s)
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
    listed("What each part took", costs)
    listed("Outside the range that the runs before stated", moved)
    listed("Could not run", problems, sys.stderr)
    return 1 if problems else 0


def compare(names: Sequence[str], revision: str, *, changed: bool, turns: int) -> int:
    """Run parts on this tree and on a commit in turns, and print the ratios; nothing is kept."""
    chosen = [*names, *(against.touched(against.changed_since(revision)) if changed else ())]
    if not chosen:
        print(f"No part measures what differs from {revision}." if changed else "Name a part, or say --changed.")
        return 0 if changed else 2

    rows: list[Row] = []
    problems: list[str] = []
    for name in dict.fromkeys(chosen):
        made, left_out = against.against(name, revision, turns=turns, limit=PARTS[name].limit_s if changed else None)
        rows += made
        problems += left_out

    print(f"\nOurs is this tree, the peer is {revision}; each the median of {turns} turns")
    show(rows)
    listed("Slower than it was", against.slower(rows))
    listed("Could not be compared", problems, sys.stderr)
    return 0 if rows else 1


def listed(title: str, lines: Sequence[str], file: TextIO = sys.stdout) -> None:
    """Print lines under a title; nothing where there are none."""
    if lines:
        print(f"\n{title}:\n  " + "\n  ".join(lines), file=file)


if __name__ == "__main__":
    # As Ctrl-C, which a run in the background ignores: the part at work is ended too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main(sys.argv[1:]))
