#!/usr/bin/env bash
# PyLate's reranking gives a short document another score, and another rank, when a longer one stands beside it.
#
# `rank.rerank` pads documents with zero vectors to the longest and masks nothing, so a query vector that is unlike all of a
# short document's finds 0 in place of a negative product; `colbert_scores` with a mask multiplies by it, which gives 0 too.
# MaxSim is the highest product with a token of the document: sentence-transformers 6 masks, and so do we. Scores of
# `cdp/retrievers/late_interaction.py` and PyLate's are equal where no such query vector is.
#
# Output seen:
#   PyLate 1.6.0, torch 2.13.0+cpu
#   one document of one token: -1.00
#   the same beside one of two tokens, whose MaxSim is -0.60: [('short', 0.0), ('long', -0.6)]
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv environment
environment/bin/python -m pip install --quiet torch==2.13.0
# All that PyLate asks for but fast-plaid, which asks for torch 2.11.0; ranking does without.
environment/bin/python -m pip install --quiet sentence-transformers==5.3.0 transformers==5.3.0 datasets==5.2.0
environment/bin/python -m pip install --quiet accelerate==1.15.0 pandas==3.1.1 ujson==5.12.0 ninja==1.11.1.4 fastkmeans==0.5.0 usearch==2.26.6 torch==2.13.0
environment/bin/python -m pip install --quiet --no-deps pylate==1.6.0

environment/bin/python -I - <<'PYTHON' 2>/dev/null
import sys
from importlib.metadata import version

import torch
from pylate import rank

query = torch.tensor([[1.0, 0.0]])
short = torch.tensor([[-1.0, 0.0]])
long = torch.tensor([[-0.6, 0.8], [-0.8, 0.6]])

print(f"PyLate {version('pylate')}, torch {torch.__version__}")
alone = rank.rerank([["short"]], [query], [[short]])[0][0]["score"]
print(f"one document of one token: {alone:.2f}")
found = [(one["id"], round(one["score"], 2)) for one in rank.rerank([["short", "long"]], [query], [[short, long]])[0]]
exact = float((query @ long.T).max())
print(f"the same beside one of two tokens, whose MaxSim is {exact:.2f}: {found}")
sys.exit(0 if alone == -1.0 and found[0] == ("short", 0.0) else "The behaviour has changed.")
PYTHON
