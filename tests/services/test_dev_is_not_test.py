"""Queries that choose checkpoints are not reported: by id, by text and by content words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import benchmarks
from cdp.base.workspace import Workspace
from cdp.benchmarks import describe, load_benchmark, resolve_benchmark
from cdp.retrievers import leakage
from cdp.services import studies
from cdp.studies import planning


def made(workspace: Workspace, folder: Path, splits: dict[str, list[str]], texts: dict[str, str]) -> None:
    """A benchmark of one document for each text, under the name ``bridges``."""
    found = list(dict.fromkeys(texts.values()))
    folder = folder / "bridges"
    (folder / "qrels").mkdir(parents=True)
    lines = [json.dumps({"_id": f"d{i}", "text": f"The bridge of number {i}."}) for i in range(len(found))]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "queries.jsonl").write_text("\n".join(json.dumps({"_id": q, "text": t}) for q, t in texts.items()))
    for split, queries in splits.items():
        rows = "".join(f"{q}\td{found.index(texts[q])}\t1\n" for q in queries)
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{rows}")
    benchmarks.add_benchmark(folder, workspace, "bridges")


def drawn(workspace: Workspace) -> planning.Splits:
    splits = planning.splits_of(workspace, describe(resolve_benchmark("bridges", workspace), workspace))
    studies.draw(workspace, splits)
    return splits


def texts_of(workspace: Workspace, splits: planning.Splits, split: str) -> list[str]:
    return list(load_benchmark(resolve_benchmark(splits.benchmark, workspace), split).queries)


@pytest.mark.slow
def test_a_dev_split_that_is_the_test_split_chooses_nothing(workspace: Workspace, tmp_path: Path) -> None:
    texts = {f"q{i}": f"who built the bridge number {i}" for i in range(60)}
    made(workspace, tmp_path, {"test": list(texts), "dev": list(texts)}, texts)
    splits = drawn(workspace)
    assert "60 are reported too" in splits.shared_note
    dev, test = (set(texts_of(workspace, splits, split)) for split in ("dev", "test"))
    assert len(dev) == splits.n_dev > 0
    assert not dev & test


@pytest.mark.slow
def test_reworded_and_repeated_queries_leave_dev(workspace: Workspace, tmp_path: Path) -> None:
    texts = {f"q{i}": f"who built the stone bridge number {i}" for i in range(40)}
    texts |= {f"r{i}": f"The stone bridge number {i}: who built it?" for i in range(10)}
    texts |= {f"o{i}": f"when was the iron bridge number {i} opened" for i in range(20)}
    dev = [name for name in texts if name[0] in "ro"]
    made(workspace, tmp_path, {"test": [f"q{i}" for i in range(40)], "dev": dev}, texts)
    splits = drawn(workspace)
    assert (splits.shared, splits.n_dev) == (10, 20)
    assert all("iron" in text for text in texts_of(workspace, splits, "dev"))
    assert len(texts_of(workspace, splits, "test")) == 40


@pytest.mark.slow
def test_one_text_under_two_ids_is_one_query(workspace: Workspace, tmp_path: Path) -> None:
    texts = {f"{name}{i}": f"who built the stone bridge number {i}" for i in range(40) for name in "ab"}
    made(workspace, tmp_path, {"test": list(texts)}, texts)
    splits = drawn(workspace)
    repeated = leakage.repeats(texts_of(workspace, splits, "dev"), texts_of(workspace, splits, "test"))
    assert not repeated.any()
