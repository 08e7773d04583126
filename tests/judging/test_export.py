"""Judged sets for other programs: a BEIR folder that can be added again, and TREC qrels."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.benchmarks import load_benchmark, manifests
from cdp.benchmarks.beir_files import read_qrels
from cdp.cli import main
from cdp.services import benchmarks
from tests.judging.made import make


@pytest.mark.slow
def test_a_judged_benchmark_is_exported_and_added_again(workspace: Workspace, tmp_path: Path) -> None:
    folder = make(workspace, lambda q, d: d, n_queries=5)
    assert main(["benchmarks", "export", "made", "--out", str(tmp_path / "out")]) == 0
    again = benchmarks.add(workspace, tmp_path / "out", name="again")
    assert load_benchmark(Path(again.folder)).qrels == load_benchmark(folder).qrels
    assert manifests.read(Path(again.folder)).source["judge"] == "a-model"
    assert main(["benchmarks", "export", "made", "--out", str(tmp_path / "out")]) == 2


def test_trec_qrels_have_four_columns(workspace: Workspace, tmp_path: Path) -> None:
    folder = make(workspace, lambda q, d: d, n_queries=2)
    file = tmp_path / "made.qrels"
    assert main(["benchmarks", "export", "made", "--format", "trec-qrels", "--out", str(file)]) == 0
    assert file.read_text().splitlines()[:2] == ["q0 0 d0-0 0", "q0 0 d0-1 1"]
    assert read_qrels(file).grades == load_benchmark(folder).qrels
