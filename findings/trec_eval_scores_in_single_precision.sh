#!/usr/bin/env bash
# trec_eval keeps scores in single precision: two documents that differ in the ninth digit are tied, and the larger id
# stands first.
#
# pytrec_eval takes doubles of Python and hands them on as C floats; ir_measures hands them to pytrec_eval. Similarities
# that were computed in double precision, or a sum of two retrievers' scores, are put into another order than their own.
# `cdp/evaluation/measures.py` ranks in single precision for that reason.
#
# Output seen:
#   pytrec_eval-terrier 0.5.11, ir_measures 0.4.3
#     the relevant document is ahead by 1e-06: reciprocal rank 1.0 (pytrec_eval), 1.0 (ir_measures)
#     the relevant document is ahead by 1e-09: reciprocal rank 0.5 (pytrec_eval), 0.5 (ir_measures)
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet pytrec_eval-terrier==0.5.11 ir_measures==0.4.3

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import ir_measures
import pytrec_eval

QRELS = {"q": {"a": 1}}

print(f"pytrec_eval-terrier {version('pytrec_eval-terrier')}, ir_measures {version('ir_measures')}")
seen = []
for ahead in (1e-6, 1e-9):
    run = {"q": {"a": 0.7 + ahead, "b": 0.7}}
    direct = pytrec_eval.RelevanceEvaluator(QRELS, {"recip_rank"}).evaluate(run)["q"]["recip_rank"]
    through = ir_measures.calc_aggregate([ir_measures.RR], QRELS, run)[ir_measures.RR]

    print(f"  the relevant document is ahead by {ahead:.0e}: reciprocal rank {direct} (pytrec_eval), {through} (ir_measures)")
    seen.append((direct, through))

sys.exit(0 if seen == [(1.0, 1.0), (0.5, 0.5)] else "The behaviour has changed.")
PYTHON
