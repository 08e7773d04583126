"""A small benchmark drawn from a stored one, the same each time: some queries, all that answers them, other documents.

Scores on a subset are higher than on the whole, for there are fewer documents to confuse the right ones with. Its
manifest says what it was drawn from, its name says how large it is, and every result on it carries a note.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, checked_name, folder_size, now
from cdp.benchmarks import library, manifests
from cdp.benchmarks.beir_files import iter_corpus, read_qrels, read_queries, write_beir
from cdp.benchmarks.benchmark import judged_split, part, qrels_files
from cdp.benchmarks.library import BenchmarkInfo
from cdp.benchmarks.manifests import Manifest, Subset

SUBSET = re.compile(r"-(sample|subset)-")
"""What tells a subset by its name: between the whole benchmark's name and its size. Older ones say subset."""

QUERIES, DOCUMENTS = 50, 2000
"""How much is drawn if nothing else is said: NanoBEIR's 50 queries, with somewhat fewer documents."""

Qrels = Mapping[str, Mapping[str, int]]


def sample(
    name: str,
    workspace: Workspace,
    *,
    queries: int = QUERIES,
    documents: int = DOCUMENTS,
    split: str = "",
    seed: int = 0,
    called: str = "",
) -> tuple[BenchmarkInfo, bool]:
    """Draw a subset of a benchmark of the workspace and store it: (what it is, whether it was there already).

    ``queries`` are drawn from those with a relevant document, ``documents`` are all documents that are relevant for
    them and others up to that number. Queries and documents are chosen by a hash of their ids and the ``seed``: the
    same benchmark always gives the same subset, and a larger one holds the smaller one's queries. A benchmark with
    fewer is taken whole. ConfigError where the relevant documents alone are more than ``documents``, or the name is
    taken.
    """
    source = library.resolve_benchmark(name, workspace)
    info = library.describe(source, workspace)
    split = library.choose_split(info, split)
    manifest = manifests.read(source)
    if manifest.subset is not None:
        raise ConfigError(f"{info.name} is a subset itself.", hint=f"Draw from {manifest.subset.of}.")
    chosen, relevant, lines = _queries(source, split, queries, seed, manifest)
    total = min(documents, info.n_documents)
    called = checked_name(called or name_of(info.name, len(chosen), total, split, seed))
    subset = Subset(info.name, info.content_hash, split, len(chosen), total, seed)
    target = workspace.benchmarks / called
    if target.exists():
        return _stored(target, subset, workspace), True
    document_ids = _documents(source, relevant, documents, seed)
    try:
        with staging(workspace.benchmarks) as incoming:
            folder = incoming / "subset"
            _write(folder, source, split, chosen, lines, document_ids)
            manifests.write(folder, _manifest(manifest, info, subset))
            drawn = library.survey(folder, allow_unknown=False)
            if not library.install(folder, target):  # somebody drew the same subset at the same time
                return _stored(target, subset, workspace), True
    except OSError as error:
        raise WorkspaceError(f"The subset could not be written: {error.strerror or error}.") from error
    drawn = replace(drawn, name=called, folder=str(target), bytes=folder_size(target))
    library.cache_info(drawn, target, workspace)
    return drawn, False


def _stored(target: Path, subset: Subset, workspace: Workspace) -> BenchmarkInfo:
    """The subset that is there already; ConfigError where something else has its name."""
    if manifests.read(target).subset != subset:
        raise ConfigError(
            f"The workspace has another benchmark called {target.name!r}.", hint="Give this one another name."
        )
    return library.describe(target, workspace)


def name_of(name: str, queries: int, documents: int, split: str, seed: int = 0) -> str:
    """``scifact-sample-300q-2000d``: what a subset is called by whoever draws one. Another split than test is named."""
    return "-".join(
        [
            name,
            "sample",
            f"{queries}q",
            f"{documents}d",
            *([split] if split != "test" else []),
            *([f"s{seed}"] if seed else []),
        ]
    )


def _order(seed: int, what: str, identifier: str) -> bytes:
    """Where an id stands in the draw: the same on every machine."""
    return hashlib.sha256(f"{seed}\0{what}\0{identifier}".encode("utf-8", "surrogatepass")).digest()


def _queries(
    source: Path, split: str, n: int, seed: int, manifest: Manifest
) -> tuple[Qrels, set[str], dict[str, dict[str, Any]]]:
    """(judgments of the chosen queries in the order of their file, documents relevant for them, their lines)."""
    queries = read_queries(part(source, "queries"))
    judgments = read_qrels(qrels_files(source)[split])
    named = judgments.document_lines
    known_documents = {document.id for document in iter_corpus(part(source, "corpus")) if document.id in named}
    judged = judged_split(queries, judgments, known_documents, manifest, allow_unknown=True)
    answered = [
        query
        for query in judged.query_ids
        if any(d in known_documents and g > 0 for d, g in judged.qrels[query].items())
    ]
    if not answered:
        raise InputError(f"No query of the split {split} has a relevant document.")
    drawn = set(sorted(answered, key=lambda query: _order(seed, "query", query))[:n])
    chosen = {query: judged.qrels[query] for query in answered if query in drawn}
    relevant = {d for grades in chosen.values() for d, grade in grades.items() if grade > 0 and d in known_documents}
    lines: dict[str, dict[str, Any]] = {}
    for query in chosen:
        lines[query] = {"_id": query, "text": queries[query].text}
        if queries[query].excluded:
            lines[query]["excluded_ids"] = list(queries[query].excluded)
    return chosen, relevant, lines


def _documents(source: Path, relevant: set[str], n: int, seed: int) -> set[str]:
    """Ids of the relevant documents and of others, ``n`` in all."""
    if len(relevant) > n:
        raise ConfigError(
            f"{len(relevant):,} documents are relevant for these queries, more than the {n:,} asked for.",
            hint=f"Ask for at least {len(relevant):,} documents, or for fewer queries.",
        )
    others = (
        (_order(seed, "document", document.id), document.id)
        for document in iter_corpus(part(source, "corpus"))
        if document.id not in relevant
    )
    return relevant | {identifier for _, identifier in heapq.nsmallest(n - len(relevant), others)}


def _write(
    folder: Path, source: Path, split: str, qrels: Qrels, lines: Mapping[str, Mapping[str, Any]], document_ids: set[str]
) -> None:
    """The three files of the subset; judgments of documents that were not drawn are left out."""
    drawn = (document for document in iter_corpus(part(source, "corpus")) if document.id in document_ids)
    judged = {query: {d: grade for d, grade in grades.items() if d in document_ids} for query, grades in qrels.items()}
    write_beir(folder, drawn, lines.values(), {split: judged})


def _manifest(manifest: Manifest, info: BenchmarkInfo, subset: Subset) -> Manifest:
    """The whole benchmark's manifest, for the subset: protocol and licence stay, the source is the whole one."""
    return replace(
        manifest,
        title=f"{manifest.title or info.name}, a subset",
        licence=manifest.licence or info.licence,
        source={"kind": "subset", "of": info.name, "hash": info.content_hash, "commits": manifest.commits},
        files=(),
        counts={},
        subset=subset,
        notes=(),
        created=now(),
    )
