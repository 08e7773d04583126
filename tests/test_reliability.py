"""docs/RELIABILITY.md: every row of its tables of faults names a test that exists."""

from __future__ import annotations

import functools
import re

import pytest

from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "RELIABILITY.md"
HEAD = "| input or fault | what the user sees | what is kept | test |"
_CELLS = re.compile(r"(?<!\\)\|")
_FUNCTION = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> list[tuple[int, list[str]]]:
    """The rows of every table of faults: (line number, cells)."""
    found, inside = [], False
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        inside = line.startswith("|") and (inside or line == HEAD)
        if inside and line != HEAD and not line.startswith("|---"):
            found.append((number, [cell.strip() for cell in _CELLS.split(line)[1:-1]]))
    return found


@functools.cache
def functions_of(file: str) -> set[str]:
    """The test functions of a file; empty where there is no such file."""
    path = REPOSITORY / file
    if not path.is_file():
        return set()
    return set(_FUNCTION.findall(path.read_text(encoding="utf-8")))


def test_there_are_rows() -> None:
    assert rows()


@pytest.mark.parametrize(("number", "cells"), rows(), ids=lambda value: str(value)[:40])
def test_a_row_is_whole_and_its_tests_exist(number: int, cells: list[str]) -> None:
    assert len(cells) == 4, f"line {number} has {len(cells)} cells"
    assert all(cells), f"line {number} has an empty cell"
    named = _TEST.findall(cells[3])
    assert named, f"line {number} names no test as `tests/file.py::test_name`"
    missing = [f"{file}::{name}" for file, name in named if name not in functions_of(file)]
    assert not missing, f"line {number}"
