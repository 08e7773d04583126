"""A subset is the same each time, holds everything that answers its queries, and never passes for the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, describe, load_benchmark, manifests
from cdp.benchmarks.subsets import name_of, sample
from tests.benchmarks.folders import write_benchmark

DOCUMENTS = [{"_id": f"d{i}", "title": f"t{i}", "text": f"text {i}"} for i in range(40)]
QUERIES = [{"_id": f"q{i}", "text": f"query {i}", "excluded_ids": ["d39"]} for i in range(10)]
QRELS = "".join(f"q{i}\td{i}\t1\nq{i}\td{i + 10}\t2\nq{i}\td{i + 20}\t0\n" for i in range(9)) + "q9\td9\t0\n"


@pytest.fixture
def whole(workspace: Workspace, tmp_path: Path) -> str:
    folder = write_benchmark(tmp_path / "whole", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})
    return add_benchmark(folder, workspace)


def test_it_holds_all_that_is_relevant_and_others_up_to_the_number(whole: str, workspace: Workspace) -> None:
    info, existed = sample(whole, workspace, queries=4, documents=20)
    assert not existed
    assert info.name == "whole-sample-4q-20d"
    found = load_benchmark(workspace.benchmarks / info.name)
    assert (found.n_queries, found.n_documents) == (4, 20)
    original = load_benchmark(workspace.benchmarks / whole)
    for query in found.query_ids:
        relevant = {d: g for d, g in original.qrels[query].items() if g > 0}
        assert relevant.items() <= found.qrels[query].items()
    kept = dict(zip(original.document_ids, original.documents, strict=True))
    assert [kept[d] for d in found.document_ids] == found.documents
    assert found.document_ids == [d for d in original.document_ids if d in set(found.document_ids)]


def test_it_is_the_same_each_time_and_another_with_another_seed(whole: str, workspace: Workspace) -> None:
    first, _ = sample(whole, workspace, queries=4, documents=20)
    again, existed = sample(whole, workspace, queries=4, documents=20)
    assert existed
    assert again.content_hash == first.content_hash
    same, _ = sample(whole, workspace, queries=4, documents=20, called="copy")
    assert same.content_hash == first.content_hash
    other, _ = sample(whole, workspace, queries=4, documents=20, seed=1)
    assert other.name == "whole-sample-4q-20d-s1"
    assert other.content_hash != first.content_hash


def test_another_split_than_test_is_named(whole: str, workspace: Workspace) -> None:
    assert name_of("whole", 300, 2000, "test") == "whole-sample-300q-2000d"
    assert name_of("whole", 4, 20, "dev", seed=1) == "whole-sample-4q-20d-dev-s1"


def test_a_larger_one_holds_the_smaller_one_s_queries(whole: str, workspace: Workspace) -> None:
    small = load_benchmark(workspace.benchmarks / sample(whole, workspace, queries=3, documents=30)[0].name)
    large = load_benchmark(workspace.benchmarks / sample(whole, workspace, queries=6, documents=30)[0].name)
    assert set(small.query_ids) < set(large.query_ids)


def test_it_says_that_it_is_one_wherever_it_is_used(whole: str, workspace: Workspace) -> None:
    info, _ = sample(whole, workspace, queries=4, documents=20)
    assert info.subset_of == whole
    assert any("higher than on the whole" in warning for warning in info.warnings)
    assert any("higher than on the whole" in w for w in load_benchmark(workspace.benchmarks / info.name).warnings)
    subset = manifests.read(workspace.benchmarks / info.name).subset
    assert subset is not None
    assert subset.of_hash == describe(workspace.benchmarks / whole, workspace).content_hash
    with pytest.raises(ConfigError, match="is a subset itself"):
        sample(info.name, workspace)


def test_too_few_documents_are_told(whole: str, workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match="8 documents are relevant for these queries, more than the 7"):
        sample(whole, workspace, queries=4, documents=7)


def test_more_than_there_is_takes_all(whole: str, workspace: Workspace) -> None:
    info, _ = sample(whole, workspace, queries=100, documents=1000)
    assert (info.n_queries, info.n_documents) == (9, 40)  # q9 has nothing relevant
