#!/usr/bin/env bash
# bm25s fills its answer with documents that hold no word of the query: the last of the corpus, with score 0.
#
# Written to a run, they are ranked like the others: a query that matches nothing retrieves the end of the corpus, and
# scores there by chance. `cdp/retrievers/bm25.py` leaves documents of score 0 out.
#
# Output seen:
#   bm25s 0.3.16
#     four documents, of which one holds "hives": documents [0, 3, 2], scores [0.499, 0.0, 0.0]
#     four documents, of which none holds "zebra": documents [3, 2, 1], scores [0.0, 0.0, 0.0]
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet bm25s==0.3.16

env/bin/python -I - <<'PYTHON'
import sys
from importlib.metadata import version

import bm25s

TEXTS = ["bees live in hives", "cats sleep all day", "dogs bark at night", "ships load grain"]

retriever = bm25s.BM25()
retriever.index(bm25s.tokenize(TEXTS, show_progress=False), show_progress=False)

print(f"bm25s {version('bm25s')}")
seen = []
for word, holders in (("hives", "one holds"), ("zebra", "none holds")):
    found = retriever.retrieve(bm25s.tokenize([word], show_progress=False), k=3, show_progress=False)
    documents, scores = found.documents[0].tolist(), [round(float(score), 3) for score in found.scores[0]]

    print(f'  four documents, of which {holders} "{word}": documents {documents}, scores {scores}')
    seen.append((len(documents), sum(score > 0 for score in scores)))

sys.exit(0 if seen == [(3, 1), (3, 0)] else "The behaviour has changed.")
PYTHON
