#!/usr/bin/env bash
# MTEB returns the scores of one local model for another: both are kept as no_model_name/available.
#
# A SentenceTransformer that was loaded from a folder has no name, so its results and those of the next one share a file of
# the cache, which `mteb.evaluate` reads unless it is given `cache=None` (or `overwrite_strategy="always"`). The second
# model is not run. `cdp/benchmarks/mteb.py` writes `cache=None` into each task that it exports.
#
# Output seen:
#   mteb 2.26.24, sentence-transformers 6.2.0
#     seed 0: NDCG@10 with the cache 0.15773, with cache=None 0.15773
#     seed 1: NDCG@10 with the cache 0.15773, with cache=None 0.30825
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"${PYTHON:-python3}" -m venv env
env/bin/python -m pip install --quiet torch==2.13.0
env/bin/python -m pip install --quiet mteb==2.26.24 sentence-transformers==6.2.0

HF_HUB_OFFLINE=1 HF_HOME=hub env/bin/python -I - <<'PYTHON' 2>/dev/null
import sys
from importlib.metadata import version
from itertools import product

import mteb
import torch
from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["".join(letters) for letters in product("abcd", repeat=2)]


class Words(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="Words", description="Pairs of words.", dataset={"path": "none", "revision": "1"}, type="Retrieval",
        category="t2t", modalities=["text"], eval_langs=["eng-Latn"], main_score="ndcg_at_10",
    )

    def load_data(self, **_):
        self.corpus = {"test": {word: {"title": "", "text": f"{word} aa"} for word in WORDS}}
        self.queries = {"test": {"q": "ab", "r": "cd"}}
        self.relevant_docs = {"test": {"q": {"ba": 1}, "r": {"dc": 1}}}
        self.data_loaded = True


def model(seed):
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(["[UNK]", *WORDS])}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = torch.randn(1 + len(WORDS), 8, generator=torch.Generator().manual_seed(seed))
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, weights.numpy())], device="cpu").save(f"model-{seed}")
    return SentenceTransformer(f"model-{seed}", device="cpu")


def ndcg(seed, cache):
    found = mteb.evaluate(model(seed), Words(), cache=cache, show_progress_bar=False)
    return found.task_results[0].scores["test"][0]["ndcg_at_10"]


print(f"mteb {version('mteb')}, sentence-transformers {version('sentence-transformers')}")
kept = mteb.ResultCache("cache")
with_cache, without = ([ndcg(seed, cache) for seed in (0, 1)] for cache in (kept, None))
for seed in (0, 1):
    print(f"  seed {seed}: NDCG@10 with the cache {with_cache[seed]:.5f}, with cache=None {without[seed]:.5f}")
same = with_cache[0] == with_cache[1] == without[0] != without[1]
sys.exit(0 if same else "The behaviour has changed.")
PYTHON
