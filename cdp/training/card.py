"""The model card of a trained retriever: data and its measures, method, weighting, settings, results and hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.text import public, typed_path
from cdp.base.workspace import Workspace, sha256_file
from cdp.complexity import count_content_words, profile
from cdp.query_sets import QuerySet
from cdp.query_sets.measured import measured
from cdp.retrievers import ResolvedRetriever
from cdp.retrievers.card_results import section, with_metadata
from cdp.training.card_metadata import metadata
from cdp.training.pairs import PairSet
from cdp.training.plan import rate
from cdp.training.reasoning import MULTI_QUERY, QUERY_ONLY, REASONING_ONLY, WITHOUT_REASONED, uses_reasoned
from cdp.training.weightings import WEIGHTINGS

LOSS = "WeightedInfoNCELoss"

SOURCES = {
    QUERY_ONLY: "the queries q; RI compares each with its reasoned form q′",
    REASONING_ONLY: "the reasoned forms q′ in the queries' stead (reasoning-only)",
    MULTI_QUERY: "the queries q and their reasoned forms q′ (multi-query)",
}

TEMPLATE = """# {title}

{warnings}A dense retriever trained with CDP Studio from **{base}** on queries for documents of the corpus `{corpus}`.

## Usage

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{folder}")
queries = model.encode_query(["your query"])
documents = model.encode_document(["your document"])
scores = model.similarity(queries, documents)   # cosine
```

{usage}

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

FOLDER = "path/to/this/folder"
"""What a card calls the model where it is loaded; its name on the hub where it was pushed there."""

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
    pairs: PairSet,
    workspace: Workspace,
    title: str = "",
    licences: Mapping[str, str] | None = None,
) -> str:
    """The README.md of the model folder. ``result`` is ``results/training.json``, ``pairs`` what was trained on;
    ``licences`` says whose terms apply to what (``licence_notes``)."""
    weighting, base = WEIGHTINGS[config.weighting], str(public(retriever.name))
    title = title or config.name or f"{base} trained on {config.query_set}"
    hard = result.get("hard_negatives", 0)
    faults = [note for note in result.get("notes", ()) if note.startswith("**")]
    notes = "".join(f"- {note}\n" for note in result.get("notes", ()))
    terms = licences or {"model": retriever.licence}
    body = TEMPLATE.format(
        title=title,
        warnings="".join(f"> {note}\n\n" for note in faults),
        base=base,
        corpus=result["corpus"],
        folder=FOLDER,
        usage=_usage(result),
        data=_table(data_rows(pairs, config, workspace)),
        negatives="in-batch negatives" + (f" and {hard} hard negatives per pair" if hard else ""),
        notes=f"\n{notes}" if notes else "",
        results=section(result),
        licences="\n".join(f"- **{what.capitalize()}**: {note}" for what, note in terms.items()),
        scale=f"{config.scale:g}",
        weighting=config.weighting,
        weighting_help=weighting.help,
        training=_table(_training(config, result)),
        record=json.dumps(public(result), ensure_ascii=False, indent=2),
    )
    return with_metadata(metadata(retriever, workspace, pairs, title, LOSS), f"\n{body}")


def _usage(result: Mapping[str, Any]) -> str:
    """What has to be known to use the model as it was trained."""
    limit = result["max_length"]
    length = f"Texts are cut at {limit:,} tokens." if limit else "Texts of any length are taken whole."
    prompt = "`encode_query` puts the query prompt below before each query." if result["query_prompt"] else ""
    return " ".join(filter(None, ("Compare by cosine: the loss did.", prompt, length)))


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
        "loss": f"{LOSS}, scale {config.scale:g}"
        + (f", {config.distil:g} of it KL divergence from the soft labels" if config.distil else ""),
        "weighting": config.weighting,
        "loss, first and last steps": f"{result['loss_first']:.4f} and {result['loss_last']:.4f}",
        "own documents masked": f"{result['masked']:,} cells",
        "gradients clipped": f"in {result['clipped']:,} of {result['steps']:,} steps",
        "made with": result["software"],
        "model hash": f"`{result['model_hash']}` (from `{result['base_hash']}`)",
    }
    weighting = WEIGHTINGS[config.weighting]
    if "kappa" in weighting.settings:
        rows["κ"] = f"{config.kappa:g}"
    if weighting.needs == "reasoning":
        rows["RI"] = f"{config.ri_mode}, at most {config.ri_kappa:g}"
    if config.mini_batch is not None:
        rows["GradCache"] = f"{config.mini_batch} texts at once"
    if result["processes"] > 1:
        rows["processes"] = result["processes"]
    if config.lora_rank is not None:
        rows["LoRA"] = f"rank {config.lora_rank}; the adapter was merged into the weights, so it loads like any model"
    return rows


def data_rows(pairs: PairSet, config: TrainingConfig, workspace: Workspace) -> Rows:
    """What the pairs are: counts, how they were made, CW profile, Q-D metrics where they were measured, hashes."""
    query_set = pairs.query_set
    rows: Rows = {
        "corpus": query_set.corpus_id,
        "query set": config.query_set,
        "made by": ", ".join(filter(None, (query_set.method, query_set.generator, query_set.model))),
        "written by": query_set.written_by,
        **_provenance(query_set),
        "licence of the queries": query_set.licence or "not stated",
        "pairs": f"{len(pairs):,}",
        "documents": f"{pairs.n_documents:,}",
        "queries per document": f"the first {config.per_doc}" if config.per_doc else "all",
        "Q/Doc": f"{len(pairs) / max(1, pairs.n_documents):.2f} on average",
        "language": pairs.language,
        "content words per query": _content_words(pairs),
    }
    if config.reasoning and uses_reasoned(config):
        rows["trained on"] = SOURCES[config.query_source]
        missing = pairs.unreasoned + pairs.dropped.get(WITHOUT_REASONED, 0)
        rows["reasoned queries"] = f"{config.reasoning} ({missing} queries have none)"
    values = measured(workspace, config.query_set, MEASURES, config.per_doc)
    for value in values:
        rows[MEASURES[value["name"]]] = (
            f"{value['value']:.4f} ({value['n_documents']:,} documents, M = {value['per_doc']})"
        )
    if not values:
        rows["Q-D metrics"] = "not measured before this training"
    if query_set.corpus_hash:
        rows["hash of the corpus"] = f"`{query_set.corpus_hash}`"
    if query_set.prompt_hash:
        rows["hash of the prompt"] = f"`{query_set.prompt_hash}`"
    rows["hash of the pairs"] = f"`{pairs.content_hash}`"
    rows["hash of the query set"] = f"`{query_set.content_hash}`"
    if WEIGHTINGS[config.weighting].needs == "column":
        rows["hash of the weights"] = f"`{sha256_file(typed_path(config.weights))[:16]}`"
    return {name: value for name, value in rows.items() if value != ""}


def _provenance(query_set: QuerySet) -> Rows:
    """How the queries came to be, as far as their manifest says."""
    facts = query_set.parameters
    without = facts.get("without")
    left = f"{without.get('queries', 0):,} by {without.get('filter') or 'a rule'}" if isinstance(without, dict) else ""
    return {
        "written on": query_set.created[:10],
        "prompt": " ".join(str(public(facts.get("prompt") or "")).split())[:200],
        "sampling temperature": facts.get("sampling_temperature") or facts.get("temperature") or "",
        "made from the query set": facts.get("made_from", ""),
        "queries left out of it": left,
        "hard negatives mined": facts.get("mined", ""),
        "soft labels by": facts.get("teacher", ""),
    }


def _content_words(pairs: PairSet) -> str:
    try:
        cw = profile(count_content_words(pairs.queries, pairs.language))
    except CdpError:
        return ""  # no word list for this language: the card goes without
    low, high = cw.interval
    return (
        f"mean {cw.mean:.2f} (95% interval {low:.2f} to {high:.2f}), median {cw.median:g}, "
        f"{100 * cw.below:.0f}% below 7, {100 * cw.above:.0f}% above 10"
    )


def _table(values: Rows) -> str:
    return "\n".join(f"| {name} | {str(value).replace('|', chr(92) + '|')} |" for name, value in values.items())
