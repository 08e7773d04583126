#!/usr/bin/env bash
# `transformers serve` takes a temperature and does not sample, unless generation_config.json says do_sample.
#
# The temperature is set on the model's own generation settings, where do_sample is False if nothing says otherwise: every
# answer is then the greedy one, at any temperature and seed. `docs/how-to/endpoint.md` says so.
#
# Output seen:
#   transformers 5.23.0
#     different answers of 6 at temperature 1.5: 1 as the model comes, 6 with do_sample
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
# torch by itself first: else builds for GPUs may come along, which are gigabytes.
env/bin/python -m pip install --quiet torch==2.13.0
env/bin/python -m pip install --quiet 'transformers[serving]==5.23.0' fastapi==0.165.0

env/bin/python -I - <<'PYTHON'
import json
import os
import string
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PORT = 21_875
LETTERS = ["<unk>", "</s>", *string.ascii_lowercase, " ", "."]
DRAWS = 6

# A tiny random model, once as it comes and once with a word in its generation settings.
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=len(LETTERS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                intermediate_size=64, max_position_embeddings=256, bos_token_id=None, eos_token_id=1)
)
tokenizer = Tokenizer(models.WordLevel({letter: at for at, letter in enumerate(LETTERS)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
for name, settings in (("plain", {}), ("sampling", {"do_sample": True})):
    model.generation_config = GenerationConfig(eos_token_id=1, pad_token_id=1, **settings)
    model.save_pretrained(name)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>", pad_token="</s>",
        chat_template="{{ messages[-1]['content'] }}",
    ).save_pretrained(name)


def get(path, body=None):
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", body and json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request, timeout=120))


def draw(name, seed):
    messages = [{"role": "user", "content": "bees"}]
    body = {"model": name, "messages": messages, "max_tokens": 20, "temperature": 1.5, "seed": seed}
    return get("/v1/chat/completions", body)["choices"][0]["message"]["content"]


server = subprocess.Popen(
    [Path(sys.executable).with_name("transformers"), "serve", "--host", "127.0.0.1", "--port", str(PORT),
     "--device", "cpu"],
    env={**os.environ, "HF_HUB_OFFLINE": "1"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
)
try:
    for _ in range(900):
        try:
            get("/health")
            break
        except OSError:
            time.sleep(0.2)
    different = {name: len({draw(name, seed) for seed in range(DRAWS)}) for name in ("plain", "sampling")}
finally:
    server.kill()
print(f"transformers {version('transformers')}")
print(f"  different answers of {DRAWS} at temperature 1.5: {different['plain']} as the model comes, "
      f"{different['sampling']} with do_sample")

sys.exit(0 if different["plain"] == 1 and different["sampling"] > 1 else "The behaviour has changed.")
PYTHON
