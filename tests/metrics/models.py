"""A tiny cross-encoder and a query set of a few documents, for tests that run the real code on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cdp import query_sets
from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.query_sets import QuerySet
from tests.support_models import tiny_bert

DOCUMENTS: dict[str, list[str]] = {
    "d1": ["what is rust", "how does iron rust", "why does iron rust in water", "iron rust removal"],
    "d2": ["who wrote hamlet", "hamlet author"],
    "d3": ["one query only"],
    "d4": ["same query", "same query", "same query"],
    "d5": ["hamlet author", "who wrote hamlet", "🙂 مرحبا"],
}
HUMAN: dict[str, list[str]] = {"d1": ["what makes iron rust", "rust"], "d5": ["hamlet"], "d9": ["not in the set"]}


def tiny_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """A BERT with random weights that scores pairs, in transformers' layout."""
    from transformers import BertConfig, BertForSequenceClassification

    tiny_bert(folder)
    config = BertConfig.from_pretrained(folder, num_labels=labels)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def write_query_set(workspace: Workspace, name: str, documents: dict[str, list[str]], language: str = "") -> None:
    query_sets.create(workspace, QuerySet(name, name, "", "", language=language, complete=True))
    lines = [{"document_id": d, "queries": q} for d, q in documents.items()]
    append_jsonl(query_sets.files(workspace, name).queries, lines)


def write_job(workspace: Workspace, name: str, **config: Any) -> Path:
    folder = workspace.job(name)
    write_json(folder / "spec.json", {"id": name, "kind": "metrics", "config": config})
    return folder
