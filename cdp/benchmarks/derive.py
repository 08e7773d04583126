"""Harder or easier benchmarks made of one that is stored: its queries by their number of hops, relevant documents or
content words, and conjunctions of queries that each have their documents.

The documents stay all of them, so scores on the parts can be compared with the whole. What was made of what, and how,
stands in the manifest; the same arguments give the same benchmark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, checked_name, folder_size, now
from cdp.benchmarks import library, manifests
from cdp.benchmarks.beir_files import QueryLine, iter_corpus, read_qrels, read_queries
from cdp.benchmarks.beir_writing import write_beir
from cdp.benchmarks.benchmark import part, qrels_files, subset_note
from cdp.benchmarks.library import BenchmarkInfo

HOPS, RELEVANT, CW = "hops", "relevant", "cw"
KINDS = {
    HOPS: "the number of hops that the query's id begins with (MuSiQue: 3hop1__…)",
    RELEVANT: "how many documents are relevant for the query",
    CW: "the content words of the query",
}

CONJUNCTION = "conjunction"

KIND = "derived"
"""``source["kind"]`` in the manifest of what is made here; ``source["of"]`` names what it was made of."""

FEWEST = 10
"""A part with fewer queries is left out unless it is asked for: its mean would say nothing."""

AND: Mapping[str, str] = {
    "en": " and ",
    "fr": " et ",
    "ru": " и ",
    "ar": " و",
    "zh": "，",
    "ja": "、",
    "ko": " 그리고 ",
}
"""What joins two queries; in other languages a space does."""

_ID_HOPS = re.compile(r"^(\d)hop")
_ENDING = re.compile(r"[\s.?!。？！؟]+$")

CountWords = Callable[[Sequence[str], str], Sequence[int]]
"""Content words of each text in a language: (texts, language) → counts. Given by the caller, for no noun counts."""


@dataclass(frozen=True, slots=True)
class Part:
    """A benchmark that was made. ``value`` is the range of hops, relevant documents or content words of its queries."""

    info: BenchmarkInfo
    value: str
    existed: bool


@dataclass(frozen=True)
class Drawn:
    """The queries of a benchmark that can be made: its name, how it comes about, and everything by query id."""

    called: str
    recipe: Mapping[str, Any]
    texts: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    excluded: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Source:
    """One split of the benchmark that others are made of. ``kept`` are its judged queries with a relevant document."""

    info: BenchmarkInfo
    manifest: manifests.Manifest
    folder: Path
    split: str
    lines: Mapping[str, QueryLine]
    qrels: Mapping[str, Mapping[str, int]]
    kept: tuple[str, ...]


def by_value(
    workspace: Workspace,
    name: str,
    kind: str,
    *,
    count: CountWords,
    split: str = "",
    edges: Sequence[int] = (),
    fewest: int = FEWEST,
) -> tuple[list[Part], int]:
    """A benchmark for each part of ``draw_parts``: (what was made, how many queries are in none)."""
    source = read(workspace, name, split)
    drawn, left_out = draw_parts(source, kind, count=count, edges=edges, fewest=fewest)
    return [_store(workspace, source, part) for part in drawn], left_out


def conjunctions(
    workspace: Workspace, name: str, *, of: int = 2, queries: int = 200, split: str = "", seed: int = 0
) -> tuple[Part, int]:
    """The benchmark of ``draw_conjunctions``: (it, how many queries take no part)."""
    source = read(workspace, name, split)
    drawn, left_out = draw_conjunctions(source, of=of, queries=queries, seed=seed)
    return _store(workspace, source, drawn), left_out


def draw_parts(
    source: Source, kind: str, *, count: CountWords, edges: Sequence[int] = (), fewest: int = FEWEST
) -> tuple[list[Drawn], int]:
    """The queries by each value of ``kind``: (the parts, how many queries are in none).

    ``edges`` [a, b] make the parts below a, from a to b - 1, and b or more; without them each hop or number is a part
    of its own, and content words are cut at their terciles. Parts with fewer than ``fewest`` queries are left out and
    counted, and so are queries whose id tells no hops. InputError where the queries give fewer than two values.
    """
    if kind not in KINDS:
        raise ConfigError(f"{kind!r} is nothing to divide by.", hint=f"Choose one of {', '.join(KINDS)}.")
    if list(edges) != sorted(set(edges)):
        raise ConfigError("The edges must ascend.", hint="For example: 6 9")
    values = _values(source, kind, count)
    if kind == CW and not edges:
        edges = _terciles(list(values.values()))
    groups: dict[tuple[int, str], list[str]] = {}
    for query, value in values.items():
        groups.setdefault(_range(value, edges), []).append(query)
    if len(groups) < 2:
        raise InputError(
            f"The queries of {source.info.name} are not told apart by {KINDS[kind]}.",
            hint="Divide by something else, or at other edges, such as 6 9.",
        )
    drawn, left_out = [], len(source.kept) - len(values)
    for (_, label), queries in sorted(groups.items()):
        if len(queries) < fewest:
            left_out += len(queries)
            continue
        drawn.append(
            Drawn(
                called=f"{source.info.name}-{kind}-{label}",
                recipe={"by": kind, "range": label},
                texts={query: source.lines[query].text for query in queries},
                qrels={query: source.qrels[query] for query in queries},
                excluded={query: source.lines[query].excluded for query in queries},
            )
        )
    if not drawn:
        raise InputError(f"No part of {source.info.name} has {fewest} queries.", hint="Ask for smaller ones: --fewest")
    return drawn, left_out


def draw_conjunctions(source: Source, *, of: int = 2, queries: int = 200, seed: int = 0) -> tuple[Drawn, int]:
    """Conjunctions: ``of`` queries joined by "and", relevant is what is relevant for any of them.

    Which queries are joined is drawn by a hash of their ids and ``seed``; each takes part once, and queries that share
    a relevant document are never joined. (The conjunctions, how many queries take no part.) ConfigError below two.
    """
    if of < 2 or queries < 1:
        raise ConfigError("A conjunction joins at least two queries.", hint="Ask for 2 or 3: --conjunctions 2")
    waiting = sorted(source.kept, key=lambda query: _order(seed, query))
    texts: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    excluded: dict[str, tuple[str, ...]] = {}
    joiner = AND.get(source.info.language, " ")
    while len(texts) < queries and (group := _next_group(waiting, source, of)):
        identifier = "+".join(group)
        texts[identifier] = conjoined([source.lines[query].text for query in group], joiner)
        grades: dict[str, int] = {}
        for query in group:
            for document, grade in source.qrels[query].items():
                grades[document] = max(grade, grades.get(document, grade))
        qrels[identifier] = grades
        shut_out = dict.fromkeys(d for query in group for d in source.lines[query].excluded)
        excluded[identifier] = tuple(d for d in shut_out if d not in grades)
    if not texts:
        raise InputError(f"{source.info.name} has no {of} queries with documents of their own.")
    called = f"{source.info.name}-and{of}-{len(texts)}q" + (f"-s{seed}" if seed else "")
    recipe = {"by": CONJUNCTION, "range": str(of), "seed": seed, "queries": len(texts)}
    return Drawn(called, recipe, texts, qrels, excluded), len(source.kept) - of * len(texts)


def hops_of(query_id: str) -> int | None:
    """The hops that a query's id tells (``2hop__…``); None where it tells none."""
    match = _ID_HOPS.match(query_id)
    return int(match[1]) if match else None


def conjoined(texts: Sequence[str], joiner: str) -> str:
    """One query of several: their endings go, but for a question mark of the last."""
    last = texts[-1].rstrip()
    ending = last[-1] if last[-1:] in "?？؟" else ""
    return joiner.join(_ENDING.sub("", text) for text in texts) + ending


def _next_group(waiting: list[str], source: Source, of: int) -> list[str]:
    """Takes the next queries that share no relevant document from ``waiting``; empty where there are no more."""
    group: list[str] = []
    used: set[str] = set()
    for query in waiting:
        relevant = {d for d, grade in source.qrels[query].items() if grade > 0}
        if relevant & used:
            continue
        group.append(query)
        used |= relevant
        if len(group) == of:
            for chosen in group:
                waiting.remove(chosen)
            return group
    return []


def read(workspace: Workspace, name: str, split: str = "") -> Source:
    """The split of a stored benchmark, its only or first one without a name, without its documents."""
    folder = library.resolve_benchmark(name, workspace)
    info = library.describe(folder, workspace)
    split = library.choose_split(info, split)
    lines, qrels = read_queries(part(folder, "queries")), read_qrels(qrels_files(folder)[split]).grades
    kept = tuple(query for query, grades in qrels.items() if query in lines and max(grades.values(), default=0) > 0)
    return Source(info, manifests.read(folder), folder, split, lines, qrels, kept)


def _values(source: Source, kind: str, count: CountWords) -> dict[str, int]:
    """What each query is told apart by; those without a value are left out."""
    if kind == CW:
        counted = count([source.lines[query].text for query in source.kept], source.info.language or "en")
        return {query: int(value) for query, value in zip(source.kept, counted, strict=True)}
    if kind == RELEVANT:
        return {query: sum(grade > 0 for grade in source.qrels[query].values()) for query in source.kept}
    return {query: hops for query in source.kept if (hops := hops_of(query)) is not None}


def _terciles(values: list[int]) -> list[int]:
    ordered = sorted(values)
    return sorted({ordered[len(ordered) // 3], ordered[2 * len(ordered) // 3]} - {ordered[0]}) if ordered else []


def _range(value: int, edges: Sequence[int]) -> tuple[int, str]:
    """(where the range of a value begins, its name)."""
    if not edges:
        return value, str(value)
    low = max((edge for edge in edges if edge <= value), default=0)
    high = next((edge for edge in edges if edge > value), None)
    if high is None:
        return low, f"from{low}"
    return low, str(high - 1) if high - 1 == low else f"{low}to{high - 1}"


def _order(seed: int, query: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{query}".encode("utf-8", "surrogatepass")).digest()


def _store(workspace: Workspace, source: Source, drawn: Drawn) -> Part:
    """What was stored, or was there already; ConfigError where something else has its name."""
    called, recipe = drawn.called, drawn.recipe
    target = workspace.benchmarks / checked_name(called)
    origin = {
        "kind": KIND, "of": source.info.name, "hash": source.info.content_hash, "split": source.split, **recipe,
        "commits": source.manifest.commits,
    }  # fmt: skip
    if target.exists():
        if dict(manifests.read(target).source) != origin:
            raise ConfigError(
                f"The workspace has another benchmark called {called!r}.", hint="Delete that one first, or keep it."
            )
        return Part(library.describe(target, workspace), recipe["range"], True)
    manifest = replace(
        source.manifest,
        entry="",
        title=f"{source.manifest.title or source.info.name}: {_words(recipe)}",
        licence=source.manifest.licence or source.info.licence,
        language=source.manifest.language or source.info.language,
        source=origin,
        files=(),
        counts={},
        subset=None,  # a part of a subset stands for no whole benchmark
        notes=(_note(source, recipe), *subset_note(source.manifest)),
        created=now(),
    )
    lines = [
        {"_id": query, "text": text, **({"excluded_ids": list(drawn.excluded[query])} if drawn.excluded[query] else {})}
        for query, text in drawn.texts.items()
    ]
    try:
        with staging(workspace.benchmarks) as incoming:
            folder = incoming / "derived"
            write_beir(folder, source.split, iter_corpus(part(source.folder, "corpus")), lines, drawn.qrels)
            manifests.write(folder, manifest)
            made = library.survey(folder, allow_unknown=manifest.allow_unknown)
            if not library.install(folder, target):  # somebody made the same at the same time
                return Part(library.describe(target, workspace), recipe["range"], True)
    except OSError as error:
        raise WorkspaceError(f"The benchmark could not be written: {error.strerror or error}.") from error
    made = replace(made, name=called, folder=str(target), bytes=folder_size(target))
    library.cache_info(made, target, workspace)
    return Part(made, recipe["range"], False)


def _words(recipe: Mapping[str, Any]) -> str:
    if recipe["by"] == CONJUNCTION:
        return f"conjunctions of {recipe['range']} queries"
    return f"{recipe['by']} {recipe['range']}"


def _note(source: Source, recipe: Mapping[str, Any]) -> str:
    if recipe["by"] == CONJUNCTION:
        return (
            f"Conjunctions made by program of {recipe['range']} queries each of {source.info.name} ({source.split}): "
            "nobody asked them in this form."
        )
    return f"The queries of {source.info.name} ({source.split}) with {recipe['by']} {recipe['range']}, all documents."
