"""The main job on real data, from an empty workspace, by the command line alone.

2,756 stories with human questions are imported, ``static-minilm`` is trained on them and evaluated before and after on
two real benchmarks (on every one in ``make gauntlet``); every score is recomputed by pytrec_eval-terrier from the run
that the evaluation kept. It takes minutes of two cores: ``make soak``; the gauntlet's short form takes the same way in
``make test``.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cdp.base.workspace import Workspace, read_json
from cdp.benchmarks import load_benchmark
from tests.cli.support import spawn as run
from tests.cli.support import spawned_answer as answer
from tests.support import shared

pytestmark = [pytest.mark.slow, pytest.mark.soak, pytest.mark.shared]

BENCHMARKS = {"hotpotqa_sample": "test", "musique_sample": "train"}


def test_from_documents_to_a_better_retriever(workspace: Workspace) -> None:
    corpus = answer("corpus", "add", str(shared("data/multiquery/fairytaleqa_train_en.jsonl.gz")), "--name", "stories")
    assert (corpus["n_documents"], corpus["existed"]) == (2756, False)
    assert corpus["query_set"]
    query_sets = answer("queries", "list")
    assert [(q["n_documents"], q["n_queries"], q["kind"]) for q in query_sets] == [(2756, 7767, "unknown")]

    for name in BENCHMARKS:
        assert answer("benchmarks", "add", str(shared(f"data/{name}")))["id"] == name
    wanted = [word for name, split in BENCHMARKS.items() for word in ("--evaluate", f"{name}:{split}")]
    trained = answer("train", corpus["query_set"], "--set", "per_doc=5", *wanted, "--wait")
    assert trained["state"] == "finished"
    assert trained["pairs"] == 7089

    jobs = answer("jobs", "list")
    evaluations = [job["id"] for job in jobs if job["kind"] == "evaluation"]
    assert len(evaluations) == 3 * len(BENCHMARKS), "trained, untrained and BM25"
    for job_id in evaluations:
        run("jobs", "wait", job_id)

    comparison = answer("results", "compare", "--baseline", "static-minilm")
    rows = {(row["benchmark"], row["retriever_id"]): row for row in comparison["rows"]}
    for name, split in BENCHMARKS.items():
        before, after = rows[name, "static-minilm"], rows[name, trained["id"]]
        assert before["split"] == after["split"] == split
        assert after["difference"] == pytest.approx(after["ndcg"] - before["ndcg"], abs=1e-9)
        assert after["low"] <= after["difference"] <= after["high"]
        assert after["difference"] >= 3.0, f"{name}: {before['ndcg']:.2f} to {after['ndcg']:.2f}"

    for job_id in evaluations:
        check_every_score(workspace.job(job_id))


def check_every_score(job: Path) -> None:
    """Each query's NDCG@10 in a result equals pytrec_eval's on the same run to 1e-6."""
    import pytrec_eval

    result = read_json(job / "results" / "evaluation.json")
    benchmark = load_benchmark(result["benchmark"]["folder"], result["benchmark"]["split"])
    run_of: dict[str, dict[str, float]] = {}
    for row in pq.read_table(job / "results" / "run.parquet").to_pylist():
        run_of.setdefault(row["query_id"], {})[row["document_id"]] = row["score"]
    oracle = pytrec_eval.RelevanceEvaluator(benchmark.qrels, {"ndcg_cut.10"}).evaluate(run_of)
    ours = dict(zip(result["per_query"]["query_ids"], result["per_query"]["ndcg@10"], strict=True))
    assert ours.keys() == benchmark.qrels.keys()
    for query, value in ours.items():
        assert value == pytest.approx(oracle[query]["ndcg_cut_10"], abs=1e-6), query
    assert result["measures"]["ndcg@10"] == pytest.approx(sum(ours.values()) / len(ours), abs=1e-9)
