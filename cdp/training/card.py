"""The model card of a trained retriever: data, method, weighting, settings and hashes, as Markdown."""

from __future__ import annotations

import json
from typing import Any

from cdp.config import TrainingConfig
from cdp.training.retrievers import ResolvedRetriever

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
scores = model.similarity(queries, documents)   # {similarity}
```

## Data

| | |
|---|---|
{data}

## Training

InfoNCE with in-batch negatives, cosine times {scale}; weights: **{weighting}**. A query's own document is never its
negative. AdamW (β 0.9/0.98, ε 1e-8), cosine decay without warm-up.

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


def model_card(
    config: TrainingConfig, retriever: ResolvedRetriever, result: dict[str, Any], data: dict[str, Any]
) -> str:
    """The README.md of the model folder. ``result`` is ``results/training.json``; ``data`` describes the pairs."""
    training = {
        "steps": f"{result['steps']} of {result['steps_planned']}" if result["stopped"] else result["steps"],
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
    if result.get("best_ndcg@10") is not None:
        training["best NDCG@10 while training"] = (
            f"{result['best_ndcg@10']:.2f} on {config.benchmark} at step {result['best_step']}"
        )
    return TEMPLATE.format(
        title=config.name or f"{retriever.name} trained on {config.query_set}",
        base=retriever.name,
        corpus=data["corpus"],
        similarity="cosine",
        data=_rows(data),
        scale=f"{config.scale:g}",
        weighting=config.weighting,
        training=_rows(training),
        licence=retriever.licence,
        record=json.dumps({"settings": config.to_dict(), "result": result}, ensure_ascii=False, indent=2),
    )


def _rows(values: dict[str, Any]) -> str:
    return "\n".join(f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in values.items())
