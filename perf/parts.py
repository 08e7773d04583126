"""The benchmarks: which rooms of ``cdp/`` each measures, how long it may take, and running one in its own process."""

from __future__ import annotations

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

from cdp.base.workspace import REPOSITORY, read_json
from perf.timing import Row


@dataclass(frozen=True)
class Part:
    """The rooms that a benchmark measures, and its seconds in ``make bench``; without these it runs on request."""

    rooms: tuple[str, ...]
    limit_s: float | None = None


# Seconds are from the CPU seconds on two cores, with room for a slower machine.
PARTS = {
    "content_words": Part(("complexity",), 45),
    "ndcg": Part(("evaluation",), 18),
    "self_bleu": Part(("metrics",), 14),
    "search": Part(("evaluation", "retrievers"), 115),
    "encoding": Part(("evaluation", "retrievers"), 90),
    "reading": Part(("corpus",), 130),
    "pdf": Part(("corpus",), 45),
    "growth": Part(("complexity", "corpus", "evaluation", "metrics", "retrievers", "synthesis", "training"), 105),
    "training_throughput": Part(("training", "retrievers"), 298),
    "synthesis_rate": Part(("llm", "query_sets", "synthesis", "workers"), 85),
    "warm_query": Part(("retrievers", "services", "serving"), 95),
    "first_step": Part(("jobs", "services", "training", "workers"), 75),
    "startup": Part(("base", "services", "ui"), 45),
    "end_to_end": Part(("base", "benchmarks", "catalog", "cli", "principle", "results", "services"), 35),
    "calibrate_paraphrase": Part(("metrics",)),
    "fast_plaid": Part(("retrievers",)),
    "gpu": Part(("evaluation", "retrievers", "synthesis", "training")),
    "judging": Part(("evaluation",)),
    "late_interaction": Part(("retrievers",)),
    "late_interaction_peers": Part(("retrievers",)),
    "minilm_test": Part(("studies", "training", "evaluation")),
    "pages": Part(("charts", "services", "ui")),
    "promise": Part(("studies", "training", "evaluation")),
    "search_from_disk": Part(("evaluation", "retrievers")),
    "serving": Part(("retrievers", "serving")),
}

LONGEST_S = 1200


@dataclass(frozen=True)
class Taken:
    """What one part gave, and what it cost."""

    rows: list[Row]
    seconds: float
    cpu_seconds: float
    problem: str = ""


def run_part(
    name: str, limit: float | None, command: Sequence[str] = (sys.executable, "-m", "perf"), tree: Path = REPOSITORY
) -> Taken:
    """Run one part of a tree in a process group of its own, which ends after ``limit`` seconds at the latest."""
    with tempfile.TemporaryDirectory() as folder:  # what a part that is ended leaves behind goes with it
        path = Path(folder) / "rows.json"
        before, began = _cpu_seconds(), time.perf_counter()
        process = subprocess.Popen(
            [*command, "--part", name, str(path)], cwd=tree, start_new_session=True,
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
