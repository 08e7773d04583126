"""Kinds of task: what the published datasets ask of a retriever, and which kind a user's own task is."""

from __future__ import annotations

from collections.abc import Mapping

from cdp.base.errors import ConfigError
from cdp.principle.published import datasets

MULTI_HOP_QA = "multi-hop"
"""The only kind that the published line was fitted on."""

KINDS: Mapping[str, str] = {
    MULTI_HOP_QA: "Multi-hop question answering",
    "question-answering": "Question answering",
    "web-search": "Web search",
    "fact-checking": "Fact checking",
    "biomedical": "Biomedical search",
    "citation": "Citation prediction",
    "argument": "Argument retrieval",
    "duplicate": "Duplicate questions",
    "entity": "Entity search",
    "reasoning": "Reasoning-intensive search",
}
"""Kind → title. Those of BEIR are its own task categories (Thakur et al. 2021, table 1); BRIGHT's is its subject."""

_BEIR = {
    "arguana": "argument",
    "climate-fever": "fact-checking",
    "cqadupstack": "duplicate",
    "dbpedia-entity": "entity",
    "fever": "fact-checking",
    "fiqa": "question-answering",
    "nfcorpus": "biomedical",
    "nq": "question-answering",
    "quora": "duplicate",
    "scidocs": "citation",
    "scifact": "fact-checking",
    "trec-covid": "biomedical",
    "webis-touche2020": "argument",
}
_GROUPS = {"Multi-hop": MULTI_HOP_QA, "BRIGHT": "reasoning", "TREC-DL": "web-search"}

PRINTED_GROUP = {MULTI_HOP_QA: "Multi-hop", "reasoning": "BRIGHT", "web-search": "TREC-DL"}
"""The group of datasets whose printed averages stand for a kind; BEIR for every other."""


def kinds_of_datasets() -> dict[str, str]:
    """{published dataset: its kind}; HotpotQA, printed in two groups, is multi-hop."""
    rows = sorted(datasets(), key=lambda row: row["group"] == "Multi-hop")
    return {row["dataset"]: _GROUPS.get(row["group"]) or _BEIR.get(row["dataset"], MULTI_HOP_QA) for row in rows}


def check_kind(task: str) -> str:
    """``task`` if it is a kind or empty (not known); ConfigError names the kinds."""
    if task and task not in KINDS:
        raise ConfigError(f"There is no kind of task called {task!r}.", hint=f"Choose one of: {', '.join(KINDS)}.")
    return task
