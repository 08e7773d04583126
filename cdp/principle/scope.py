"""Whether a task lies inside what the published line was fitted on. Outside of it, no number comes from the line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from cdp.base.errors import ConfigError
from cdp.principle.differences import ALL, differences
from cdp.principle.tables import read

GENERATOR = "gpt-4o-mini"
LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Scope:
    """``outside`` are the reasons why the line says nothing of a task, ``unknown`` what was not said about it.

    A task is inside if neither holds: multi-hop questions in English, CW within the four datasets', queries written
    by the generator of the evidence. Where only the kind is unknown, what the line says is conditional on it.
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


def scope_of(mean_cw: float, *, language: str, domain: str, task: str, generator: str) -> Scope:
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
    if generator and not generator.startswith(GENERATOR):
        outside.append(
            f"the line is from queries by GPT-4o-mini, not by {generator}; with a weaker generator (Mistral-7B) it "
            "was reversed"
        )
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


MOST_SIMILAR = 5


@dataclass(frozen=True, slots=True)
class Similar:
    """One published dataset: ``gains[retriever][Q/Doc]`` is diverse queries minus one per document, in points."""

    dataset: str
    kind: str
    cw: float
    gains: Mapping[str, Mapping[int, float]]


@lru_cache(maxsize=1)
def _gains() -> dict[str, tuple[float, dict[str, dict[int, float]]]]:
    """{dataset: (CW, {retriever: {Q/Doc: points}})} of Q/Doc scaling on the 31 published datasets."""
    gains: dict[str, tuple[float, dict[str, dict[int, float]]]] = {}
    for d in differences(ALL):
        gains.setdefault(d.dataset, (d.cw, {}))[1].setdefault(d.retriever, {})[d.per_doc] = d.points
    return gains


def most_similar(cw: float, task: str = "", *, dataset: str = "", n: int = MOST_SIMILAR) -> tuple[Similar, ...]:
    """The ``n`` published datasets most like a task: its own dataset, then those of its kind, then by CW.

    Distance in CW is that of the logarithms of CW + 1: from 5 to 10 is about as far as from 30 to 60. Without a kind
    only CW counts. Datasets of web search were printed as in-domain, so they only stand for that kind.
    """
    kinds = kinds_of_datasets()
    candidates = [
        Similar(name, kinds[name], at, gains)
        for name, (at, gains) in _gains().items()
        if kinds[name] != "web-search" or task == "web-search" or name == dataset
    ]

    def apart(s: Similar) -> tuple[bool, bool, float]:
        return s.dataset != dataset, s.kind != task, abs(math.log((s.cw + 1) / (cw + 1)))

    return tuple(sorted(candidates, key=apart)[:n])
