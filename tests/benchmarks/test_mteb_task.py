"""A benchmark as a task of MTEB: files, stated types, what MTEB does otherwise. ``make interop`` runs it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace, write_json, write_jsonl
from cdp.benchmarks import load_benchmark
from cdp.cli import main
from cdp.services import benchmarks

HOSTILE = 'sea"); import os; os.abort()  # "'


def _folder(workspace: Workspace, queries: list[dict[str, Any]], **manifest: Any) -> Path:
    """Two documents of which one looks like a number, and a judgment in each of two splits."""
    folder = workspace.benchmark("sea")
    (folder / "qrels").mkdir(parents=True)
    write_jsonl(folder / "corpus.jsonl", [{"_id": id, "title": "T", "text": f"text {id}"} for id in ("007", "d2")])
    write_jsonl(folder / "queries.jsonl", queries)
    for split, row in {"test": "1\t007\t2", "dev": "q2\td2\t1"}.items():
        (folder / "qrels" / f"{split}.tsv").write_text(f"query-id\tcorpus-id\tscore\n{row}\n", encoding="utf-8")
    if manifest:
        write_json(folder / "manifest.json", {"schema": 1, "name": "sea", **manifest})
    return folder


def _metadata(target: Path) -> dict[str, Any]:
    """The literals among the arguments of the task's metadata."""
    tree = ast.parse((target / "mteb_task.py").read_text(encoding="utf-8"))
    (call,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "TaskMetadata"
    )
    literals = [word for word in call.keywords if word.arg != "dataset"]
    return {str(word.arg): ast.literal_eval(word.value) for word in literals}


def test_each_part_has_its_files_and_types(workspace: Workspace, tmp_path: Path) -> None:
    folder = _folder(workspace, [{"_id": "1", "text": "first"}, {"_id": "q2", "text": "second"}])
    target = tmp_path / "task"
    assert main(["benchmarks", "export", "sea", "--format", "mteb", "--out", str(target)]) == 0

    card = yaml.safe_load((target / "README.md").read_text(encoding="utf-8").split("---")[1])
    paths = {part["config_name"]: [data["path"] for data in part["data_files"]] for part in card["configs"]}
    assert paths == {
        "corpus": ["corpus.jsonl"], "queries": ["queries.jsonl"], "default": ["qrels/test.jsonl", "qrels/dev.jsonl"],
    }  # fmt: skip
    for info in card["dataset_info"]:
        columns = [column["name"] for column in info["features"]]
        for path in paths[info["config_name"]]:
            rows = [json.loads(line) for line in (target / path).read_text(encoding="utf-8").splitlines()]
            assert rows
            assert all(list(row) == columns for row in rows), path
    assert json.loads((target / "qrels" / "test.jsonl").read_text()) == {
        "query-id": "1",
        "corpus-id": "007",
        "score": 2,
    }
    assert load_benchmark(target, "test").qrels == load_benchmark(folder, "test").qrels

    facts = _metadata(target)
    assert (facts["name"], facts["eval_splits"], facts["eval_langs"]) == ("sea", ["test", "dev"], ["eng-Latn"])
    with pytest.raises(InputError, match="already"):
        benchmarks.export(workspace, "sea", "mteb", target)


def test_what_mteb_does_otherwise_is_said(workspace: Workspace, tmp_path: Path) -> None:
    _folder(
        workspace, [{"_id": "1", "text": "a", "excluded_ids": ["d2"]}, {"_id": "q2", "text": "b"}],
        relevant_from=2, language="ha",
    )  # fmt: skip
    target, notes = benchmarks.export(workspace, "sea", "mteb", tmp_path / "task")
    assert [note.split(" ", 3)[:3] for note in notes] == [
        ["MTEB", "does", "not"], ["MTEB", "counts", "every"], ["The", "task's", "language"],
    ]  # fmt: skip
    assert all(note in _metadata(target)["description"] for note in notes)
    assert notes[0] in (target / "README.md").read_text(encoding="utf-8")


def test_a_name_cannot_become_code(workspace: Workspace, tmp_path: Path) -> None:
    folder = _folder(workspace, [{"_id": "1", "text": "a"}, {"_id": "q2", "text": "b"}])
    hostile = tmp_path / HOSTILE
    folder.rename(hostile)
    target, _ = benchmarks.export(workspace, str(hostile), "mteb", tmp_path / "task")
    facts = _metadata(target)
    assert facts["description"] == f"{HOSTILE}, exported by CDP Studio."
    assert facts["name"] == "sea-import-os-os.abort-"


def test_a_split_that_mteb_would_read_as_a_pattern_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    folder = _folder(workspace, [{"_id": "1", "text": "first"}, {"_id": "q2", "text": "second"}])
    (folder / "qrels" / "test.tsv").rename(folder / "qrels" / "test[1].tsv")

    with pytest.raises(InputError, match=r"reads the name of the split test\[1\] as a pattern"):
        benchmarks.export(workspace, "sea", "mteb", tmp_path / "task")

    assert not (tmp_path / "task").exists()
