"""Thousands of damaged files: each ends in a result or a CdpError within 10 s of CPU and 1 GB; nothing else changes.

What ``attack`` reports can be done again alone: ``python -m tests.fuzz.attack queries 1 SEED FOLDER``.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.attack import main
from tests.fuzz.targets import TARGETS
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

SHORT, LONG = 20, 10_000


def attack(targets: str, n: int, folder: Path) -> None:
    """Attack in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.attack", targets, str(n), "0", str(folder)],
        capture_output=True, text=True, cwd=REPOSITORY, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports on some dozens of inputs for each target."""
    folder = tmp_path_factory.mktemp("attack")
    limits, handler = resource.getrlimit(resource.RLIMIT_DATA), signal.getsignal(signal.SIGPROF)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("TMPDIR", "")
        patch.setattr(tempfile, "tempdir", None)
        for target in TARGETS:
            try:
                main(target, SHORT, 0, folder / target)
            finally:
                resource.setrlimit(resource.RLIMIT_DATA, limits)
                signal.signal(signal.SIGPROF, handler)
    return folder


def check(folder: Path, n: int) -> None:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    shown = [f"seed {w['seed']}: {w['end']}: {w['trace'][-500:]}" for w in report["wrong"][:5]]
    assert report["wrong"] == [], "\n".join(shown)
    ends = report["ends"]
    assert ends["result"] + ends["CdpError"] == n
    assert ends["result"] > n // 20, "damage that nothing survives says little"
    assert ends["CdpError"] > n // 20


@pytest.mark.parametrize("target", TARGETS)
def test_some_dozens(target: str, attacked: Path) -> None:
    check(attacked / target, SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_ten_thousand(target: str, tmp_path: Path) -> None:
    attack(target, LONG, tmp_path / "attack")
    check(tmp_path / "attack", LONG)
