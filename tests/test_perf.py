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
from perf import against, report, sizes
from perf.__main__ import main
from perf.machine import Machine, of_cpuinfo
from perf.parts import LONGEST_S, PARTS, run_part
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
    assert sum(part.limit_s or 0 for part in PARTS.values()) < LONGEST_S


def test_every_benchmark_is_run_or_run_on_request() -> None:
    files = {path.stem for path in (REPOSITORY / "perf").glob("*.py") if "\ndef run(" in path.read_text("utf-8")}
    assert files == {*PARTS}


def test_every_benchmark_names_rooms_that_exist() -> None:
    rooms = {room for part in PARTS.values() for room in part.rooms}
    assert [room for room in rooms if not (REPOSITORY / "cdp" / room).is_dir()] == []
    assert all(part.rooms for part in PARTS.values())


def test_a_change_of_any_room_is_measured() -> None:
    """But of ``charts`` and ``studies``, whose parts take too long for each branch."""
    rooms = {path.parent.name for path in (REPOSITORY / "cdp").glob("*/__init__.py")}
    assert {room for room in rooms if not against.touched([f"cdp/{room}/a.py"])} == {"charts", "studies"}


@pytest.mark.parametrize(
    ("paths", "parts"),
    [
        (["cdp/corpus/reading.py"], ["reading", "pdf", "growth"]),
        (["cdp/training/loop.py", "docs/index.md"], ["growth", "training_throughput", "first_step"]),
        (["perf/pdf.py"], ["pdf"]),
        (["pages/home.py"], ["startup"]),
        (["cdp/base/text.py", "tests/corpus/test_reading.py"], ["startup", "end_to_end"]),
        (["cdp/catalog/database.py"], ["end_to_end"]),
        (["tests/corpus/test_reading.py", "README.md"], []),
    ],
)
def test_a_branch_is_measured_by_the_parts_of_the_rooms_that_it_touches(paths: list[str], parts: list[str]) -> None:
    assert against.touched(paths) == parts


def turns(unit: str, values: list[float], name: str = "a") -> list[list[Row]]:
    """The rows of a tree, one a turn."""
    return [[{"name": name, "ours": value, "unit": unit}] for value in values]


@pytest.mark.parametrize(
    ("unit", "here", "there"),
    [
        ("documents/s", [30.0, 10.0, 40.0], [10.0, 10.0, 20.0]),
        ("NDCG@10", [30.0, 10.0, 40.0], [10.0, 10.0, 20.0]),
        ("s", [10.0, 10.0, 20.0], [30.0, 10.0, 40.0]),
        ("MiB", [10.0, 10.0, 20.0], [30.0, 10.0, 40.0]),
    ],
)
def test_the_ratio_to_a_commit_is_above_one_where_this_tree_is_ahead(
    unit: str, here: list[float], there: list[float]
) -> None:
    (row,), left_out = against.compared(turns(unit, here), turns(unit, there))
    assert left_out == []
    assert (row["ratio"], row["spread"]) == (2.0, [1.0, 3.0])
    assert (row["ours"], row["peer"]) == ((30.0, 10.0) if here[0] == 30.0 else (10.0, 30.0))


def test_a_question_that_only_one_commit_asks_is_named() -> None:
    rows, left_out = against.compared(turns("s", [1.0], "new"), turns("s", [1.0], "old"))
    assert rows == []
    assert left_out == ["new: not of both", "old: not of both"]


def test_slower_is_what_is_slower_beyond_chance() -> None:
    def named(*ratios: float) -> list[str]:
        return against.slower([{"name": "a", "ratios": list(ratios)}])

    # Logarithms -0.1 ± 0.01: their mean -0.1, half the interval 4.3027 * 0.01 / √3.
    steady = [math.exp(-0.11), math.exp(-0.1), math.exp(-0.09)]
    assert named(*steady) == ["a: 0.90 (95% interval 0.88 to 0.93)"]
    assert named(0.9, 0.5, 1.1) == []
    assert named(1.1, 1.11, 1.12) == []
    assert named(0.5) == [], "one turn says nothing about chance"


TINY = """
import json, os, sys
from pathlib import Path
rows = [{{"name": "a", "ours": {seconds}, "unit": "s"}}]
Path(sys.argv[3]).write_text(json.dumps(rows))
with open({log!r}, "a") as log:
    log.write(os.getcwd() + chr(10))
"""


@pytest.mark.slow
def test_a_part_runs_in_turns_on_this_tree_and_on_a_commit_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository whose one part takes two seconds by its commit and one by the change that is not committed yet."""
    repository, log = tmp_path / "repository", tmp_path / "log"
    part = repository / "perf" / "__main__.py"
    part.parent.mkdir(parents=True)
    monkeypatch.setattr(against, "REPOSITORY", repository)
    against.git("init", "--quiet")
    part.write_text(TINY.format(seconds=2.0, log=str(log)))
    against.git("add", ".")
    against.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "one")
    part.write_text(TINY.format(seconds=1.0, log=str(log)))

    assert against.changed_since("HEAD") == ["perf/__main__.py"]
    rows, left_out = against.against("tiny", "HEAD", turns=2)
    assert left_out == []
    assert [(row["name"], row["ratios"]) for row in rows] == [("a", [2.0, 2.0])]
    folders = log.read_text().splitlines()
    assert folders[0] == folders[3] == str(repository)
    assert folders[1] == folders[2] != str(repository)
    assert not Path(folders[1]).parent.exists()
    assert len(against.git("worktree", "list").splitlines()) == 1


def test_a_commit_that_is_not_there_is_refused_in_gits_words(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="no-such"):
        main(["ndcg", "--against", "no-such"])
    assert main(["no-such-part", "--against", "HEAD"]) == 2
    assert "There is no benchmark no-such-part" in capfd.readouterr().err


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
