"""Kinds of task, and when the published rule does not apply: outside of its data no number comes from the line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdp.base.errors import ConfigError
from cdp.principle.differences import differences
from cdp.principle.tables import read

LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Scope:
    """``outside`` are the reasons why the line says nothing of a task, ``unknown`` what was not said about it.

    A task is inside if neither holds: multi-hop questions in English, CW within the four datasets'. Where only the kind
    is unknown, what the line says is conditional on it.
    """

    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In a sentence; empty for a task inside the evidence."""
        if self.outside:
            return f"The published rule has no evidence for such a task: {'; '.join(self.outside)}."
        return " ".join(self.unknown)


def evidence_range() -> tuple[float, float]:
    """The smallest and the largest mean CW among the datasets of the published line."""
    cw = [d.cw for d in differences()]
    return min(cw), max(cw)


def scope_of(mean_cw: float, *, language: str, domain: str, task: str) -> Scope:
    """How a task relates to the evidence behind the line."""
    low, high = evidence_range()
    outside, unknown = [], []
    if domain == "in-domain":
        # What the published in-domain sets say is another matter, and CW or the kind of task play no part in it.
        task, mean_cw = MULTI_HOP_QA, low
        outside.append("the line is about queries unlike the training queries, and these resemble them")
    if language != LANGUAGE:
        outside.append("the line was fitted on English queries, and counts in other languages are not comparable")
    if task and task != MULTI_HOP_QA:
        outside.append(f"the line was fitted on multi-hop question answering, not on {KINDS[task].lower()}")
    if not low <= mean_cw <= high:
        outside.append(f"the line covers mean CW from {low:.2f} to {high:.2f}, and {mean_cw:.2f} lies outside")
    if not task:
        unknown.append("The published rule covers multi-hop questions only: choose your task type.")
    return Scope(tuple(outside), tuple(unknown))


# The only kind that the published line was fitted on.
MULTI_HOP_QA = "multi-hop"

# Kind → title. Those of BEIR are its own task categories (Thakur et al. 2021, table 1); BRIGHT's is its subject.
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


def kinds_of_datasets() -> dict[str, str]:
    """{published dataset: its kind}; HotpotQA, printed in two groups, is multi-hop."""
    rows = sorted(read("datasets"), key=lambda row: row["group"] == "Multi-hop")
    return {row["dataset"]: _GROUPS.get(row["group"]) or _BEIR.get(row["dataset"], MULTI_HOP_QA) for row in rows}


def check_kind(task: str) -> str:
    """``task`` if it is a kind or empty (not known); ConfigError names the kinds."""
    if task and task not in KINDS:
        raise ConfigError(f"There is no kind of task called {task!r}.", hint=f"Choose one of: {', '.join(KINDS)}.")
    return task
