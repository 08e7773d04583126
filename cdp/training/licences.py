"""Whose terms a training is under: of the model it starts from, the documents, the queries and the dev benchmark."""

from __future__ import annotations

from typing import Any

from cdp.base.config import TrainingConfig
from cdp.base.workspace import Workspace, read_json_or_none
from cdp.retrievers import ResolvedRetriever
from cdp.training.reasoning import uses_reasoned

UNKNOWN = "not recorded here; ask whoever published it."


def licence_notes(config: TrainingConfig, retriever: ResolvedRetriever, workspace: Workspace) -> dict[str, str]:
    """What is known of each, by what it is of: ``model``, ``documents``, ``queries``, ``reasoned queries`` where
    they weight or are trained on, ``benchmark`` if one is set.

    Reads manifests only. Where nothing is recorded that is what is said.
    """
    made = _manifest(workspace.query_set(config.query_set) / "manifest.json")
    corpus = _manifest(workspace.corpora / str(made.get("corpus_id", "")) / "manifest.json")
    notes = {
        "model": retriever.licence or UNKNOWN,
        "documents": str(corpus.get("licence") or UNKNOWN),
        "queries": _queries(made),
    }
    if config.reasoning and uses_reasoned(config):
        notes["reasoned queries"] = _queries(_manifest(workspace.query_set(config.reasoning) / "manifest.json"))
    if config.benchmark:
        notes["benchmark"] = _benchmark(config, workspace)
    return notes


def _queries(made: dict[str, Any]) -> str:
    generator, model = str(made.get("generator", "")), str(made.get("model", ""))
    if made.get("licence"):
        by = f", written by {model}" if model else ""
        return f"{made['licence']}, as was said at their import{by}."
    if generator == "import" and made.get("kind") == "synthetic":
        generator = "openai"  # an LLM's, wherever it ran
    if generator in ("template", "ranking"):
        return "made of the documents' own words: as the documents."
    if generator == "recorded":
        return "recorded with the demo collection: as the documents."
    if generator in ("openai", "transformers"):
        return (
            f"written by {model or 'a language model'}: its licence, or the terms of its provider, say what may be "
            "trained on them."
        )
    return UNKNOWN


def _benchmark(config: TrainingConfig, workspace: Workspace) -> str:
    from cdp.benchmarks import describe, resolve_benchmark

    return describe(resolve_benchmark(config.benchmark, workspace), workspace).licence or UNKNOWN


def _manifest(path: Any) -> dict[str, Any]:
    value = read_json_or_none(path)
    return value if isinstance(value, dict) else {}
