"""The model card of a trained retriever: data and its measures, method, weighting, settings, results and hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.paths import typed_path
from cdp.base.workspace import Workspace, read_json_or_none, sha256_file
from cdp.complexity import count_content_words, profile
from cdp.retrievers import ResolvedRetriever
from cdp.retrievers.card_results import section
from cdp.training.pairs import PairSet
from cdp.training.reasoning import MULTI_QUERY, QUERY_ONLY, REASONING_ONLY, WITHOUT_REASONED, uses_reasoned
from cdp.training.settings import rate
from cdp.training.weights import WEIGHTINGS

SOURCES = {
    QUERY_ONLY: "the queries q; RI compares each with its reasoned form q′",
    REASONING_ONLY: "the reasoned forms q′ in the queries' stead (reasoning-only)",
    MULTI_QUERY: "the queries q and their reasoned forms q′ (multi-query)",
}

TEMPLATE = """---
{front}
---

# {title}

A dense retriever trained with CDP Studio from **{base}** on queries for documents of the corpus `{corpus}`.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
queries = model.encode_query(["your query"])
documents = model.encode_document(["your document"])
scores = model.similarity(queries, documents)   # cosine
```

## Data

| What | Value |
|---|---|
{data}

## Training

InfoNCE with {negatives}, cosine times {scale}. Weighting: **{weighting}**. {weighting_help} A query's own document is
never its negative. AdamW (β 0.9/0.98, ε 1e-8), cosine decay without warm-up.

| What | Value |
|---|---|
{training}
{notes}
## Results

{results}

## Licences

{licences}

## Everything it was made from

```json
{record}
```
"""

Rows = dict[str, Any]

MEASURES = {
    "dist_sim": "Dist-Sim",
    "len_sim": "Len-Sim",
    "paraphrase_ratio": "CE",
    "paraphrase_ratio_bi_encoder": "Paraphrase ratio, bi-encoder",
    "self_bleu": "Self-BLEU",
}
"""The Q-D metrics that a card states, by their names in the results of a metrics job."""


def model_card(
    config: TrainingConfig,
    retriever: ResolvedRetriever,
    result: dict[str, Any],
    data: Rows,
    title: str = "",
    licences: Mapping[str, str] | None = None,
) -> str:
    """The README.md of the model folder. ``result`` is ``results/training.json``; ``data`` describes the pairs, and
    ``licences`` says whose terms apply to what (``licence_notes``)."""
    weighting = WEIGHTINGS[config.weighting]
    title = title or config.name or f"{retriever.name} trained on {config.query_set}"
    hard = result.get("hard_negatives", 0)
    notes = "".join(f"- {note}\n" for note in result.get("notes", ()))
    terms = licences or {"model": retriever.licence}
    return TEMPLATE.format(
        front=_front(retriever, str(data.get("language", "")), title),
        title=title,
        base=retriever.name,
        corpus=result["corpus"],
        data=_table(data),
        negatives="in-batch negatives" + (f" and {hard} hard negatives per pair" if hard else ""),
        notes=f"\n{notes}" if notes else "",
        results=section(result),
        licences="\n".join(f"- **{what.capitalize()}**: {note}" for what, note in terms.items()),
        scale=f"{config.scale:g}",
        weighting=config.weighting,
        weighting_help=weighting.help,
        training=_table(_training(config, result)),
        record=json.dumps(result, ensure_ascii=False, indent=2),
    )


def _front(retriever: ResolvedRetriever, language: str, title: str) -> str:
    """The hub's metadata: language, licence, tags, and ``base_model`` where the base has a name there. What is not
    known is left out. Scores come in when the model is evaluated, see ``card_results``."""
    from huggingface_hub import ModelCardData

    source = retriever.preset.source if retriever.preset is not None else retriever.source
    hub = retriever.preset is not None or retriever.origin == "hub"
    data = ModelCardData(
        model_name=title,
        language=language or None,
        license=retriever.licence_id or None,
        base_model=source if hub and source.count("/") == 1 else None,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", "dense-retrieval", "cdp-studio"],
    )
    return data.to_yaml()


def _training(config: TrainingConfig, result: dict[str, Any]) -> Rows:
    ended = result["stopped"] or result["early"]
    rows: Rows = {
        "steps": f"{result['steps']} of {result['steps_planned']}" if ended else result["steps"],
        "epochs": config.epochs,
        "batch size": result["batch_size"],
        "learning rate": rate(config.learning_rate or 0.0),
        "weight decay": f"{config.weight_decay:g}",
        "gradient clipping": f"{config.clip_norm:g}",
        "pooling": result["pooling"],
        "query prompt": f"`{result['query_prompt']}`".replace("\n", "\\n") if result["query_prompt"] else "none",
        "longest text": f"{result['max_length']} tokens" if result["max_length"] else "nothing is cut",
        "documents at that length or cut there": result["filled_the_limit"],
        "precision": result["precision"],
        "seed": config.seed,
        "loss, first and last steps": f"{result['loss_first']:.4f} and {result['loss_last']:.4f}",
        "own documents masked": f"{result['masked']:,} cells",
        "gradients clipped": f"in {result['clipped']:,} of {result['steps']:,} steps",
        "made with": result["software"],
        "model hash": f"`{result['model_hash']}` (from `{result['base_hash']}`)",
    }
    if config.weighting in ("cw", "ri-cw"):
        rows["κ"] = f"{config.kappa:g}"
    if WEIGHTINGS[config.weighting].needs == "reasoning":
        rows["RI"] = f"{config.ri_mode}, at most {config.ri_kappa:g}"
    if config.mini_batch is not None:
        rows["GradCache"] = f"{config.mini_batch} texts at once"
    if result["processes"] > 1:
        rows["processes"] = result["processes"]
    if config.lora_rank is not None:
        rows["LoRA"] = f"rank {config.lora_rank}; the adapter was merged into the weights, so it loads like any model"
    return rows


def data_rows(pairs: PairSet, config: TrainingConfig, workspace: Workspace, query_set_hash: str) -> Rows:
    """What the pairs are: counts, how they were made, CW profile, Q-D metrics where they were measured, hashes."""
    made = read_json_or_none(workspace.query_set(config.query_set) / "manifest.json") or {}
    rows: Rows = {
        "corpus": pairs.corpus_id,
        "query set": config.query_set,
        "made by": ", ".join(str(made[key]) for key in ("method", "generator", "model") if made.get(key)),
        "written by": _written_by(made),
        "licence of the queries": str(made.get("licence") or ""),
        "pairs": f"{len(pairs):,}",
        "documents": f"{pairs.n_documents:,}",
        "queries per document": f"the first {config.per_doc}" if config.per_doc else "all",
        "language": pairs.language,
        "content words per query": _content_words(pairs),
    }
    if config.reasoning and uses_reasoned(config):
        rows["trained on"] = SOURCES[config.query_source]
        missing = pairs.unreasoned + pairs.dropped.get(WITHOUT_REASONED, 0)
        rows["reasoned queries"] = f"{config.reasoning} ({missing} queries have none)"
    values = measured(workspace, config.query_set, config.per_doc)
    for value in values:
        rows[MEASURES[value["name"]]] = (
            f"{value['value']:.4f} ({value['n_documents']:,} documents, M = {value['per_doc']})"
        )
    if not values:
        rows["Q-D metrics"] = "not measured before this training"
    if made.get("corpus_hash"):
        rows["hash of the corpus"] = f"`{made['corpus_hash']}`"
    if made.get("prompt_hash"):
        rows["hash of the prompt"] = f"`{made['prompt_hash']}`"
    rows["hash of the pairs"] = f"`{pairs.content_hash}`"
    rows["hash of the query set"] = f"`{query_set_hash}`"
    if config.weighting == "column":
        rows["hash of the weights"] = f"`{sha256_file(typed_path(config.weights))[:16]}`"
    return {name: value for name, value in rows.items() if value != ""}


def _written_by(made: dict[str, Any]) -> str:
    if not made:
        return ""
    from cdp.corpus.origin import of_manifest, written_by

    made = of_manifest(made)
    return written_by(*(str(made.get(key) or "") for key in ("kind", "generator", "model")))


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


def measured(workspace: Workspace, query_set: str, per_doc: int | None = None) -> list[dict[str, Any]]:
    """The Q-D metrics of a query set, at the Q/Doc that is trained on: those that need no model from beside the set,
    the others from its newest metrics job. Empty where nothing was measured.

    Within documents only; each measure at ``per_doc``, or at the most queries that it was measured for.
    """
    quick = max(workspace.query_set(query_set).glob("measures/*.json"), key=lambda p: p.stat().st_mtime, default=None)
    beside = read_json_or_none(quick) if quick is not None else None
    newest: tuple[str, dict[str, Any]] = ("", {})
    for path in workspace.jobs.glob("*/results/metrics.json"):
        found = read_json_or_none(path)
        if isinstance(found, dict) and found.get("query_set") == query_set and found.get("created", "") >= newest[0]:
            newest = (str(found.get("created", "")), found)
    chosen: dict[str, dict[str, Any]] = {}
    for value in (*(beside or {}).get("values", ()), *newest[1].get("values", ())):
        defined = value["scope"] == "document" and value["value"] is not None and value["name"] in MEASURES
        within = per_doc is None or value["per_doc"] <= per_doc
        if defined and within and value["per_doc"] >= chosen.get(value["name"], value)["per_doc"]:
            chosen[value["name"]] = value
    return [chosen[name] for name in MEASURES if name in chosen]


def _table(values: Rows) -> str:
    return "\n".join(f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in values.items())
