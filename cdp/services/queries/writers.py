"""What would write the queries of a project: the generator that was chosen or last used, for prices and tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdp import query_sets
from cdp.base.workspace import Workspace
from cdp.query_sets import QuerySet
from cdp.services.projects import Index
from cdp.synthesis.generators import GENERATORS

EXAMPLE = "openai"
"""Whose default model prices are shown for where nothing was chosen and nothing written: the one endpoint that needs
no address, with the model that the paper used."""

CHOSEN, HERE, ELSEWHERE, UNUSED = (
    "chosen here",
    "last used here",
    "last used in this workspace",
    "an example: nothing was written here yet",
)


@dataclass(frozen=True)
class Writer:
    """A generator with its model. ``basis`` says why this one, in a few words."""

    generator: str
    model: str
    basis: str

    @classmethod
    def of(cls, settings: Mapping[str, Any], basis: str = CHOSEN) -> Writer:
        """The writer of a form's or a job's settings: an empty model is the generator's default."""
        generator = str(settings.get("generator") or "")
        chosen = GENERATORS[generator]
        return cls(generator, str(settings.get("model") or chosen.model) if chosen.is_llm else "", basis)

    @property
    def name(self) -> str:
        """In words: ``gpt-4o-mini``, ``the template generator``."""
        if self.model:
            return self.model
        return "recorded answers" if self.generator == "recorded" else f"the {self.generator} generator"

    @property
    def free(self) -> bool:
        """Whether nobody is paid: no LLM, or one on this machine."""
        return not GENERATORS[self.generator].endpoint

    @property
    def settings(self) -> dict[str, str]:
        """Fields of ``SynthesisConfig``."""
        return {"generator": self.generator, **({"model": self.model} if self.model else {})}


def writer(workspace: Workspace, corpus: str = "", chosen: Writer | None = None) -> Writer:
    """What was ``chosen``; else what last wrote queries for a corpus, for another one of its projects, or in the
    workspace; else the example."""
    if chosen is not None:
        return chosen
    written = [q for q in query_sets.list_query_sets(workspace) if q.generator in GENERATORS and q.generator]
    if not written:
        return Writer.of({"generator": EXAMPLE}, UNUSED)
    related = siblings(workspace, corpus)

    def order(query_set: QuerySet) -> tuple[bool, bool, str]:
        return query_set.corpus_id == corpus, query_set.corpus_id in related, query_set.created

    last = max(written, key=order)
    return Writer.of({"generator": last.generator, "model": last.model}, HERE if order(last)[1] else ELSEWHERE)


def siblings(workspace: Workspace, corpus: str) -> frozenset[str]:
    """The corpora of all projects that a corpus belongs to, itself among them."""
    own = [project.corpora for project in Index(workspace).projects if corpus in project.corpora]
    return frozenset(corpus_id for members in own for corpus_id in members)
