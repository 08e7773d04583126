"""A part of this tree and of another commit, in turns: has the change made it slower?

Each tree runs its own form of the part, in the same environment; the commit's is a git worktree that is removed
afterwards. A row is compared by its name, so one whose question changed is left out and named.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import numpy as np

from cdp.base.statistics import stdtrit
from cdp.base.workspace import REPOSITORY
from perf.parts import PARTS, Part, run_part
from perf.timing import Row, of_ratios

TURNS = 3


def against(name: str, revision: str, *, turns: int = TURNS, limit: float | None = None) -> tuple[list[Row], list[str]]:
    """Run a part on this tree and on ``revision`` in turns; (rows, what could not be compared)."""
    here: list[list[Row]] = []
    there: list[list[Row]] = []
    with worktree(revision) as tree:
        sides = [("this tree", REPOSITORY, here), (revision, tree, there)]
        for turn in range(turns):
            # Who begins alternates: load that grows or falls hits both alike.
            for title, folder, rows in sides if turn % 2 == 0 else sides[::-1]:
                print(f"\n{name}, turn {turn + 1} of {turns}: {title}", flush=True)
                taken = run_part(name, limit, tree=folder)
                if taken.problem:
                    return [], [f"{name} of {title}: {taken.problem}"]
                rows.append(taken.rows)
    return compared(here, there)


def compared(here: Sequence[Sequence[Row]], there: Sequence[Sequence[Row]]) -> tuple[list[Row], list[str]]:
    """Return a row for each name of both sides, and the names that only one side has.

    ``here`` and ``there`` hold the rows of each turn. The ratio of a turn is above 1 where this tree is ahead.
    """
    ours, theirs = ([{row["name"]: row for row in rows} for rows in side] for side in (here, there))
    names = dict.fromkeys(name for turn in (*ours, *theirs) for name in turn)
    both = [name for name in names if all(name in turn for turn in (*ours, *theirs))]
    rows = [_row(name, [turn[name] for turn in ours], [turn[name] for turn in theirs]) for name in both]
    return rows, [f"{name}: not of both" for name in names if name not in both]


def _row(name: str, here: Sequence[Row], there: Sequence[Row]) -> Row:
    """Return the row of one name from its row of each turn."""
    unit = here[0]["unit"]
    mine, old = [row["ours"] for row in here], [row["ours"] for row in there]
    # Rates and scores are better when higher; seconds and MiB when lower.
    higher_is_better = unit.endswith("/s") or unit.startswith("NDCG")
    ratios = [a / b if higher_is_better else b / a for a, b in zip(mine, old, strict=True)]
    sides = {"ours": statistics.median(mine), "peer": statistics.median(old)}
    return {"name": name, **sides, "unit": unit, "target": 1.0, **of_ratios(ratios)}


def slower(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each row whose ratio is below 1 beyond chance: the 95% interval of its mean ends there.

    The interval is Student's t over the logarithms of the turns' ratios; one turn says nothing about chance.
    """
    found = []
    for row in rows:
        logs = np.log(row["ratios"])
        if len(logs) < 2:
            continue
        half = float(stdtrit(len(logs) - 1, 0.975)) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
        low, high = math.exp(logs.mean() - half), math.exp(logs.mean() + half)
        if high < 1:
            found.append(f"{row['name']}: {math.exp(logs.mean()):.2f} (95% interval {low:.2f} to {high:.2f})")
    return found


def touched(paths: Iterable[str], parts: dict[str, Part] = PARTS) -> list[str]:
    """Return the parts of ``make bench`` whose rooms, or whose own file, are among these paths of the repository."""
    changed = set()
    for path in map(PurePosixPath, paths):
        inside = len(path.parts) > 1 and path.parts[0] in ("cdp", "perf")
        changed.add(path.parts[1].removesuffix(".py") if inside else path.parts[0].removesuffix(".py"))
    # A screen is the dashboard's as much as what it draws with.
    rooms = changed | ({"ui"} if changed & {"app", "pages"} else set())
    return [name for name, part in parts.items() if part.limit_s and ({name} | {*part.rooms}) & rooms]


def changed_since(revision: str) -> list[str]:
    """Return the files that differ from ``revision`` in the working tree."""
    return git("diff", "--name-only", revision).splitlines()


def base() -> str:
    """Return the commit at which this branch left ``main``."""
    return git("merge-base", "main", "HEAD")


@contextmanager
def worktree(revision: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own, compiled, with the reference data beside it, and remove it after."""
    with tempfile.TemporaryDirectory(prefix="cdp-perf-") as name:
        folder = Path(name)
        tree, shared = folder / "tree", REPOSITORY.parent / "shared"
        if shared.is_dir():
            (folder / "shared").symlink_to(shared)
        git("worktree", "add", "--detach", str(tree), revision)
        try:
            # Else the first turn would pay for it, and a start measures nothing else.
            subprocess.run([sys.executable, "-m", "compileall", "-q", "cdp", "perf"], cwd=tree, check=False)
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def git(*words: str) -> str:
    """Return what git says about this repository. SystemExit with its own sentence where it refuses."""
    # Within a hook git's own variables name another repository or index.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"git {words[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip()
