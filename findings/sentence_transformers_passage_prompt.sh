#!/usr/bin/env bash
# A model's prompt "passage" is never put before a document: `encode_document` takes an empty one instead.
#
# Its documentation looks for "document", "passage" and "corpus", in that order. A "document" with an empty text is put
# among the prompts of every model, so the other two are never reached, and nothing is said. `cdp/retrievers/load.py`
# takes the first of the three that is not empty.
#
# Output seen:
#   sentence-transformers 6.2.0 prompts: {'query': 'query: ', 'document': '', 'passage': 'passage: '}
#   encode_document is encode without a prompt: True, with the prompt of passages: False
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet torch==2.13.0 sentence-transformers==6.2.0

venv/bin/python -I - <<'PYTHON'
import sys

import numpy as np
import sentence_transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "birds": 1, "fly": 2}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
table = StaticEmbedding(tokenizer, embedding_dim=4)
prompts = {"query": "query: ", "passage": "passage: "}
SentenceTransformer(modules=[table], prompts=prompts, device="cpu").save("saved", create_model_card=False)

model = SentenceTransformer("saved", device="cpu")
print("sentence-transformers", sentence_transformers.__version__, "prompts:", model.prompts)
document = model.encode_document(["birds fly"])
without = np.allclose(document, model.encode(["birds fly"], prompt=""))
with_it = np.allclose(document, model.encode(["birds fly"], prompt="passage: "))
print(f"encode_document is encode without a prompt: {without}, with the prompt of passages: {with_it}")
sys.exit(0 if without and not with_it else "The behaviour has changed.")
PYTHON
