"""Parts of a benchmark by hops, relevant documents or content words, and conjunctions: the same each time, with what
they were made of, and never passing for the whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, derive, load_benchmark, manifests
from tests.benchmarks.folders import write_benchmark

DOCUMENTS = [{"_id": f"d{i}", "title": "", "text": f"the text of document number {i}"} for i in range(40)]
QUERIES = [
    {"_id": f"{2 + i % 3}hop__{i}", "text": f"Who {'ran ' * (i % 3)}race {i}?", "excluded_ids": [f"d{39 - i}"]}
    for i in range(12)
] + [{"_id": "odd", "text": "What is odd?"}]
QRELS = "".join(f"{q['_id']}\td{i}\t1\n{q['_id']}\td{i + 1}\t0\n" for i, q in enumerate(QUERIES))


def lengths(texts: Sequence[str], language: str) -> list[int]:
    assert language == "en"
    return [len(text.split()) for text in texts]


@pytest.fixture
def whole(workspace: Workspace, tmp_path: Path) -> str:
    folder = write_benchmark(tmp_path / "whole", documents=DOCUMENTS, queries=QUERIES, qrels={"train": QRELS})
    (folder / "SOURCE.md").write_text("## Licence\n\nCC0.\n")
    return add_benchmark(folder, workspace, language="en")


def test_each_number_of_hops_is_a_benchmark_with_all_documents(whole: str, workspace: Workspace) -> None:
    parts, left_out = derive.by_value(workspace, whole, "hops", count=lengths, fewest=2)
    assert [part.info.name for part in parts] == ["whole-hops-2", "whole-hops-3", "whole-hops-4"]
    assert left_out == 1  # the query whose id tells no hops
    original = load_benchmark(workspace.benchmarks / whole)
    for part in parts:
        made = load_benchmark(workspace.benchmarks / part.info.name)
        assert {query[0] for query in made.query_ids} == {part.value}
        assert made.documents == original.documents
        assert all(made.qrels[query] == original.qrels[query] for query in made.query_ids)
        assert made.excluded == {query: original.excluded[query] for query in made.query_ids}
        manifest = manifests.read(workspace.benchmarks / part.info.name)
        assert manifest.source["of"] == whole
        assert manifest.source["hash"] == original.hash
        assert "CC0" in manifest.licence
        assert manifest.subset is None
    again, _ = derive.by_value(workspace, whole, "hops", count=lengths, fewest=2)
    assert all(part.existed for part in again)


def test_parts_that_are_too_small_are_left_out_and_counted(whole: str, workspace: Workspace) -> None:
    parts, left_out = derive.by_value(workspace, whole, "cw", count=lengths, edges=[4, 5], fewest=5)
    assert [(part.value, part.info.n_queries) for part in parts] == [("0to3", 5)]
    assert left_out == 8
    with pytest.raises(InputError, match="not told apart"):
        derive.by_value(workspace, whole, "relevant", count=lengths)
    with pytest.raises(ConfigError, match="nothing to divide by"):
        derive.by_value(workspace, whole, "colour", count=lengths)


def test_a_conjunction_asks_for_the_documents_of_each_of_its_queries(whole: str, workspace: Workspace) -> None:
    part, left_out = derive.conjunctions(workspace, whole, of=2, queries=100)
    assert (part.info.n_queries, left_out) == (6, 1)
    made = load_benchmark(workspace.benchmarks / part.info.name)
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
    other, _ = derive.conjunctions(workspace, whole, of=2, queries=100, seed=1)
    assert load_benchmark(workspace.benchmarks / other.info.name).query_ids != made.query_ids


def test_queries_that_share_a_document_are_never_joined(workspace: Workspace, tmp_path: Path) -> None:
    qrels = "".join(f"{q['_id']}\td0\t1\n" for q in QUERIES[:4]) + f"{QUERIES[4]['_id']}\td1\t1\n"
    folder = write_benchmark(tmp_path / "same", documents=DOCUMENTS, queries=QUERIES[:5], qrels={"test": qrels})
    name = add_benchmark(folder, workspace, language="en")
    part, left_out = derive.conjunctions(workspace, name)
    assert (part.info.n_queries, left_out) == (1, 3)


def test_another_benchmark_of_that_name_is_kept(whole: str, workspace: Workspace, tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", documents=DOCUMENTS, queries=QUERIES, qrels={"test": QRELS})
    add_benchmark(folder, workspace, "whole-hops-2")
    with pytest.raises(ConfigError, match="another benchmark called 'whole-hops-2'"):
        derive.by_value(workspace, whole, "hops", count=lengths, fewest=2)
