"""Evaluators on a run and on a model from here: ir_measures, pytrec_eval, sentence-transformers' own, MTEB."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import ir_measures
import mteb
import pytrec_eval
from sentence_transformers import SentenceTransformer
from sentence_transformers.evaluation import InformationRetrievalEvaluator

given = Path(sys.argv[1])
ours = json.loads((given / "ours.json").read_text())["measures"]
print({name: version(name) for name in ("mteb", "ir_measures", "pytrec_eval-terrier", "sentence-transformers")})
print("ours", {name: round(value, 6) for name, value in ours.items()})


def compared(who: str, theirs: dict[str, float], tolerance: float) -> None:
    worst = max(abs(theirs[name] - ours[name]) for name in theirs)
    print(f"{who}: {len(theirs)} measures, largest difference {worst:.1e}, ndcg@10 {theirs['ndcg@10']:.6f}")
    assert worst <= tolerance, {name: (theirs[name], ours[name]) for name in theirs}


NAMES = {"ndcg@10": "nDCG@10", "p@1": "P@1", "recall@10": "R@10", "recall@100": "R@100", "map@100": "AP@100"}
measures = {name: ir_measures.parse_measure(theirs) for name, theirs in NAMES.items()}
qrels = list(ir_measures.read_trec_qrels(str(given / "demo.qrels")))
run = list(ir_measures.read_trec_run(str(given / "demo.run")))
means = ir_measures.calc_aggregate(measures.values(), qrels, run)
compared("ir_measures", {name: means[measure] for name, measure in measures.items()}, 1e-9)

of_qrels: dict[str, dict[str, int]] = {}
of_run: dict[str, dict[str, float]] = {}
for judgment in qrels:
    of_qrels.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.relevance
for line in run:
    of_run.setdefault(line.query_id, {})[line.doc_id] = line.score
TREC = {"ndcg@10": "ndcg_cut_10", "p@1": "P_1", "recall@10": "recall_10", "map@100": "map_cut_100"}
scores = pytrec_eval.RelevanceEvaluator(of_qrels, set(TREC.values())).evaluate(of_run)
compared("pytrec_eval", {n: sum(s[t] for s in scores.values()) / len(of_qrels) for n, t in TREC.items()}, 1e-9)

model = SentenceTransformer(str(given / "models" / "mean"), device="cpu")
texts = {}
for part in ("corpus", "queries"):
    lines = [json.loads(line) for line in (given / "task" / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()]
    texts[part] = {line["_id"]: f"{line.get('title', '')} {line['text']}".strip() for line in lines}
relevant = {query: {d for d, grade in grades.items() if grade > 0} for query, grades in of_qrels.items()}
queries = {query: texts["queries"][query] for query in relevant}
evaluator = InformationRetrievalEvaluator(
    queries, texts["corpus"], relevant, map_at_k=[100], main_score_function="cosine"
)
found = evaluator(model)
INFORMATION = {
    "ndcg@10": "ndcg@10", "mrr@10": "mrr@10", "p@1": "precision@1", "recall@10": "recall@10", "map@100": "map@100",
}  # fmt: skip
compared("InformationRetrievalEvaluator", {n: found[f"cosine_{theirs}"] for n, theirs in INFORMATION.items()}, 1e-6)

sys.path.insert(0, str(given / "task"))
from mteb_task import BenchmarkTask  # noqa: E402

cache = mteb.ResultCache(given / "mteb")
result = mteb.evaluate(
    model, BenchmarkTask(), cache=cache, overwrite_strategy="always", prediction_folder=given / "predictions"
)
reported = result.task_results[0].scores["test"][0]
MTEB = {
    "ndcg@10": "ndcg_at_10", "mrr@10": "mrr_at_10", "p@1": "precision_at_1", "recall@10": "recall_at_10",
    "recall@100": "recall_at_100", "map@100": "map_at_100",
}  # fmt: skip
compared("MTEB", {name: reported[theirs] for name, theirs in MTEB.items()}, 1e-5)
