"""Harder and easier benchmarks of a stored one: what would come of it, and making it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.benchmarks import derive
from cdp.benchmarks.derive import CW, HOPS, RELEVANT, Drawn, Part, Source
from cdp.complexity import count_content_words
from cdp.services import benchmarks
from cdp.services.sharing import access

__all__ = ["CW", "HOPS", "RELEVANT", "Part"]

FEWEST, CONJUNCTIONS = derive.FEWEST, 200


@dataclass(frozen=True)
class Preview:
    """A benchmark that would be made: its name, its queries and the mean of their content words."""

    name: str
    n_queries: int
    cw: float


@access.reads
def preview_parts(
    workspace: Workspace, name: str, by: str, *, split: str = "", edges: Sequence[int] = (), fewest: int = FEWEST
) -> tuple[list[Preview], int]:
    """What ``derive_parts`` would make: (the parts, the queries in none). Nothing is written."""
    _check_fewest(fewest)
    source = derive.read(workspace, access.benchmark(workspace, name), split)
    drawn, left_out = derive.draw_parts(source, by, count=_count, edges=edges, fewest=fewest)
    return [_preview(source, part) for part in drawn], left_out


@access.reads
def preview_conjunctions(
    workspace: Workspace, name: str, *, of: int = 2, queries: int = CONJUNCTIONS, split: str = "", seed: int = 0
) -> tuple[Preview, int]:
    """What ``derive_conjunctions`` would make: (it, the queries that take no part). Nothing is written."""
    source = derive.read(workspace, access.benchmark(workspace, name), split)
    drawn, left_out = derive.draw_conjunctions(source, of=of, queries=queries, seed=seed)
    return _preview(source, drawn), left_out


@access.writes
def derive_parts(
    workspace: Workspace, name: str, by: str, *, split: str = "", edges: Sequence[int] = (), fewest: int = FEWEST
) -> tuple[list[Part], int]:
    """Divide a stored benchmark by hops, relevant documents or content words: (the parts, the queries in none)."""
    _check_fewest(fewest)
    name = access.benchmark(workspace, name)
    parts, left_out = derive.by_value(workspace, name, by, count=_count, split=split, edges=edges, fewest=fewest)
    for part in parts:
        benchmarks.join_projects_of(workspace, name, part.info.name)
    return parts, left_out


@access.writes
def derive_conjunctions(
    workspace: Workspace, name: str, *, of: int = 2, queries: int = CONJUNCTIONS, split: str = "", seed: int = 0
) -> tuple[Part, int]:
    """A benchmark of conjunctions of a stored one's queries: (it, the queries that take no part)."""
    name = access.benchmark(workspace, name)
    part, left_out = derive.conjunctions(workspace, name, of=of, queries=queries, split=split, seed=seed)
    benchmarks.join_projects_of(workspace, name, part.info.name)
    return part, left_out


def edges_of(text: str) -> list[int]:
    """Where parts begin, from a text like ``6 9`` or ``6, 9``; ConfigError for what is no whole number."""
    words = re.split(r"[\s,;]+", text.strip()) if text.strip() else []
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise ConfigError(f"{text!r} does not say where parts begin.", hint="Whole numbers that ascend, such as 6 9.")
    return [int(word) for word in words]


def _check_fewest(fewest: int) -> None:
    if fewest < 1:
        raise ConfigError("A part has at least one query.")


def _count(texts: Sequence[str], language: str) -> list[int]:
    return [int(n) for n in count_content_words(texts, language)]


def _preview(source: Source, drawn: Drawn) -> Preview:
    counts = _count(list(drawn.texts.values()), source.info.language or "en")
    return Preview(drawn.called, len(counts), sum(counts) / len(counts))
