#!/usr/bin/env bash
# ranx orders documents of equal score as they were put in: the same run, written in another order, has another score.
#
# trec_eval orders ties by document id, so that a run has one score. Where a run is made by going through the relevant
# documents first, ranx gives these the better ranks. `tests/evaluation` compares with trec_eval for that reason.
#
# Output seen:
#   ranx 0.3.21
#     MRR of one run of two tied documents: 1.0 with the relevant one written first, 0.5 with it written last
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet ranx==0.3.21

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

from ranx import Qrels, Run, evaluate

QRELS = Qrels({"q": {"a": 1}})

first = evaluate(QRELS, Run({"q": {"a": 0.7, "b": 0.7}}), "mrr")
last = evaluate(QRELS, Run({"q": {"b": 0.7, "a": 0.7}}), "mrr")
print(f"ranx {version('ranx')}")
print(f"  MRR of one run of two tied documents: {first} with the relevant one written first, {last} with it written last")

sys.exit(0 if (first, last) == (1.0, 0.5) else "The behaviour has changed.")
PYTHON
