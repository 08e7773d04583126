#!/usr/bin/env bash
# One run has two means: pytrec_eval leaves a judged query without results out, ir_measures counts it as 0.
#
# ir_measures asks pytrec_eval for the scores and adds the missing queries itself. By pytrec_eval's mean a retriever gains
# from answering easy queries only. `docs/METHODS.md` says which the product reports: 0.
#
# Output seen:
#   pytrec_eval-terrier 0.5.11, ir_measures 0.4.3
#     NDCG@10 of two queries of which one was answered, pytrec_eval: 1.00
#     NDCG@10 of two queries of which one was answered, ir_measures: 0.50
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet pytrec_eval-terrier==0.5.11 ir_measures==0.4.3

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version
from statistics import mean

import ir_measures
import pytrec_eval

QRELS = {"q1": {"a": 1}, "q2": {"b": 1}}
RUN = {"q1": {"a": 2.0, "b": 1.0}}

print(f"pytrec_eval-terrier {version('pytrec_eval-terrier')}, ir_measures {version('ir_measures')}")
scores = pytrec_eval.RelevanceEvaluator(QRELS, {"ndcg_cut.10"}).evaluate(RUN)
means = {
    "pytrec_eval": mean(score["ndcg_cut_10"] for score in scores.values()),
    "ir_measures": ir_measures.calc_aggregate([ir_measures.nDCG @ 10], QRELS, RUN)[ir_measures.nDCG @ 10],
}
for library, value in means.items():
    print(f"  NDCG@10 of two queries of which one was answered, {library}: {value:.2f}")

sys.exit(0 if means == {"pytrec_eval": 1.0, "ir_measures": 0.5} else "The behaviour has changed.")
PYTHON
