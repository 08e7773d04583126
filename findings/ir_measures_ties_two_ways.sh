#!/usr/bin/env bash
# In ir_measures RR@10 can be twice RR on one run: the two order documents of equal score in opposite ways.
#
# RR comes from trec_eval, where the larger id stands first. RR@10 comes from the script of MS MARCO, where the smaller
# one does. Retrievers of coarse scores (fused ranks, BM25 on short texts, vectors of few bits) have such ties.
# `docs/INTERCHANGE.md` says which of the two the product follows: trec_eval, in all measures.
#
# Output seen:
#   ir_measures 0.4.3, pytrec_eval-terrier 0.5.11
#     two documents of one score, the smaller id relevant: RR 0.5, RR@10 1.0
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet ir_measures==0.4.3 pytrec_eval-terrier==0.5.11

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import ir_measures
from ir_measures import RR

QRELS = {"q": {"a": 1}}
RUN = {"q": {"a": 0.5, "b": 0.5}}

whole, first_ten = (ir_measures.calc_aggregate([measure], QRELS, RUN)[measure] for measure in (RR, RR @ 10))
print(f"ir_measures {version('ir_measures')}, pytrec_eval-terrier {version('pytrec_eval-terrier')}")
print(f"  two documents of one score, the smaller id relevant: RR {whole}, RR@10 {first_ten}")

sys.exit(0 if (whole, first_ten) == (0.5, 1.0) else "The behaviour has changed.")
PYTHON
