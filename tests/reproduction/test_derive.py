"""Parts of a benchmark by hops or content words, and conjunctions: the same each time, with what they were made of,
and never passing for the whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark, manifests
from reproduction import derive
from tests.benchmarks.folders import write_benchmark

DOCUMENTS = [{"_id": f"d{i}", "title": "", "text": f"the text of document number {i}"} for i in range(40)]
QUERIES = [
    {"_id": f"{2 + i % 3}hop__{i}", "text": f"Who {'ran ' * (i % 3)}race {i}?", "excluded_ids": [f"d{39 - i}"]}
    for i in range(12)
] + [{"_id": "odd", "text": "What is odd?"}]
QRELS = "".join(f"{q['_id']}\td{i}\t1\n{q['_id']}\td{i + 1}\t0\n" for i, q in enumerate(QUERIES))


@pytest.fixture
def whole(workspace: Workspace, tmp_path: Path) -> str:
    folder = write_benchmark(tmp_path / "whole", documents=DOCUMENTS, queries=QUERIES, qrels={"train": QRELS})
    (folder / "SOURCE.md").write_text("## Licence\n\nCC0.\n")
    return add_benchmark(folder, workspace, language="en")


def test_few_and_many_hops_are_a_benchmark_each_with_all_documents(whole: str, workspace: Workspace) -> None:
    parts = derive.by_value(workspace, whole, derive.HOPS, 4, fewest=2)
    assert [(part.name, part.n_queries) for part in parts] == [("whole-hops-0to3", 8), ("whole-hops-from4", 4)]
    original = load_benchmark(workspace.benchmarks / whole)
    for part, hops in zip(parts, ("23", "4"), strict=True):
        made = load_benchmark(workspace.benchmarks / part.name)
        assert {query[0] for query in made.query_ids} == set(hops)  # not the query whose id states no hops
        assert made.documents == original.documents
        assert all(made.qrels[query] == original.qrels[query] for query in made.query_ids)
        assert made.excluded == {query: original.excluded[query] for query in made.query_ids}
        manifest = manifests.read(workspace.benchmarks / part.name)
        assert manifest.source["of"] == whole
        assert manifest.source["hash"] == original.hash
        assert "CC0" in manifest.licence
        assert manifest.subset is None
    assert [part.content_hash for part in derive.by_value(workspace, whole, derive.HOPS, 4, fewest=2)] == [
        part.content_hash for part in parts
    ]


def test_a_part_that_is_too_small_is_left_out(whole: str, workspace: Workspace) -> None:
    parts = derive.by_value(workspace, whole, derive.CW, 2, fewest=6)
    assert [part.name for part in parts] == ["whole-cw-from2"]
    with pytest.raises(InputError, match="does not divide"):
        derive.by_value(workspace, whole, derive.CW, 900)


def test_a_conjunction_asks_for_the_documents_of_each_of_its_queries(whole: str, workspace: Workspace) -> None:
    part = derive.conjunctions(workspace, whole, queries=100)
    assert part.n_queries == 6
    made = load_benchmark(workspace.benchmarks / part.name)
    original = load_benchmark(workspace.benchmarks / whole)
    texts = dict(zip(original.query_ids, original.queries, strict=True))
    used = [query for conjunction in made.query_ids for query in conjunction.split("+")]
    assert len(used) == len(set(used)) == 12
    for conjunction, text in zip(made.query_ids, made.queries, strict=True):
        first, second = conjunction.split("+")
        assert text == f"{texts[first][:-1]} and {texts[second]}"
        relevant = {d for d, grade in made.qrels[conjunction].items() if grade > 0}
        expected = {d for q in (first, second) for d, grade in original.qrels[q].items() if grade > 0}
        assert relevant == expected
        assert len(relevant) == 2
    other = derive.conjunctions(workspace, whole, queries=100, seed=1)
    assert load_benchmark(workspace.benchmarks / other.name).query_ids != made.query_ids


def test_queries_that_share_a_document_are_never_joined(workspace: Workspace, tmp_path: Path) -> None:
    qrels = "".join(f"{q['_id']}\td0\t1\n" for q in QUERIES[:4]) + f"{QUERIES[4]['_id']}\td1\t1\n"
    folder = write_benchmark(tmp_path / "same", documents=DOCUMENTS, queries=QUERIES[:5], qrels={"test": qrels})
    name = add_benchmark(folder, workspace, language="en")
    assert derive.conjunctions(workspace, name).n_queries == 1


def test_another_benchmark_of_that_name_is_kept(whole: str, workspace: Workspace, tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})
    add_benchmark(folder, workspace, "whole-hops-0to3")
    with pytest.raises(ConfigError, match="another benchmark called 'whole-hops-0to3'"):
        derive.by_value(workspace, whole, derive.HOPS, 4, fewest=2)
