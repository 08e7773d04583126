"""The frame of ``make bench``: which machine, how long at most, what is kept."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from cdp.base.workspace import read_json
from perf import report, sizes
from perf.__main__ import LONGEST_S, ON_REQUEST, PARTS, run_part
from perf.machine import Machine, of_cpuinfo
from perf.timing import Row, paired
from tests.jobs.support import lives, until
from tests.support import REPOSITORY, in_background

ZEN_3 = "model name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: fpu sse avx avx2 sha_ni\n"
ZEN_4 = "model name\t: AMD EPYC\nflags\t\t: fpu avx2 avx512f avx512_bf16\n"
XEON = "model name\t: Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz\nflags\t: avx2 avx512f avx512_bf16 amx_tile\n"
# Of a range of 95 %, where runs differ so much more than their repeats.
LEAST_COVERAGE = {0.0: 0.94, 0.5: 0.93, 1.0: 0.85}

ARM = "processor\t: 0\nFeatures\t: fp asimd\n"


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        (ZEN_3, "amd-epyc-7763-avx2-2-cores"),
        (ZEN_4, "amd-epyc-avx512-bf16-2-cores"),
        (XEON, "intel-xeon-platinum-8488c-amx-2-cores"),
    ],
)
def test_a_kind_of_machine_is_its_processor_its_vectors_and_its_cores(info: str, kind: str) -> None:
    assert Machine(*of_cpuinfo(info), 2, 24).kind == kind


def test_a_processor_without_a_name_still_has_a_kind() -> None:
    assert Machine(*of_cpuinfo(ARM), 4, 8).kind.endswith("neon-4-cores")


def test_a_card_makes_a_kind_of_its_own() -> None:
    assert Machine("AMD EPYC", "avx2", 16, 128, "NVIDIA H200").kind == "amd-epyc-avx2-16-cores-nvidia-h200"


def test_the_parts_of_make_bench_end_in_twenty_minutes_together() -> None:
    assert sum(PARTS.values()) < LONGEST_S


def test_every_benchmark_is_run_or_run_on_request() -> None:
    files = {path.stem for path in (REPOSITORY / "perf").glob("*.py") if "\ndef run(" in path.read_text("utf-8")}
    assert files == {*PARTS, *ON_REQUEST}
    assert not set(PARTS) & set(ON_REQUEST)


@pytest.mark.slow
def test_a_part_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script, started = tmp_path / "part.py", tmp_path / "started"
    script.write_text(
        "import os, pathlib, subprocess, sys, time\n"
        f"child = subprocess.Popen(['sleep', '600'])\npathlib.Path({str(started)!r}).write_text(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    taken = run_part("endless", 2.0, (sys.executable, str(script)))
    assert taken.rows == []
    assert taken.problem == "not finished in its 2 s"
    if started.exists():  # on a very busy machine the part may not have come so far
        child = int(started.read_text())
        while Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
            time.sleep(0.01)


@pytest.mark.slow
def test_a_part_ends_with_the_benchmarks_that_started_it() -> None:
    """Also where they ignore Ctrl-C: SIGTERM ends them, with a part that is in a process group of its own."""
    command = in_background(sys.executable, "-m", "perf", "judging")
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        (part,) = until(lambda: psutil.Process(process.pid).children(), "the part to start")
        until(lambda: part.cpu_times().user > 0.1, "the part to be at work")
    finally:
        process.terminate()
        process.wait(60)
    assert not lives(part.pid)


def test_a_part_that_fails_says_so_and_keeps_what_was_there(tmp_path: Path) -> None:
    script = tmp_path / "part.py"
    script.write_text("raise SystemExit(3)\n")
    assert run_part("broken", None, (sys.executable, str(script))).problem == "it ended with code 3; see above"


def test_a_row_states_the_spread_of_its_pairs() -> None:
    row = paired("a, b", [1.0, 2.0, 4.0], [2.0, 2.0, 12.0], target=1.0)
    assert (row["ours"], row["peer"], row["ratio"], row["spread"]) == (2.0, 2.0, 2.0, [1.0, 3.0])
    assert paired("a, b", [1.0], [2.0], target=1.0)["spread"] is None


def test_another_run_is_held_against_the_range_that_those_before_it_stated(tmp_path: Path) -> None:
    machine = Machine("AMD EPYC", "avx2", 2, 24)
    cost = {"seconds": 1.0, "cpu_seconds": 2.0, "load": 0.5, "folder": tmp_path}

    def run(steady: list[float], moved: list[float]) -> list[str]:
        rows = [paired(name, [1.0] * len(of), of, target=1.0) for name, of in (("steady", steady), ("moved", moved))]
        return report.keep(machine, "part", rows, **cost)  # type: ignore[arg-type]

    def rows() -> list[Row]:
        found: list[Row] = read_json(tmp_path / "amd-epyc-avx2-2-cores.json")["parts"]["part"]["rows"]
        return found

    assert run([2.0, 2.5, 3.0], [2.0, 2.5, 3.0]) == []
    assert rows()[0]["stated"] is None
    assert run([2.4, 2.6], [9.0, 9.0]) == ["moved: 9, stated before 0.899 to 6.76"]
    assert [report.within(row) for row in rows()] == [True, False]
    assert rows()[0]["runs"] == [[2.0, 2.5, 3.0], [2.4, 2.6]]
    assert "Of 2 ratios that were taken again, 1 lie in the range" in "".join(report.files(tmp_path).values())
    for _ in range(report.RUNS):
        run([2.5], [9.0])
    assert [len(row["runs"]) for row in rows()] == [report.RUNS] * 2


def test_the_range_of_another_run_by_hand() -> None:
    assert report.another_run([]) is None
    assert report.another_run([[2.0]]) is None
    # Logarithms -1, 0, 1: mean 0, standard deviation 1; t of two degrees of freedom 4.3027; the root of 4/3.
    ends = report.another_run([[math.exp(-1), 1.0, math.exp(1)]])
    assert ends == pytest.approx([math.exp(-4.9683), math.exp(4.9683)], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [2, 3, 7])
@pytest.mark.parametrize("runs", [1, 2, 5])
@pytest.mark.parametrize("between", [0.0, 0.5, 1.0])
def test_how_often_another_run_lies_in_the_range(repeats: int, runs: int, between: float) -> None:
    """``between`` is the spread from run to run, in that of the repeats within one."""
    draw, hit, n = np.random.default_rng(repeats + 10 * runs), 0, 500
    for _ in range(n):
        ratios = np.exp(0.1 * (draw.normal(0, between, (runs + 1, 1)) + draw.normal(0, 1, (runs + 1, repeats))))
        low, high = report.another_run(ratios[:-1]) or (0.0, 0.0)
        hit += low <= np.median(ratios[-1]) <= high
    assert hit / n >= LEAST_COVERAGE[between]


def test_the_tables_of_the_document_are_those_of_the_files() -> None:
    text = report.DOCUMENT.read_text(encoding="utf-8")
    assert text == report.document(text), "docs/BENCHMARKS.md is stale: run make docs"
    for path, made in report.files().items():
        assert path.read_text(encoding="utf-8") == made, f"{path.name} is stale: run make docs"


def test_every_file_of_results_is_named_after_its_machine() -> None:
    files = list(report.FOLDER.glob("*.json"))
    assert files
    for path in files:
        stored = read_json(path)
        assert Machine(**stored["machine"]).kind == path.stem


def test_the_table_of_sizes_is_the_scripts() -> None:
    assert sizes.table() in (REPOSITORY / "docs" / "SCALING.md").read_text(encoding="utf-8")
