"""Processors and memory are those that a container, or a control group around this process, may use."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from cdp.base import machine
from cdp.base.machine import memory_bytes, n_processors
from cdp.jobs.launchers import computing

V1 = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")


def limited(monkeypatch: pytest.MonkeyPatch, folder: Path, groups: str, files: Mapping[str, str]) -> None:
    """Let this process be in these control groups, on a machine of 64 processors."""
    own = folder / "self"
    own.write_text(groups)
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    monkeypatch.setattr(machine, "CGROUPS", folder / "cgroup")
    monkeypatch.setattr(machine, "OWN_CGROUPS", own)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(64))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/slurm/job_7/step_0\n", {"slurm/job_7/cpu.max": "800000 100000\n", "cpu.max": "max 100000\n"}, 8),
        ("0::/docker/0a1b\n", {"cpu.max": "400000 100000\n"}, 4),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ("4:memory:/\n", {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ("", {}, 64),
    ],
)
def test_a_share_of_the_processors(
    groups: str, files: Mapping[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, tmp_path, groups, files)
    assert n_processors() == expected
    assert computing({}).get("OMP_NUM_THREADS") == (str(expected) if expected < 64 else None)
    assert computing({"OMP_NUM_THREADS": "5"})["OMP_NUM_THREADS"] == "5"
    assert computing({}, processes=2)["OMP_NUM_THREADS"] == str(max(1, expected // 2))


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/pod/box\n", {"pod/memory.max": "1073741824\n", "pod/box/memory.max": "max\n"}),
        ("9:memory:/\n0::/\n", {"memory/memory.limit_in_bytes": "1073741824\n"}),
    ],
)
def test_a_share_of_the_memory(
    groups: str, files: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = memory_bytes()
    limited(monkeypatch, tmp_path, groups, files)
    assert memory_bytes() == 2**30 < whole


@pytest.fixture
def real_group() -> Iterator[Path]:
    """A control group of the kernel's with half a processor; skips where this account may make none."""
    folder = V1.parent / f"cdp-{uuid4().hex[:8]}"
    try:
        folder.mkdir()
        (folder / "cpu.cfs_period_us").write_text("100000")
        (folder / "cpu.cfs_quota_us").write_text("50000")
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        pytest.skip(f"needs root and control groups of version 1: {error}")

    yield folder
    folder.rmdir()


def test_a_process_in_a_real_group_sees_its_limit(real_group: Path) -> None:
    code = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid()))\n"
    code += "from cdp.base.machine import n_processors; print(n_processors())"
    arguments = [sys.executable, "-c", code, str(real_group / "cgroup.procs")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
