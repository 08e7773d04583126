"""Whatever stands in the workspace's files: what reads them ends in a result or in a sentence."""

from __future__ import annotations

import itertools
import logging
import os
from pathlib import Path

import pytest

from cdp.services import jobs, studies
from tests.fuzz.stored import READINGS, Names, Report, attack, template

pytestmark = pytest.mark.slow

SHORT = 5
# How long the soak damages stored files; as long as all else of the fuzz takes together.
MINUTES = float(os.environ.get("CDP_FUZZ_MINUTES") or 20)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    return Names.of(template(tmp_path_factory.mktemp("stored")))


def check(report: Report) -> None:
    print(f"{report.attempts} attempts: {dict(report.ends)}")
    shown = [f"{place}\n    {about}" for place, about in report.wrong.items()]
    assert not shown, "\n".join(shown)
    assert report.ends["result"] > report.ends["CdpError"], "damage that nothing survives says little"
    assert report.ends["CdpError"] > 0 or report.attempts <= SHORT, "nor damage that everything survives"


def test_a_whole_workspace_is_read_without_an_error(names: Names, caplog: pytest.LogCaptureFixture) -> None:
    for read in READINGS.values():
        read(names)
    ours = [record for record in caplog.records if record.name.startswith("cdp")]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING] == []


def test_one_damaged_record_costs_no_other(names: Names, caplog: pytest.LogCaptureFixture) -> None:
    folder = names.workspace.job("study-1")
    before = studies.report(names.workspace, "study-1")
    curve = jobs.curve(names.workspace, "training-1-diverse", "loss")
    damaged = {
        sorted(folder.glob("results/conditions/*.json"))[-1]: b'{"schema": 1, "evaluations": [], "retriever": 1e999}',
        names.workspace.job("training-1-diverse") / "metrics.jsonl": b'{"step": {}}\n{"step": 9, "loss": 1}\nnull\n',
    }
    kept = {path: path.read_bytes() for path in damaged}
    try:
        for path, data in damaged.items():
            path.write_bytes((kept[path] if path.suffix == ".jsonl" else b"") + data)
        report = studies.report(names.workspace, "study-1")
        assert (report.planned, report.finished) == (before.planned, before.finished - 1)
        assert len(report.rows) == len(before.rows)
        assert jobs.curve(names.workspace, "training-1-diverse", "loss") == {**curve, 9: 1.0}
    finally:
        for path, data in kept.items():
            path.write_bytes(data)
    assert f"{next(iter(damaged))} has a wrong field" in caplog.text
    assert "metrics.jsonl, line 6, has a wrong field" in caplog.text
    assert "(2 such lines)" in caplog.text


def test_a_few_damaged_files(names: Names) -> None:
    check(attack(names, itertools.count(), n=SHORT))


@pytest.mark.soak
def test_damaged_files_for_minutes(names: Names, tmp_path: Path) -> None:
    check(attack(names, itertools.count(1_000_000), minutes=MINUTES))
