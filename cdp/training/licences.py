"""Whose terms a training is under: of the model it starts from, the documents, the queries and the dev benchmark."""

from __future__ import annotations

from cdp import query_sets
from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.query_sets import QuerySet
from cdp.retrievers import ResolvedRetriever
from cdp.training.reasoning import uses_reasoned

UNKNOWN = "not recorded here; ask whoever published it."


def licence_notes(config: TrainingConfig, retriever: ResolvedRetriever, workspace: Workspace) -> dict[str, str]:
    """What is known of each, by what it is of: ``model``, ``documents``, ``queries``, ``reasoned queries`` where
    they weight or are trained on, ``benchmark`` if one is set.

    Reads manifests only. Where nothing is recorded that is what is said.
    """
    query_set = query_sets.load(workspace, config.query_set)
    notes = {
        "model": retriever.licence or UNKNOWN,
        "documents": load_manifest(workspace, query_set.corpus_id).licence or UNKNOWN,
        "queries": _queries(query_set),
    }
    if config.reasoning and uses_reasoned(config):
        notes["reasoned queries"] = _queries(query_sets.load(workspace, config.reasoning))
    if config.benchmark:
        notes["benchmark"] = _benchmark(config, workspace)
    return notes


def _queries(query_set: QuerySet) -> str:
    generator, model = query_set.generator, query_set.model
    if query_set.licence:
        by = f", written by {model}" if model else ""
        return f"{query_set.licence}, as was said at their import{by}."
    if query_set.imported and query_set.kind == "synthetic":
        generator = "openai"  # an LLM's, wherever it ran
    if generator in ("template", "ranking"):
        return "made of the documents' own words: as the documents."
    if generator == "recorded":
        return "recorded ahead of time for these documents: as the documents."
    if generator in ("openai", "transformers"):
        return (
            f"written by {model or 'a language model'}: its licence, or the terms of its provider, say what may be "
            "trained on them."
        )
    return UNKNOWN


def _benchmark(config: TrainingConfig, workspace: Workspace) -> str:
    from cdp.benchmarks import describe, resolve_benchmark

    return describe(resolve_benchmark(config.benchmark, workspace), workspace).licence or UNKNOWN
