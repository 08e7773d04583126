"""The model card of a trained retriever: data and its measures, method, weighting, settings, results and hashes."""

from __future__ import annotations

import json
from typing import Any

from cdp.complexity import count_content_words, profile
from cdp.config import TrainingConfig
from cdp.errors import CdpError
from cdp.training.pairs import PairSet
from cdp.training.retrievers import ResolvedRetriever
from cdp.training.weights import WEIGHTINGS
from cdp.workspace import Workspace, read_json_or_none

TEMPLATE = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- dense-retrieval
- cdp-studio
---

# {title}

A dense retriever trained with CDP Studio from **{base}** on queries written for documents of the corpus `{corpus}`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
queries = model.encode_query(["your query"])
documents = model.encode_document(["your document"])
scores = model.similarity(queries, documents)   # cosine
```

## Data

| | |
|---|---|
{data}

## Training

InfoNCE with in-batch negatives, cosine times {scale}. Weighting: **{weighting}**. {weighting_help} A query's own
document is never its negative. AdamW (β 0.9/0.98, ε 1e-8), cosine decay without warm-up.

| | |
|---|---|
{training}

## Licence

Of the model it started from: {licence} The documents and queries it was trained on have licences of their own.

## Everything it was made from

```json
{record}
```
"""

Rows = dict[str, Any]


def model_card(
    config: TrainingConfig, retriever: ResolvedRetriever, result: dict[str, Any], data: Rows, title: str = ""
) -> str:
    """The README.md of the model folder. ``result`` is ``results/training.json``; ``data`` describes the pairs."""
    weighting = WEIGHTINGS[config.weighting]
    return TEMPLATE.format(
        title=title or config.name or f"{retriever.name} trained on {config.query_set}",
        base=retriever.name,
        corpus=result["corpus"],
        data=_table(data),
        scale=f"{config.scale:g}",
        weighting=config.weighting,
        weighting_help=weighting.help,
        training=_table(_training(config, result)),
        licence=retriever.licence,
        record=json.dumps({"settings": config.to_dict(), "result": result}, ensure_ascii=False, indent=2),
    )


def _training(config: TrainingConfig, result: dict[str, Any]) -> Rows:
    ended = result["stopped"] or result["early"]
    rows: Rows = {
        "steps": f"{result['steps']} of {result['steps_planned']}" if ended else result["steps"],
        "epochs": config.epochs,
        "batch size": result["batch_size"],
        "learning rate": f"{config.learning_rate:g}",
        "weight decay": f"{config.weight_decay:g}",
        "gradient clipping": f"{config.clip_norm:g}",
        "longest text": f"{config.max_length} tokens" if config.max_length else "as the model says",
        "precision": result["precision"],
        "seed": config.seed,
        "loss, first and last steps": f"{result['loss_first']:.4f} and {result['loss_last']:.4f}",
        "own documents masked": result["masked"],
        "model hash": f"`{result['model_hash']}` (from `{result['base_hash']}`)",
    }
    if config.lora_rank is not None:
        rows["LoRA"] = f"rank {config.lora_rank}, merged"
    if result["best_ndcg@10"] is not None:
        rows["best NDCG@10 while training"] = (
            f"{result['best_ndcg@10']:.2f} on {config.benchmark} at step {result['best_step']}"
        )
    return rows


def data_rows(pairs: PairSet, config: TrainingConfig, workspace: Workspace, query_set_hash: str) -> Rows:
    """What the pairs are: counts, how they were made, CW profile, Q-D metrics where they were measured, hashes."""
    made = read_json_or_none(workspace.query_set(config.query_set) / "manifest.json") or {}
    rows: Rows = {
        "corpus": pairs.corpus_id,
        "query set": config.query_set,
        "made by": ", ".join(str(made[key]) for key in ("method", "generator", "model") if made.get(key)),
        "pairs": len(pairs),
        "documents": pairs.n_documents,
        "queries per document": f"the first {config.per_doc}" if config.per_doc else "all",
        "language": pairs.language,
        "content words per query": _content_words(pairs),
    }
    if config.reasoning and pairs.reasoned is not None:
        rows["reasoned queries"] = f"{config.reasoning} ({pairs.unreasoned} queries have none)"
    for value in measured(workspace, config.query_set):
        rows[value["name"]] = f"{value['value']:.4f} ({value['n_documents']} documents, M = {value['per_doc']})"
    rows["hash of the pairs"] = f"`{pairs.content_hash}`"
    rows["hash of the query set"] = f"`{query_set_hash}`"
    return {name: value for name, value in rows.items() if value != ""}


def _content_words(pairs: PairSet) -> str:
    try:
        found = profile(count_content_words(pairs.queries, pairs.language))
    except CdpError:
        return ""  # no word list for this language: the card goes without
    low, high = found.interval
    return (
        f"mean {found.mean:.2f} (95% interval {low:.2f} to {high:.2f}), median {found.median:g}, "
        f"{100 * found.below:.0f}% below 7, {100 * found.above:.0f}% above 10"
    )


def measured(workspace: Workspace, query_set: str) -> list[dict[str, Any]]:
    """The Q-D metrics that the newest metrics job has for a query set; empty if none has."""
    newest: tuple[str, list[dict[str, Any]]] = ("", [])
    for path in workspace.jobs.glob("*/results/metrics.json"):
        found = read_json_or_none(path)
        if isinstance(found, dict) and found.get("query_set") == query_set and found.get("created", "") >= newest[0]:
            values = [value for value in found.get("measures", []) if value.get("value") is not None]
            newest = (str(found.get("created", "")), values)
    return newest[1]


def _table(values: Rows) -> str:
    return "\n".join(f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in values.items())
