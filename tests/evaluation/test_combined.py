"""Hybrid and reranked results against independent implementations, and through the worker to the table."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from cdp.base.config import EvaluationConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import Benchmark, add_benchmark, load_benchmark
from cdp.catalog import evaluations
from cdp.evaluation import combined
from cdp.evaluation.evaluate import Evaluation, Protocol, Ranking
from cdp.results import differences
from cdp.services import evaluation
from tests.benchmarks.folders import write_benchmark
from tests.evaluation.support import read_run
from tests.metrics.models import tiny_cross_encoder
from tests.support import work
from tests.support_models import tiny_multi_vector

RANKING = st.permutations(range(8)).flatmap(lambda order: st.integers(0, 8).map(lambda n: order[:n]))


def fused_by_fractions(rankings: list[list[int]], ids: list[str]) -> list[int]:
    """Cormack et al. 2009, equation of section 2, in exact arithmetic; ties by descending document id."""
    found = {number for ranking in rankings for number in ranking}
    scores = {n: sum((Fraction(1, 60 + r.index(n) + 1) for r in rankings if n in r), Fraction()) for n in found}
    # As float32, which is what a run keeps.
    single = {n: float(np.float32(float(score))) for n, score in scores.items()}
    by_id = sorted(found, key=lambda n: ids[n], reverse=True)
    return sorted(by_id, key=lambda n: -single[n])


@pytest.mark.slow
@given(first=RANKING, second=RANKING, top_k=st.integers(1, 10))
def test_fusion_is_the_formula_of_the_paper(first: list[int], second: list[int], top_k: int) -> None:
    ids = ["b", "a", "d10", "d9", "ü", "z", "0", "c"]
    rankings = [np.array([[*r, *[-1] * (8 - len(r))]], np.int64) for r in (first, second)]
    fused = combined.fuse(rankings, ids, top_k)
    expected = fused_by_fractions([first, second], ids)[:top_k]
    assert fused.documents[0].tolist() == [*expected, *[-1] * (top_k - len(expected))]
    assert np.isneginf(fused.scores[0, len(expected) :]).all()


def test_what_both_find_stands_before_what_one_finds_first() -> None:
    fused = combined.fuse([np.array([[0, 1, 2]]), np.array([[3, 1, 4]])], list("abcde"), 3)
    assert fused.documents.tolist() == [[1, 3, 0]]  # 2/62, then a tie of 1/61: the higher id first
    assert fused.scores[0] == pytest.approx([2 / 62, 1 / 61, 1 / 61])


def retrieved(similarity: str, documents: list[list[int]], scores: list[list[float]]) -> Evaluation:
    """A run whose rows are filled up to ten documents."""
    ranking = Ranking(
        np.array([[*row, *[-1] * (10 - len(row))] for row in documents], np.int64),
        np.array([[*row, *[-np.inf] * (10 - len(row))] for row in scores], np.float32),
    )
    return Evaluation({}, {}, ranking, Protocol("paper", similarity), {}, {}, {"language": "en"})


@pytest.fixture
def small(tmp_path: Path) -> Benchmark:
    return load_benchmark(write_benchmark(tmp_path / "small"))


NONE = -np.inf
DENSE = retrieved("cosine", [[0, 1, 2], [3, 0, -1], [1, 2, 0]], [[0.8, 0.5, 0.2], [0.4, 0.1, NONE], [0.9, 0.3, 0.1]])
LEXICAL = retrieved("bm25", [[2, 3, -1], [1, 3, 0], [-1, -1, -1]], [[6.0, 3.0, NONE], [8, 2, 1], [NONE, NONE, NONE]])


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_weighted_fusion_is_the_convex_combination_of_scaled_scores(small: Benchmark, weight: float) -> None:
    fused = combined.weighted(small, DENSE, LEXICAL, weight)
    for row in range(3):
        mixed: dict[int, float] = {}
        for found, share, least in ((DENSE, weight, -1.0), (LEXICAL, 1 - weight, 0.0)):
            pairs = zip(found.ranking.documents[row].tolist(), found.ranking.scores[row].tolist(), strict=True)
            there = {number: score - least for number, score in pairs if number >= 0}
            for number, score in there.items():
                mixed[number] = mixed.get(number, 0.0) + share * score / max(there.values())
        best = sorted(mixed.values(), reverse=True)
        got = fused.ranking.documents[row].tolist()
        assert [mixed[number] for number in got if number >= 0] == pytest.approx(best, abs=1e-6)
    assert fused.settings["fusion_weight"] == weight


def test_the_weight_is_the_best_on_dev_and_of_equal_ones_the_middle(small: Benchmark) -> None:
    relevant = [small.document_ids.index(next(iter(small.qrels[query]))) for query in small.query_ids]
    others = [next(i for i in range(small.n_documents) if small.document_ids[i] not in small.qrels[query])
              for query in small.query_ids]  # fmt: skip
    right = [[good, bad] for good, bad in zip(relevant, others, strict=True)]
    wrong = [[bad, good] for good, bad in right]
    scores = [[0.9, -0.9]] * 3
    good, bad = (retrieved("cosine", documents, scores) for documents in (right, wrong))
    by_words = retrieved("bm25", right, [[5.0, 1.0]] * 3)
    assert combined.best_weight(small, good, by_words) == (0.5, pytest.approx(1.0))
    weight, score = combined.best_weight(small, bad, by_words)
    assert weight < 0.5
    assert score == pytest.approx(1.0)


def _run(workspace: Workspace, job_id: str, **config: Any) -> dict[str, Any]:
    folder = workspace.job(job_id)
    folder.mkdir(parents=True)
    given_config = {"retriever": "static-minilm", "gpus": 0, "top_k": 10, "benchmark": "small", **config}
    (folder / "spec.json").write_text(json.dumps({"id": job_id, "kind": "evaluation", "config": given_config}))
    assert work("cdp.workers.evaluation", folder) == 0
    result: dict[str, Any] = json.loads((folder / "results" / "evaluation.json").read_text())
    benchmark = load_benchmark(workspace.benchmark("small"))
    theirs = pytrec_eval.RelevanceEvaluator(benchmark.qrels, {"ndcg_cut.10"}).evaluate(
        read_run(folder / "results" / "run.parquet")
    )
    expected = [theirs[query]["ndcg_cut_10"] for query in benchmark.query_ids]
    np.testing.assert_allclose(result["per_query"]["ndcg@10"], expected, atol=1e-9)
    return result


@pytest.mark.slow
def test_hybrid_and_reranked_are_rows_of_their_own(workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "small"), workspace)
    encoder = str(tiny_cross_encoder(tmp_path / "ce"))
    alone, lexical = _run(workspace, "e1"), _run(workspace, "e2", retriever="bm25")
    hybrid = _run(workspace, "e3", hybrid=True)
    reranked = _run(workspace, "e4", rerank=encoder)
    both = _run(workspace, "e5", hybrid=True, rerank=encoder)

    runs = [read_run(workspace.job(f"e{i}") / "results" / "run.parquet") for i in range(1, 6)]
    ids = ["d1", "d2", "d3", "d4"]
    for query in ("q1", "q2", "q3"):
        ranked = [[ids.index(document) for document in run[query]] for run in runs[:2]]
        assert [ids.index(document) for document in runs[2][query]] == fused_by_fractions(ranked, ids)

    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    model = CrossEncoder(encoder, device="cpu")
    benchmark = load_benchmark(workspace.benchmark("small"))
    texts = dict(zip(benchmark.document_ids, benchmark.documents, strict=True))
    for query, text in zip(benchmark.query_ids, benchmark.queries, strict=True):
        found = runs[3][query]
        scores = model.predict([(text, texts[d]) for d in found], activation_fn=Identity())
        np.testing.assert_allclose(list(found.values()), scores, atol=1e-5)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert set(found) == set(runs[0][query])
        assert list(found) == list(runs[4][query])  # the same four documents, read by the same model

    assert [r["retriever"]["id"] for r in (alone, lexical, hybrid, reranked, both)] == [
        "static-minilm",
        "bm25",
        "hybrid:static-minilm",
        f"reranked:static-minilm:{encoder}",
        f"reranked:hybrid:static-minilm:{encoder}",
    ]
    assert hybrid["retriever"]["name"].endswith(" · hybrid")
    assert hybrid["settings"] | {"fusion_k": 60, "fusion_depth": 10, "bm25_language": "en"} == hybrid["settings"]
    assert reranked["settings"]["rerank_depth"] == 50
    assert len({row["retriever_id"] for row in evaluations(workspace)}) == 5
    rows = differences.compare(workspace, "bm25").rows
    assert {row.retriever_id for row in rows if row.difference is not None} == {
        r["retriever"]["id"] for r in (alone, hybrid, reranked, both)
    }
    for config, job in (({"hybrid": True}, "e3"), ({"rerank": encoder}, "e4"), ({}, "e1")):
        wish = {"retriever": "static-minilm", "benchmark": "small", "split": "test", "top_k": 10, **config}
        assert evaluation.existing(workspace, EvaluationConfig.from_dict(wish)) == job


@pytest.mark.slow
def test_late_interaction_reorders_what_another_found(workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "small"), workspace)
    tokens = str(tiny_multi_vector(tmp_path / "tokens"))
    alone, first = _run(workspace, "e1", retriever=tokens), _run(workspace, "e2")
    reranked = _run(workspace, "e3", rerank=tokens)
    shallow = _run(workspace, "e4", rerank=tokens, rerank_depth=2)
    runs = [read_run(workspace.job(f"e{i}") / "results" / "run.parquet") for i in range(1, 5)]

    assert reranked["retriever"]["id"] == f"reranked:static-minilm:{tokens}"
    assert reranked["retriever"]["name"].endswith(" · reranked by model")
    assert (reranked["settings"]["rerank_depth"], shallow["settings"]["rerank_depth"]) == (100, 2)
    sizes = [result["counts"]["index_bytes"] for result in (alone, first, reranked)]
    assert sizes[0] + sizes[1] == sizes[2]
    for query, found in runs[0].items():  # static-minilm finds all four documents
        assert list(runs[2][query]) == list(found)
        assert [*runs[2][query].values()] == pytest.approx([*found.values()], rel=1e-6)
        assert set([*runs[3][query]][:2]) == set([*runs[1][query]][:2])
        assert [*runs[3][query]][2:] == [*runs[1][query]][2:]

    with pytest.raises(ConfigError, match="'rerank_depth' is 20, and 10 documents are kept"):
        evaluation.checked(workspace, "bm25", "small", rerank=tokens, rerank_depth=20, top_k=10)


def test_only_the_first_documents_are_reranked() -> None:
    class _Benchmark:
        document_ids, documents = ("a", "b", "c", "d"), ["1", "2", "3", "4"]
        query_ids, queries, qrels = ("q",), ["?"], {"q": {"c": 1}}
        relevant_from, passages = 1, False

    from cdp.evaluation.evaluate import Evaluation, Protocol, Ranking

    ranking = Ranking(np.array([[3, 2, 1, 0]]), np.array([[4, 3, 2, 1]], np.float32))
    first = Evaluation({}, {}, ranking, Protocol("published", "cosine"), {}, {})
    reranked = combined.rerank(_Benchmark(), first, lambda pairs: np.array([-float(p[1]) for p in pairs]), depth=2)  # type: ignore[arg-type]
    assert reranked.ranking.documents.tolist() == [[2, 3, 1, 0]]
    assert (np.diff(reranked.ranking.scores[0]) < 0).all()
    assert reranked.measures["p@1"] == 1.0


@pytest.mark.slow
def test_what_cannot_be_combined_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(write_benchmark(tmp_path / "small"), workspace)
    with pytest.raises(ConfigError, match="fused with itself"):
        evaluation.checked(workspace, "bm25", "small", hybrid=True)
    with pytest.raises(ConfigError, match="embeds single texts"):
        evaluation.checked(workspace, "bm25", "small", rerank="minilm")
