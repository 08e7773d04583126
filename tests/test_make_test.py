"""``make test`` runs what failed beside others once more, alone, and names it; it forgives nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY

pytestmark = pytest.mark.slow
FIRST = """
from pathlib import Path
been = Path(__file__).with_suffix(".been")
def first():
    if not been.exists():
        been.touch()
        return True
"""
PASSES = "def test_passes():\n    pass\n"


@pytest.fixture(scope="module")
def command() -> str:
    """What ``make test`` does about tests."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    folder_of_python = Path(sys.executable).parent
    done_before = ("--old-file=install-dev", "--old-file=chromium")
    # One process shows what four beside each other would, and starts in a quarter of the time.
    given = (f"BIN={folder_of_python}", "TEST_PROCESSES=1")
    words = [make, "--no-print-directory", "--dry-run", *done_before, *given, "test"]
    # Within `make test` itself, what that make was told would be told to this one too.
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    recipe = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True, env=own).stdout
    return recipe[recipe.index(f"{folder_of_python}/python -m pytest -n 1") :]


def made(command: str, folder: Path, **tests: str) -> subprocess.CompletedProcess[str]:
    """What it does in ``folder`` with these test files."""
    for name, text in {"conftest": 'pytest_plugins = ["tests.uncollected"]', **tests}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    lean = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist", "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, env=environment | lean)


def test_a_test_that_passes_alone_passes_and_is_named(command: str, tmp_path: Path) -> None:
    done = made(command, tmp_path, test_a=PASSES, test_b=f"{FIRST}def test_once():\n    assert not first()\n")
    assert done.returncode == 0, done.stdout
    first, again = done.stdout.split("run once more, alone")
    assert "FAILED test_b.py::test_once" in first
    assert "PASSED test_b.py::test_once" in again
    assert "test_passes" not in again
    assert done.stdout.splitlines()[-1].strip("= ").startswith("1 passed in")


def test_a_test_that_fails_again_fails_the_run(command: str, tmp_path: Path) -> None:
    done = made(command, tmp_path, test_a=PASSES, test_b="def test_never():\n    assert False\n")
    assert done.returncode != 0
    assert done.stdout.count("FAILED test_b.py::test_never") == 2


def test_a_module_that_cannot_be_collected_is_not_run_again(command: str, tmp_path: Path) -> None:
    done = made(command, tmp_path, test_a=PASSES, test_b=f"{FIRST}assert not first()\n{PASSES}")
    assert done.returncode != 0
    assert "ERROR test_b.py" in done.stdout
    assert "run once more, alone" not in done.stdout
