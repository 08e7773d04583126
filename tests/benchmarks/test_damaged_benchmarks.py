"""A benchmark from a stranger: hostile names, a manifest of wrong types, ids and texts that cannot be stored."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, download, load_benchmark, manifests, registry
from cdp.benchmarks.library import describe
from tests.benchmarks import published
from tests.benchmarks.folders import DOCUMENTS, QRELS, QUERIES, write_benchmark


def test_only_what_makes_a_benchmark_leaves_a_zip(tmp_path: Path, workspace: Workspace) -> None:
    folder = write_benchmark(tmp_path / "bench")
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            archive.write(folder / file, f"inner/{file}")
        for name in (
            "../out.txt",
            "/out.txt",
            "inner/../../out.txt",
            "inner/big.bin",
            "n" * 300,
            "inner/qrels/../../o.tsv",
        ):
            archive.writestr(name, "x")
        info = zipfile.ZipInfo("x")
        info.filename = ""
        archive.writestr(info, "x")
    add_benchmark(path, workspace, "b")
    files = {file.relative_to(workspace.benchmark("b")).as_posix() for file in workspace.benchmark("b").rglob("*.*")}
    assert files == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
    assert not list(tmp_path.rglob("out.txt"))
    assert load_benchmark(workspace.benchmark("b")).hash == load_benchmark(folder).hash


@pytest.mark.parametrize(
    "manifest",
    [
        {"source": []}, {"relevant_from": "x"}, {"self_match": "maybe"}, {"notes": [1]},
        {"licence": ["CC"]}, {"subset": {"of": 1, "of_hash": "", "split": "", "queries": 1, "documents": 1, "seed": 0}},
        {"files": 3}, {"titles": None}, {"counts": []},
    ],
)  # fmt: skip
def test_a_manifest_of_wrong_types_is_none(manifest: Mapping[str, Any], tmp_path: Path, workspace: Workspace) -> None:
    folder = write_benchmark(tmp_path / "bench")
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, **manifest}), encoding="utf-8")
    assert manifests.read(folder) == manifests.Manifest()
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "source": {"commits": 3}}), encoding="utf-8")
    assert manifests.read(folder).commits == {}
    add_benchmark(folder, workspace, "b")
    assert load_benchmark(workspace.benchmark("b")).n_queries == 3
    assert describe(workspace.benchmark("b"), workspace).problem == ""


def test_what_cannot_be_stored(tmp_path: Path, workspace: Workspace) -> None:
    half = [{**row, "text": f"half \ud800 of {row['text']}"} for row in DOCUMENTS]
    for row in half:
        row["text"] = str(row["text"])
    folder = tmp_path / "texts"
    write_benchmark(folder)
    lines = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in half)
    (folder / "corpus.jsonl").write_text(lines, encoding="utf-8")
    add_benchmark(folder, workspace, "texts")
    found = load_benchmark(workspace.benchmark("texts"))
    assert all("half \ufffd of" in text for text in found.documents)
    assert any("half of a surrogate pair, replaced by U+FFFD" in warning for warning in found.warnings)

    queries = [{**QUERIES[0], "text": "what \ud800?"}, {**QUERIES[1], "_id": "\ud800"}, *QUERIES[2:]]
    lines = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in queries)
    (folder / "queries.jsonl").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=r"2 lines cannot be used.*line 1: The text of query.*line 2: The _id holds"):
        add_benchmark(folder, workspace, "queries")


@pytest.mark.parametrize("grade", ["9" * 400, "1e300", "inf", "nan"])
def test_a_grade_without_bounds(grade: str, tmp_path: Path, workspace: Workspace) -> None:
    folder = write_benchmark(tmp_path / "bench", qrels={"test": QRELS + f"q3\td1\t{grade}\n"})
    with pytest.raises(InputError, match="is not a whole number"):
        add_benchmark(folder, workspace)


def test_a_published_file_with_half_a_pair_is_stored_and_said(tmp_path: Path, workspace: Workspace) -> None:
    repository = published.mteb_forum()
    repository["corpus.jsonl"] = repository["corpus.jsonl"].replace(b"The moon", b"The \\ud800 moon")
    entry = registry.find("scifact")
    assert entry is not None
    folder = published.put(tmp_path / "published", repository)
    info, _ = download.download_benchmark(entry, workspace, folder=folder)
    assert "\ufffd moon" in load_benchmark(Path(info.folder)).documents[0]
    assert any("which became U+FFFD: 1" in note for note in manifests.read(Path(info.folder)).notes)
