"""Searching by hand: one query, the best documents of up to three retrievers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cdp import jobs
from cdp.base.config import IndexConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.paths import typed_folder
from cdp.base.workspace import Workspace, is_name
from cdp.evaluation import bm25
from cdp.jobs import JobView
from cdp.retrievers import PRESETS
from cdp.searching import Collection, Engine, NotPreparedError, list_collections, resolve_collection
from cdp.searching.engine import available
from cdp.searching.limits import memory_limit
from cdp.searching.queries import DEFAULT_K, MOST_K, checked_query
from cdp.services import training
from cdp.services.jobs import devices
from cdp.services.search import process
from cdp.services.sharing import access
from cdp.services.training import RetrieverChoice

__all__ = ["Collection", "list_collections", "resolve_collection"]

WORKER = "cdp.workers.index"

MOST_RETRIEVERS = 3
"""Side by side; more columns than that nobody reads."""


@dataclass(frozen=True)
class Hit:
    """One retrieved document. ``rank`` counts from 1. ``before`` is its rank with the first retriever, None where that
    one does not retrieve it among its best. ``words`` are those of the document that match one of the query's."""

    rank: int
    id: str
    title: str
    text: str
    score: float
    words: tuple[str, ...] = ()
    before: int | None = None


@dataclass(frozen=True)
class Answer:
    """What one retriever retrieved, best first, or the ``problem`` that kept it from that.

    ``ready_s`` and ``search_s`` are seconds: loading what was not held yet, and the search itself. ``index_s`` is set
    where the documents have to be indexed by a job first, and estimates how long that takes.
    """

    retriever: str
    title: str
    hits: list[Hit] = field(default_factory=list)
    ready_s: float = 0.0
    search_s: float = 0.0
    problem: CdpError | None = None
    index_s: float | None = None


@dataclass(frozen=True)
class Searched:
    """The answers to one query, in the order of the retrievers."""

    query: str
    collection: Collection
    answers: list[Answer]


def list_retrievers(workspace: Workspace) -> list[RetrieverChoice]:
    """What can be searched with at once: BM25, the presets that are on this machine, then the trained retrievers."""
    lexical = RetrieverChoice(bm25.NAME, bm25.TITLE, "preset", "matches words; nothing is trained")
    return [lexical, *(c for c in training.list_retrievers(workspace) if c.kind == "job" or _is_here(workspace, c.id))]


def _is_here(workspace: Workspace, preset: str) -> bool:
    if PRESETS[preset].embedded:
        return True  # its weights are looked at when it is used
    try:
        available(workspace, preset)
    except CdpError:
        return False
    return True


@access.searches
def search(
    workspace: Workspace,
    query: str,
    retrievers: Sequence[str],
    collection: str,
    k: int = DEFAULT_K,
    *,
    keep_warm: bool = True,
) -> Searched:
    """Search with each retriever. What is wrong with one is its answer's ``problem`` and leaves the others alone.

    With ``keep_warm`` the search process answers and holds what it loaded for the next query; without, it does so only
    where it runs already, and nothing is left running. InputError for a query or a choice that cannot be searched,
    NotFoundError for a collection that is not there.
    """
    text = checked_query(query)
    if not retrievers:
        raise InputError("No retriever is chosen.", hint="Choose up to three.")
    if len(retrievers) > MOST_RETRIEVERS:
        raise InputError(f"At most {MOST_RETRIEVERS} retrievers are compared at once.", hint="Leave some out.")
    if not 1 <= k <= MOST_K:
        raise InputError(f"Between 1 and {MOST_K} documents are shown, not {k}.")
    searched = resolve_collection(workspace, collection)
    warm = keep_warm or process.is_running(workspace)
    engine = None if warm else Engine(workspace, memory_limit())
    answers = [_answer(workspace, engine, name, searched, text, k) for name in dict.fromkeys(retrievers)]
    return Searched(text, searched, _with_moves(answers))


def _answer(
    workspace: Workspace, engine: Engine | None, retriever: str, collection: Collection, query: str, k: int
) -> Answer:
    name = retriever.strip()
    try:
        name = _whole_name(workspace, name)
        if engine is not None:
            value = engine.search(name, collection.id, query, k)
        else:
            request = {"op": "search", "retriever": name, "collection": collection.id, "query": query, "k": k}
            value = process.ask(workspace, request)
    except CdpError as problem:
        seconds = problem.seconds if isinstance(problem, NotPreparedError) else None
        return Answer(retriever, _title(workspace, name), problem=problem, index_s=seconds)
    hits = [
        Hit(rank, str(h["id"]), str(h["title"]), str(h["text"]), float(h["score"]), tuple(h["words"]))
        for rank, h in enumerate(value["hits"], 1)
    ]
    seconds = value["seconds"]
    return Answer(retriever, str(value["title"]), hits, float(seconds["ready"]), float(seconds["search"]))


def _whole_name(workspace: Workspace, name: str) -> str:
    """The retriever's name as it may be used here; a folder with its whole path, for the process has another one."""
    if bm25.language_in(name) is not None:
        return name
    name = access.model(workspace, name)
    is_job = is_name(name) and workspace.job(name).is_dir()
    folder = None if name in PRESETS or is_job else typed_folder(name)
    return name if folder is None else str(folder.resolve())


def _title(workspace: Workspace, name: str) -> str:
    if bm25.language_in(name) is not None:
        return bm25.TITLE
    return next((choice.title for choice in training.list_retrievers(workspace) if choice.id == name), name)


def _with_moves(answers: list[Answer]) -> list[Answer]:
    """Each hit with its rank in the first answer that has any."""
    first = next((answer for answer in answers if answer.hits), None)
    if first is None:
        return answers
    ranks = {hit.id: hit.rank for hit in first.hits}
    return [replace(a, hits=[replace(hit, before=ranks.get(hit.id)) for hit in a.hits]) for a in answers]


@access.runs
def start_index(workspace: Workspace, config: IndexConfig) -> str:
    """Submit a job that indexes the documents; its id, or that of the job that does so already."""
    collection = resolve_collection(workspace, config.collection)
    name = _whole_name(workspace, config.retriever)
    whole = IndexConfig.from_dict({"retriever": name, "collection": collection.id})
    at_work = indexing(workspace, name, collection.id)
    if at_work is not None:
        return at_work.id
    lexical = bm25.language_in(name) is not None
    return jobs.submit(
        workspace,
        kind="index",
        name=f"{_title(workspace, name)} on {collection.name}",
        module=WORKER,
        config=whole.to_dict(),
        device=devices.request(workspace, 0 if lexical else None, at_most=1),
        inputs={"collection": collection.id, "documents": collection.state, "benchmark": collection.benchmark},
    )


def indexing(workspace: Workspace, retriever: str, collection: str) -> JobView | None:
    """The job at work that indexes this collection with this retriever."""
    wanted = {"retriever": retriever, "collection": collection}
    return next((job for job in jobs.list_active(workspace) if job.kind == "index" and job.config == wanted), None)


@access.runs
def stop(workspace: Workspace) -> bool:
    """End the search process, whose memory is free then. Whether there was one."""
    return process.stop(workspace)


def status(workspace: Workspace) -> dict[str, Any]:
    """What the search process holds: its pid, names and bytes. ConfigError where none runs."""
    if not process.is_running(workspace):
        raise ConfigError("No search process runs for this workspace.", hint="It starts with the first search.")
    value: dict[str, Any] = process.ask(workspace, {"op": "status"})
    return value
