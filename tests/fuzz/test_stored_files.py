"""Whatever stands in the workspace's files: what reads them ends in a result or in a sentence."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.fuzz.stored import Names, Report, attack, template

pytestmark = pytest.mark.slow

SHORT = 8
# How long the soak damages stored files; as long as all else of the fuzz takes together.
MINUTES = float(os.environ.get("CDP_FUZZ_MINUTES") or 20)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    return Names.of(template(tmp_path_factory.mktemp("stored")))


def check(report: Report) -> None:
    print(f"{report.attempts} attempts: {dict(report.ends)}")
    shown = [f"{place}\n    {about}" for place, about in report.wrong.items()]
    assert not shown, "\n".join(shown)
    assert report.ends["result"] > report.ends["CdpError"] > 0, "damage that all or nothing survives says little"


def test_a_whole_workspace_is_read_without_an_error(names: Names) -> None:
    from tests.fuzz.stored import READINGS

    for read in READINGS.values():
        read(names)


def test_a_few_damaged_files(names: Names) -> None:
    check(attack(names, itertools.count(), n=SHORT))


@pytest.mark.soak
def test_damaged_files_for_minutes(names: Names, tmp_path: Path) -> None:
    check(attack(names, itertools.count(1_000_000), minutes=MINUTES))
