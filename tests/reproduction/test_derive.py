"""Parts of a benchmark by content words: the same each time, with what they were made of, and never passing for the
whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark, manifests
from cdp.complexity import count_content_words
from reproduction import derive
from tests.benchmarks.folders import write_benchmark

DOCUMENTS = [{"_id": f"d{i}", "title": "", "text": f"the text of document number {i}"} for i in range(40)]
QUERIES = [
    {"_id": f"q{i}", "text": f"Who {'ran long ' * (i % 3)}race {i}?", "excluded_ids": [f"d{39 - i}"]} for i in range(12)
] + [{"_id": "odd", "text": "What is odd?"}]
QRELS = "".join(f"{q['_id']}\td{i}\t1\n{q['_id']}\td{i + 1}\t0\n" for i, q in enumerate(QUERIES))


@pytest.fixture
def whole(workspace: Workspace, tmp_path: Path) -> str:
    folder = write_benchmark(tmp_path / "whole", documents=DOCUMENTS, queries=QUERIES, qrels={"train": QRELS})
    return add_benchmark(folder, workspace, language="en")


def test_few_and_many_content_words_are_a_benchmark_each_with_all_documents(whole: str, workspace: Workspace) -> None:
    parts = derive.by_content_words(workspace, whole, 3, fewest=2)
    assert [(part.name, part.n_queries) for part in parts] == [("whole-cw-0to2", 5), ("whole-cw-from3", 8)]
    original = load_benchmark(workspace.benchmarks / whole)
    for part, hard in zip(parts, (False, True), strict=True):
        made = load_benchmark(workspace.benchmarks / part.name)
        assert {cw >= 3 for cw in count_content_words(made.queries)} == {hard}
        assert made.documents == original.documents
        assert all(made.qrels[query] == original.qrels[query] for query in made.query_ids)
        excluded = {query: original.excluded[query] for query in made.query_ids if query in original.excluded}
        assert made.excluded == excluded
        manifest = manifests.read(workspace.benchmarks / part.name)
        assert manifest.source["of"] == whole
        assert manifest.source["hash"] == original.hash
        assert manifest.subset is None
    assert [part.content_hash for part in derive.by_content_words(workspace, whole, 3, fewest=2)] == [
        part.content_hash for part in parts
    ]


def test_a_part_that_is_too_small_is_left_out(whole: str, workspace: Workspace) -> None:
    assert [part.name for part in derive.by_content_words(workspace, whole, 3, fewest=6)] == ["whole-cw-from3"]
    with pytest.raises(InputError, match="do not divide"):
        derive.by_content_words(workspace, whole, 900)


def test_another_benchmark_of_that_name_is_kept(whole: str, workspace: Workspace, tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})
    add_benchmark(folder, workspace, "whole-cw-0to2")
    with pytest.raises(ConfigError, match="another benchmark called 'whole-cw-0to2'"):
        derive.by_content_words(workspace, whole, 3, fewest=2)
