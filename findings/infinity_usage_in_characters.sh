#!/usr/bin/env bash
# infinity-emb reports characters as tokens in "usage": a price by tokens comes out four to five times too high.
#
# It adds up the lengths of the texts. `docs/how-to/endpoint.md` says so.
#
# Output seen:
#   infinity-emb 0.0.78
#     two texts of 27 characters, 6 tokens; usage: {'prompt_tokens': 27, 'total_tokens': 27}
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
# torch by itself first: else builds for GPUs may come along, which are gigabytes.
env/bin/python -m pip install --quiet torch==2.13.0
env/bin/python -m pip install --quiet 'infinity-emb[torch,server]==0.0.78' transformers==4.57.6 fastapi==0.165.0

env/bin/python -I - <<'PYTHON'
import json
import os
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

TEXTS = ["bees live in hives", "bees live"]
WORDS = ["[PAD]", "[UNK]", "bees", "live", "in", "hives"]
PORT = 21_874

# A tiny random model: one token a word.
BertModel(
    BertConfig(vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32,
               max_position_embeddings=64)
).save_pretrained("bert")
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", model_max_length=64
).save_pretrained("bert")


def get(path, body=None):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=120))


server = subprocess.Popen(
    [Path(sys.executable).with_name("infinity_emb"), "v2", "--model-id", "bert", "--host", "127.0.0.1",
     "--port", str(PORT), "--url-prefix", "/v1", "--engine", "torch", "--device", "cpu"],
    env={**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"},
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
try:
    for _ in range(900):
        try:
            get("/v1/models")
            break
        except OSError:
            time.sleep(0.2)
    usage = get("/v1/embeddings", {"model": "bert", "input": TEXTS})["usage"]
finally:
    server.kill()
characters, tokens = sum(map(len, TEXTS)), sum(len(text.split()) for text in TEXTS)
print(f"infinity-emb {version('infinity-emb')}")
print(f"  two texts of {characters} characters, {tokens} tokens; usage: {usage}")

sys.exit(0 if usage["prompt_tokens"] == characters else "The behaviour has changed.")
PYTHON
