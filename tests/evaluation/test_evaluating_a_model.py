"""A model's scores are those that trec_eval computes from its run; training can ask for them too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from cdp.base.worker import Stopped
from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark, load_benchmark
from cdp.evaluation import evaluate_model
from cdp.evaluation.evaluate import DevJudge, Vectors, in_trec_order, judge
from cdp.evaluation.results import write_run
from cdp.retrievers import load, resolve
from cdp.retrievers.encode import Embedded, EmbeddingStore, Encoding, encode
from cdp.retrievers.static import TokenMemo
from tests.benchmarks.folders import write_benchmark
from tests.evaluation.support import read_run, retrieve
from tests.support import shared

pytestmark = pytest.mark.slow  # they load torch


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    """With a memo: MuSiQue is embedded by two tests, and to tokenise it is all that takes time."""
    return load(resolve("static-minilm", Workspace(tmp_path_factory.mktemp("none"))), "cpu", memo=TokenMemo())


@pytest.fixture
def small(tmp_path: Path) -> Benchmark:
    return load_benchmark(write_benchmark(tmp_path / "small"))


def test_a_small_benchmark(model, small: Benchmark) -> None:
    found = evaluate_model(model, small, top_k=10)
    assert found.measures["ndcg@10"] == 1.0
    assert found.per_query["ndcg@10"].tolist() == [1.0, 1.0, 1.0]
    assert found.ranking.documents[:, 0].tolist() == [0, 2, 3]
    assert (found.ranking.documents[:, 4:] == -1).all()
    assert found.counts["judged_queries"] == 3
    assert "recall@100" not in found.measures
    assert found.counts["index_bytes"] == 4 * small.n_documents * model.get_embedding_dimension()
    assert found.counts["query_ms"] >= 0
    assert found.settings["machine"].split()[-1].startswith("processor")


def test_the_model_is_left_as_it_was_found(model, small: Benchmark) -> None:
    model.train()
    evaluate_model(model, small, top_k=10)
    assert model.training
    model.eval()


def test_a_stop_is_heard(model, small: Benchmark) -> None:
    def stop(phase: str, done: int, total: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        evaluate_model(model, small, watch=stop)


def test_the_documents_vectors_of_the_best_state_serve_the_test(model, small: Benchmark) -> None:
    judge_dev = DevJudge(small, lambda *_: None)
    assert judge_dev(model) == 1.0
    vectors = judge_dev.vectors
    judge_dev(model)  # no better: those of the first state stay
    assert judge_dev.vectors is vectors

    plain = evaluate_model(model, small, protocol="paper")
    again = evaluate_model(model, small, protocol="paper", vectors=vectors)
    assert again.counts["embeddings_reused"] == len(small.documents)
    assert plain.counts["embeddings_reused"] == 0
    assert again.ranking.documents.tolist() == plain.ranking.documents.tolist()
    np.testing.assert_array_equal(again.ranking.scores, plain.ranking.scores)


def test_vectors_of_other_documents_or_in_half_precision_are_not_taken(model, small: Benchmark) -> None:
    vectors = Vectors()
    one = Encoding("", "document")
    vectors.get(one, "hash", lambda: Embedded([np.ones((2, 3), np.float32)]))
    assert vectors.get(one, "other", lambda: Embedded([np.zeros((2, 3), np.float32)])).reused == 0
    half = Encoding("", "document", precision="fp16")
    for _ in range(2):
        assert vectors.get(half, "hash", lambda: Embedded([np.zeros((2, 3), np.float16)])).reused == 0


def test_excluded_documents_do_not_come_back(model, tmp_path: Path) -> None:
    queries = [{"_id": "q1", "text": "the moon pulls the water", "excluded_ids": ["d1"]}]
    folder = write_benchmark(tmp_path / "b", queries=queries, qrels={"test": "q1\td2\t1\n"})
    found = evaluate_model(model, load_benchmark(folder), top_k=10)
    assert 0 not in found.ranking.documents
    assert found.counts["excluded_pairs"] == 1


def test_unknown_relevant_documents_count_as_never_retrieved(model, tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", qrels={"test": "q1\td1\t1\nq1\tgone\t1\n"})
    found = evaluate_model(model, load_benchmark(folder, allow_unknown=True), top_k=10)
    assert found.measures["recall@10"] == 0.5


def test_equal_scores_are_put_in_trec_order(small: Benchmark) -> None:
    ranking = in_trec_order(small, np.array([[0, 1, 3, -1]]), np.array([[2.0, 1.0, 1.0, -np.inf]], np.float32))
    assert ranking.documents.tolist() == [[0, 3, 1, -1]]


def test_a_run_survives_being_written(model, small: Benchmark, tmp_path: Path) -> None:
    ranking = retrieve(small, model.encode(small.queries), model.encode(small.documents), 3)
    write_run(tmp_path / "run.parquet", small, ranking)
    run = read_run(tmp_path / "run.parquet")
    assert list(run) == ["q1", "q2", "q3"]
    assert list(run["q1"].values()) == [float(s) for s in ranking.scores[0]]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("musique_sample", ""),
        pytest.param("scifact", "test", marks=pytest.mark.soak),
        pytest.param("hotpotqa_sample", "test", marks=pytest.mark.soak),
        pytest.param("2wikimultihopqa_sample", "", marks=pytest.mark.soak),
    ],
)
def test_real_benchmarks_agree_with_trec_eval_on_every_query(model, name: str, split: str, tmp_path: Path) -> None:
    benchmark = load_benchmark(shared(f"data/{name}"), split)
    found = evaluate_model(model, benchmark)
    write_run(tmp_path / "run.parquet", benchmark, found.ranking)
    asked = {"ndcg_cut.10", "recall.10,100", "map_cut.100", "P.1", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(benchmark.qrels, asked).evaluate(read_run(tmp_path / "run.parquet"))
    trec = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "recall@100": "recall_100", "map@100": "map_cut_100"}
    for ours, trec_name in {**trec, "p@1": "P_1"}.items():
        expected = [theirs[query][trec_name] for query in benchmark.query_ids]
        np.testing.assert_allclose(found.per_query[ours], expected, rtol=0, atol=1e-9)
        assert found.measures[ours] == pytest.approx(np.mean(expected), abs=1e-12)
    reciprocal = np.array([theirs[query]["recip_rank"] for query in benchmark.query_ids])
    np.testing.assert_allclose(found.per_query["mrr@10"], np.where(reciprocal > 0.0999, reciprocal, 0), atol=1e-9)


def test_a_second_evaluation_encodes_nothing(model, small: Benchmark, workspace: Workspace) -> None:
    store = EmbeddingStore(workspace)
    first = evaluate_model(model, small, top_k=10, store=store, model_hash="m")
    again = evaluate_model(model, small, top_k=10, store=store, model_hash="m")
    reused = ("embeddings_reused", "query_embeddings_reused")
    assert [first.counts[name] for name in reused] == [0, 0]
    assert [again.counts[name] for name in reused] == [small.n_documents, small.n_queries]
    np.testing.assert_array_equal(again.ranking.scores, first.ranking.scores)
    assert again.measures == first.measures


def test_half_precision_retrieves_the_same(model) -> None:
    """On MuSiQue the first ten documents of fp16 embeddings are those of fp32 but for a few in a thousand."""
    benchmark = load_benchmark(shared("data/musique_sample"))
    queries = encode(model, benchmark.queries, Encoding("m", "query"))
    documents = encode(model, benchmark.documents, Encoding("m", "document"))
    exact = retrieve(benchmark, queries, [documents], 10)
    half = retrieve(benchmark, queries.astype(np.float16), [documents.astype(np.float16)], 10)
    pairs = zip(exact.documents, half.documents, strict=True)
    overlap = np.mean([len(set(a.tolist()) & set(b.tolist())) / 10 for a, b in pairs])
    assert overlap > 0.99
    one, other = (judge(benchmark, ranking)[0]["ndcg@10"] for ranking in (exact, half))
    assert abs(one - other) < 1e-3
