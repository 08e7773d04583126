"""What stands for a benchmark of the registry, and what does not."""

from __future__ import annotations

from pathlib import Path

from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark
from cdp.services import benchmarks
from tests.benchmarks.folders import write_benchmark


def test_an_own_collection_counts_only_with_the_registry_s_name_and_sizes(workspace: Workspace, tmp_path: Path) -> None:
    documents = [{"_id": f"d{i}", "text": f"text {i}"} for i in range(3633)]
    queries = [{"_id": f"q{i}", "text": f"query {i}"} for i in range(323)]
    qrels = "".join(f"q{i}\td{i}\t1\n" for i in range(323))
    add_benchmark(
        write_benchmark(tmp_path / "nfcorpus", documents=documents, queries=queries, qrels={"test": qrels}), workspace
    )
    add_benchmark(write_benchmark(tmp_path / "scifact"), workspace)
    assert {entry.name for entry, stored in benchmarks.list_registry(workspace) if stored} == {"nfcorpus"}
    assert [info.name for info in benchmarks.list_own(workspace)] == ["scifact"]
