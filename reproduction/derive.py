"""Harder or easier benchmarks made of a stored one: its queries by hops or content words, and conjunctions of queries.

All documents stay, so scores on the parts can be compared with the whole. The manifest says what was made of what, and
how; the same arguments give the same benchmark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdp.base.errors import ConfigError, InputError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, folder_size, now
from cdp.benchmarks import BenchmarkInfo, library, manifests
from cdp.benchmarks.beir_files import QueryLine, iter_corpus, read_qrels, read_queries, write_beir
from cdp.benchmarks.benchmark import part, qrels_files, subset_note
from cdp.complexity import count_content_words

HOPS, CW, CONJUNCTION = "hops", "cw", "conjunction"

# Below this number a part's mean says nothing.
FEWEST = 10

_HOPS = re.compile(r"^(\d)hop")  # of a query id of MuSiQue: 3hop1__…
_ENDING = re.compile(r"[\s.?!]+$")


@dataclass(frozen=True)
class Source:
    """One split of a benchmark, without its documents. ``kept`` are the judged queries with a relevant document."""

    info: BenchmarkInfo
    manifest: manifests.Manifest
    split: str
    lines: Mapping[str, QueryLine]
    qrels: Mapping[str, Mapping[str, int]]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class Drawn:
    """The queries of a derived benchmark: its name, its recipe for the manifest, and everything by query id."""

    called: str
    recipe: Mapping[str, Any]
    texts: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    excluded: Mapping[str, Sequence[str]]


def by_value(
    workspace: Workspace, name: str, kind: str, edge: int, *, split: str = "", fewest: int = FEWEST
) -> list[BenchmarkInfo]:
    """Store two benchmarks: the queries with fewer hops or content words than ``edge``, and the others.

    A part with fewer than ``fewest`` queries is left out, and so is a query whose id states no hops. InputError where
    one part would be empty.
    """
    source = _read(workspace, name, split)
    if kind == CW:
        texts = [source.lines[query].text for query in source.kept]
        counts = count_content_words(texts, source.info.language or "en")
        values = dict(zip(source.kept, counts, strict=True))
    else:
        values = {query: int(match[1]) for query in source.kept if (match := _HOPS.match(query))}
    parts = {
        f"0to{edge - 1}": [query for query, value in values.items() if value < edge],
        f"from{edge}": [query for query, value in values.items() if value >= edge],
    }
    if not all(parts.values()):
        raise InputError(f"{kind} {edge} does not divide the queries of {name}.")
    drawn = [
        Drawn(
            called=f"{source.info.name}-{kind}-{label}",
            recipe={"by": kind, "range": label},
            texts={query: source.lines[query].text for query in queries},
            qrels={query: source.qrels[query] for query in queries},
            excluded={query: source.lines[query].excluded for query in queries},
        )
        for label, queries in parts.items()
        if len(queries) >= fewest
    ]
    return [_store(workspace, source, part) for part in drawn]


def conjunctions(
    workspace: Workspace, name: str, *, queries: int = 200, split: str = "", seed: int = 0
) -> BenchmarkInfo:
    """Store a benchmark of at most ``queries`` pairs of queries joined by "and" (English).

    Relevant is what is relevant for either. Which are joined is drawn by a hash of their ids and ``seed``; each takes
    part once, and queries that share a relevant document are never joined.
    """
    source = _read(workspace, name, split)
    waiting = sorted(source.kept, key=lambda query: hashlib.sha256(f"{seed}\0{query}".encode()).digest())
    texts: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    excluded: dict[str, tuple[str, ...]] = {}
    while len(texts) < queries and (pair := _next_pair(waiting, source)):
        identifier = "+".join(pair)
        texts[identifier] = conjoined(*(source.lines[query].text for query in pair))
        grades: dict[str, int] = {}
        for query in pair:
            for document, grade in source.qrels[query].items():
                grades[document] = max(grade, grades.get(document, grade))
        qrels[identifier] = grades
        shut_out = dict.fromkeys(d for query in pair for d in source.lines[query].excluded)
        excluded[identifier] = tuple(d for d in shut_out if d not in grades)
    if not texts:
        raise InputError(f"{name} has no two queries with documents of their own.")
    called = f"{source.info.name}-and2-{len(texts)}q" + (f"-s{seed}" if seed else "")
    recipe = {"by": CONJUNCTION, "range": "2", "seed": seed, "queries": len(texts)}
    return _store(workspace, source, Drawn(called, recipe, texts, qrels, excluded))


def conjoined(first: str, second: str) -> str:
    """Return both as one query: their endings go, except a question mark of the second."""
    ending = "?" if second.rstrip().endswith("?") else ""
    return " and ".join(_ENDING.sub("", text) for text in (first, second)) + ending


def _next_pair(waiting: list[str], source: Source) -> list[str]:
    """Remove from ``waiting`` the next two queries without a common relevant document; empty where there are none."""
    pair: list[str] = []
    used: set[str] = set()
    for query in waiting:
        relevant = {d for d, grade in source.qrels[query].items() if grade > 0}
        if relevant & used:
            continue
        pair.append(query)
        used |= relevant
        if len(pair) == 2:
            for chosen in pair:
                waiting.remove(chosen)
            return pair
    return []


def _read(workspace: Workspace, name: str, split: str) -> Source:
    folder = library.resolve_benchmark(name, workspace)
    info = library.describe(folder, workspace)
    split = library.choose_split(info, split)
    lines, qrels = read_queries(part(folder, "queries")), read_qrels(qrels_files(folder)[split]).grades
    kept = tuple(query for query, grades in qrels.items() if query in lines and max(grades.values(), default=0) > 0)
    return Source(info, manifests.read(folder), split, lines, qrels, kept)


def _store(workspace: Workspace, source: Source, drawn: Drawn) -> BenchmarkInfo:
    """Write the benchmark, or return the stored one; ConfigError where something else has its name."""
    target = workspace.benchmarks / drawn.called
    origin = {
        "kind": manifests.DERIVED, "of": source.info.name, "hash": source.info.content_hash, "split": source.split,
        **drawn.recipe, "commits": source.manifest.commits,
    }  # fmt: skip
    if target.exists():
        if dict(manifests.read(target).source) != origin:
            raise ConfigError(f"The workspace has another benchmark called {drawn.called!r}.")
        return library.describe(target, workspace)
    manifest = replace(
        source.manifest,
        entry="",
        title=f"{source.manifest.title or source.info.name}: {drawn.recipe['by']} {drawn.recipe['range']}",
        licence=source.manifest.licence or source.info.licence,
        language=source.manifest.language or source.info.language,
        source=origin,
        files=(),
        counts={},
        subset=None,  # a part of a subset stands for no whole benchmark
        notes=(_note(source, drawn), *subset_note(source.manifest)),
        created=now(),
    )
    lines = [
        {"_id": query, "text": text, **({"excluded_ids": list(drawn.excluded[query])} if drawn.excluded[query] else {})}
        for query, text in drawn.texts.items()
    ]
    with staging(workspace.benchmarks) as incoming:
        folder = incoming / "derived"
        documents = iter_corpus(part(workspace.benchmarks / source.info.name, "corpus"))
        write_beir(folder, documents, lines, {source.split: drawn.qrels})
        manifests.write(folder, manifest)
        made = library.survey(folder, allow_unknown=manifest.allow_unknown)
        library.install(folder, target)
    made = replace(made, name=drawn.called, folder=str(target), bytes=folder_size(target))
    library.cache_info(made, target, workspace)
    return made


def _note(source: Source, drawn: Drawn) -> str:
    if drawn.recipe["by"] == CONJUNCTION:
        return (
            f"Conjunctions made by program of 2 queries each of {source.info.name} ({source.split}): no person asked "
            "them in this form."
        )
    by, values = drawn.recipe["by"], drawn.recipe["range"]
    return f"The queries of {source.info.name} ({source.split}) with {by} {values}, all documents."
