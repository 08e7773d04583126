"""Groups of benchmarks: what stands for a member, what does not, and means over what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, describe
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.registry import find, parts
from cdp.services import benchmarks
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.published import put
from tests.services.support import evaluation


@pytest.fixture
def forums(workspace: Workspace, tmp_path: Path) -> list[str]:
    """All twelve forums of CQADupStack, each as large as three documents."""
    folder = put(tmp_path / "forum", published.mteb_forum())
    for part in parts("cqadupstack"):
        download_benchmark(part, workspace, folder=folder)
    return [part.name for part in parts("cqadupstack")]


def evaluated(workspace: Workspace, name: str, score: float, *, judgments: str = "", **more: str) -> None:
    """A result of static-minilm on a benchmark of the workspace, as it is now unless other ``judgments`` are named."""
    judgments = judgments or describe(workspace.benchmark(name), workspace).content_hash
    evaluation(workspace, "static-minilm", name, {"q1": score}, judgments=judgments, **more)


@pytest.mark.slow
def test_cqadupstack_is_the_mean_of_its_forums_in_the_workspace(workspace: Workspace, forums: list[str]) -> None:
    for number, name in enumerate(forums):
        evaluated(workspace, name, number / 12)
    (score,) = benchmarks.scores(workspace, "cqadupstack")
    assert score.mean.value == pytest.approx(100 * sum(range(12)) / 144)
    assert score.mean.coverage == "12/12"
    (of_beir,) = benchmarks.scores(workspace, "beir")
    assert (of_beir.mean.coverage, of_beir.mean.value) == ("1/14", pytest.approx(score.mean.value))


@pytest.mark.slow
def test_eleven_forums_are_no_member_of_beir(workspace: Workspace, forums: list[str]) -> None:
    for name in forums[1:]:
        evaluated(workspace, name, 0.5)
    assert benchmarks.scores(workspace, "beir") == []
    (score,) = benchmarks.scores(workspace, "cqadupstack")
    assert score.mean.missing == (forums[0],)


def test_the_newest_result_on_these_judgments_counts(workspace: Workspace, tmp_path: Path) -> None:
    entry = find("musique")
    assert entry is not None
    download_benchmark(entry, workspace, folder=put(tmp_path, published.musique()))
    evaluated(workspace, "musique", 0.1, split="dev", created="2026-01-01T00:00:00+00:00")
    evaluated(workspace, "musique", 0.3, split="dev", created="2026-01-02T00:00:00+00:00")
    evaluated(workspace, "musique", 0.9, split="train", created="2026-01-03T00:00:00+00:00")
    evaluated(workspace, "musique", 0.8, split="dev", created="2026-01-04T00:00:00+00:00", judgments="of another copy")
    (score,) = benchmarks.scores(workspace, "multi-hop")
    assert score.mean.scores == {"musique": pytest.approx(30.0)}


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
