"""What does a test of minilm take, in processor time and memory, beside the commit before its upper layers?

The plan of the test on one's own data at a size that ends in minutes: the demo's 96 documents, different queries, three
trainings of 5 steps of 64. Steps and documents stand to each other about as in a test of 90 steps that searches 2,000
documents. Both trees take the same steps, on one thread, in turns; the process of the study is measured from its start.
Its start, what is not trained and the states of the lower layers weigh six times as much as among 18 trainings, so a
second row is what one more training takes: the time from the end of the first to the end of the last, by their number.

    python -m perf minilm_test
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from cdp.base.workspace import REPOSITORY
from perf.against import worktree
from perf.timing import Row, paired

BEFORE = "954b0ec5"
TURNS = 2

PLAN = """
benchmarks: [demo:test]
corpus: [demo]
generator: recorded
methods: [diverse]
per_doc: [1, 5]
design: documents and pairs
max_documents: 96
retrievers: [minilm]
seeds: [0]
steps: 5
bm25: yes
hybrid: yes
protocol: paper
"""
# What a test has now: the upper layers alone, and each option fused with BM25.
OURS = f"{PLAN}trained_layers: 2\nfusion: yes\n"

LOOK_S = 0.05


def run() -> list[Row]:
    """Rows of the whole process, one training's share, and anonymous memory at most; the peer is the commit before."""
    taken: dict[str, list[tuple[float, float, float]]] = {"ours": [], "peer": []}
    with worktree(BEFORE) as tree:
        sides = {"ours": (REPOSITORY, OURS), "peer": (tree, PLAN)}
        for turn in range(TURNS):
            for side in sides if turn % 2 == 0 else reversed(sides):
                taken[side].append(measured(*sides[side]))
                print(side, *(round(value, 1) for value in taken[side][-1]), flush=True)

    names = (
        "a test of minilm, CPU",
        "a test of minilm, CPU of one more training",
        "a test of minilm, anonymous memory",
    )

    rows = []
    for number, (name, goal) in enumerate(zip(names, (4.0, 4.0, 1 / 1.2), strict=True)):
        ours, peer = ([turn[number] for turn in taken[side]] for side in ("ours", "peer"))
        unit = "MiB" if number == 2 else "CPU s"
        rows.append(paired(f"{name}, {BEFORE}", ours, peer, target=goal) | {"unit": unit})
    return rows


def measured(tree: Path, plan: str) -> tuple[float, float, float]:
    """Return a tree's study in processor seconds, those of one more training, and its anonymous MiB at most."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CDP_WORKSPACE": folder, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tree)}

        file = Path(folder) / "plan.yaml"
        file.write_text(plan, encoding="utf-8")
        for words in (["demo"], ["study", "run", str(file)]):
            subprocess.run(
                [sys.executable, "-m", "cdp", *words], cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=True
            )
        (job,) = Path(folder).glob("jobs/study-*")
        return _watched(job)


def _watched(job: Path) -> tuple[float, float, float]:
    """Follow a study's process to its end."""
    tick, pid = os.sysconf("SC_CLK_TCK"), 0
    seconds = most = 0.0
    ends: list[float] = []  # processor seconds at the end of each training, of which it writes a line
    while True:
        status = json.loads((job / "status.json").read_text())
        pid = status.get("worker_pid") or pid
        with suppress(OSError):  # it has not begun, or has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            seconds = max(seconds, sum(map(int, fields[11:15])) / tick)
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            most = max([most, *(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))])
            done = len((job / "metrics.jsonl").read_text().splitlines())
            ends += [seconds] * (done - len(ends))

        if status["phase"] == "ended":
            if status["outcome"] != "finished":
                raise SystemExit(f"The study is {status['outcome']}: {status['message']}")
            return seconds, (ends[-1] - ends[0]) / (len(ends) - 1), most
        time.sleep(LOOK_S)


if __name__ == "__main__":
    from perf.timing import show

    show(run())
