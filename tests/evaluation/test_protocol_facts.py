"""What a protocol asks for beside its files is honoured: equal ids, exclusions, TREC-DL's grades, missing results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark, load_benchmark, manifests
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.manifests import Manifest
from cdp.benchmarks.registry import find
from cdp.evaluation.evaluate import Ranking, judge
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.published import put
from tests.evaluation.support import retrieve

pytestmark = pytest.mark.slow


def of_registry(workspace: Workspace, name: str, folder: Path) -> Benchmark:
    entry = find(name)
    assert entry is not None
    download_benchmark(entry, workspace, folder=folder)
    return load_benchmark(workspace.benchmarks / name)


def one_hot(benchmark: Benchmark, preferred: dict[str, list[str]]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings under which each query retrieves the named documents first, in that order."""
    n = benchmark.n_documents
    documents = np.eye(n, dtype=np.float32)
    queries = np.zeros((benchmark.n_queries, n), np.float32)
    for row, query in enumerate(benchmark.query_ids):
        for rank, document in enumerate(preferred.get(query, [])):
            queries[row, benchmark.document_ids.index(document)] = 1.0 / (rank + 1)
    return queries, documents


def test_bright_s_exclusions_leave_before_the_cut(workspace: Workspace, tmp_path: Path) -> None:
    benchmark = of_registry(workspace, "bright-biology", put(tmp_path, published.bright()))
    wanted = {"1": ["bees/d_4.txt", "moon/b_2.txt", "bees/c_3.txt"], "0": ["moon/a_1.txt"]}
    queries, documents = one_hot(benchmark, wanted)
    ranking = retrieve(benchmark, queries, [documents], 1)
    first = [benchmark.document_ids[i] for i in ranking.documents[:, 0]]
    assert dict(zip(benchmark.query_ids, first, strict=True)) == {"0": "moon/a_1.txt", "1": "bees/c_3.txt"}
    ranking = retrieve(benchmark, queries, [documents], 10)
    assert judge(benchmark, ranking)[0]["ndcg@10"] == 1.0


def test_a_query_does_not_retrieve_itself(tmp_path: Path) -> None:
    queries = [{"_id": "d1", "text": "counter this"}, {"_id": "q2", "text": "other"}]
    folder = write_benchmark(tmp_path / "arguana", queries=queries, qrels={"test": "d1\td3\t1\nq2\td2\t1\n"})
    benchmark = load_benchmark(folder)
    embedded = one_hot(benchmark, {"d1": ["d1", "d3"], "q2": ["d2"]})
    ranking = retrieve(benchmark, embedded[0], [embedded[1]], 1)
    assert [benchmark.document_ids[i] for i in ranking.documents[:, 0]] == ["d3", "d2"]


@pytest.mark.parametrize(("self_match", "left_out"), [(None, {}), (True, {"d1": ("d1",)}), (False, {})])
def test_a_manifest_says_what_equal_ids_mean(
    tmp_path: Path, self_match: bool | None, left_out: dict[str, tuple[str, ...]]
) -> None:
    queries = [{"_id": "d1", "text": "a"}]
    folder = write_benchmark(tmp_path / "b", queries=queries, qrels={"test": "d1\td1\t1\nd1\td3\t1\n"})
    manifests.write(folder, Manifest(self_match=self_match))
    found = load_benchmark(folder)
    assert found.excluded == left_out
    assert any("equal ids mean nothing" in warning for warning in found.warnings) == (self_match is None)


def test_what_the_protocol_asks_for_is_part_of_the_benchmark_s_hash(tmp_path: Path) -> None:
    hashes = []
    for number, manifest in enumerate((None, Manifest(), Manifest(self_match=True), Manifest(relevant_from=2))):
        folder = write_benchmark(tmp_path / str(number))
        if manifest is not None:
            manifests.write(folder, manifest)
        hashes.append(load_benchmark(folder).hash)
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_trec_dl_s_binary_measures_count_from_grade_two_and_ndcg_all(workspace: Workspace, tmp_path: Path) -> None:
    passages, elsewhere = published.trec_dl()
    benchmark = of_registry(workspace, "trec-dl-2019", put(tmp_path / "dl", {**passages, **elsewhere}))
    run = {"156493": {"2": 3.0, "1": 2.0, "3": 1.0}, "1110199": {"5": 3.0, "156493": 2.0, "4": 1.0}}
    numbers = np.full((2, 10), -1, np.int64)
    for row, query in enumerate(benchmark.query_ids):
        ids = sorted(run[query], key=run[query].__getitem__, reverse=True)
        numbers[row, : len(ids)] = [benchmark.document_ids.index(d) for d in ids]
    means, per_query, absent = judge(benchmark, Ranking(numbers, np.zeros((2, 10), np.float32)))
    assert absent == 0
    names = {"ndcg@10": "ndcg_cut_10", "p@1": "P_1", "mrr@10": "recip_rank", "recall@10": "recall_10"}
    for ours, theirs in names.items():
        level = 1 if ours.startswith("ndcg") else 2
        evaluator = pytrec_eval.RelevanceEvaluator(benchmark.qrels, {theirs}, relevance_level=level)
        expected = evaluator.evaluate(run)
        assert per_query[ours].tolist() == pytest.approx([expected[q][theirs] for q in benchmark.query_ids], abs=1e-9)
    assert means["p@1"] == 0.0
    assert 0.0 < means["ndcg@10"] < 1.0


def test_a_judged_query_without_results_counts_zero_and_is_counted(tmp_path: Path) -> None:
    benchmark = load_benchmark(write_benchmark(tmp_path / "b"))
    numbers = np.array([[0], [-1], [3]], np.int64)
    means, per_query, absent = judge(benchmark, Ranking(numbers, np.zeros((3, 1), np.float32)))
    assert absent == 1
    assert per_query["p@1"].tolist() == [1.0, 0.0, 1.0]
    assert means["p@1"] == pytest.approx(2 / 3)


def test_files_are_judged_by_their_best_passage(tmp_path: Path) -> None:
    ids = [f"{file}.pdf#p{n}-{n}" for file in "abc" for n in (1, 2, 3)]
    folder = write_benchmark(
        tmp_path / "passages",
        documents=[{"_id": name, "text": f"text of {name}"} for name in ids],
        queries=[{"_id": "q", "text": "one"}, {"_id": "r", "text": "two"}],
        qrels={"test": "query-id\tcorpus-id\tscore\nq\tb.pdf#p3-3\t1\nr\tc.pdf#p1-1\t1\nr\tc.pdf#p2-2\t2\n"},
    )
    assert not load_benchmark(folder, "test").passages, "ids like those of passages say nothing"
    manifests.write(folder, Manifest(source={"corpus": "files", "unit": "passage"}))
    benchmark = load_benchmark(folder, "test")
    # q: two passages of file a, then another passage of the right file; r: file b, then the right file.
    numbers = np.array([[0, 1, 4, 5] + 6 * [-1], [3, 4, 5, 6] + 6 * [-1]])
    means, per_query, _ = judge(benchmark, Ranking(numbers, np.zeros((2, 10), np.float32)))
    second = 1 / np.log2(3)
    assert per_query["ndcg@10"][0] == pytest.approx(1 / np.log2(5))
    assert per_query["ndcg@10_of_files"].tolist() == pytest.approx([second, second])
    assert means["ndcg@10_of_files"] == pytest.approx(second)
