"""Groups of benchmarks: what stands for a member, what does not, and means over what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
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
    here = {known.entry.name for known in benchmarks.list_registry(workspace, "beir") if known.here}
    assert here == {"nfcorpus"}
    assert [info.name for info in benchmarks.list_own(workspace)] == ["scifact"]


def test_a_group_of_which_nothing_is_here_cannot_be_evaluated(workspace: Workspace) -> None:
    assert benchmarks.is_several(workspace, "bright")
    assert not benchmarks.is_several(workspace, "nq")
    config = benchmarks.EvaluationConfig.from_dict({"retriever": "bm25", "benchmark": "bright"})
    with pytest.raises(ConfigError, match="Nothing of bright is in the workspace"):
        benchmarks.evaluate(workspace, config)
