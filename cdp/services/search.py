"""Searching by hand, up to three retrievers side by side: hits, retrievers offered, ``cdp serve``.

The dashboard loads neither torch nor indexes. A search process does (``cdp.serving.client``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from cdp import jobs
from cdp.base.config import TOKEN, ServingConfig
from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.text import typed_folder
from cdp.base.workspace import Workspace, is_name
from cdp.corpus import CorpusManifest, resolve_corpus
from cdp.evaluation.combined import reranked_parts, reranked_title, retriever_id
from cdp.jobs.launchers import SPINS
from cdp.retrievers import MULTI_VECTOR, PRESETS, api, bm25
from cdp.services import access, training
from cdp.services.training import RetrieverChoice
from cdp.serving import engine
from cdp.serving.client import ask
from cdp.serving.engine import DEFAULT_K, MAX_K, NotPreparedError, SearchEngine, available, checked_query

MAX_RETRIEVERS = 3  # side by side


@dataclass(frozen=True)
class Hit:
    """A retrieved document. ``rank`` counts from 1; ``words`` are its words that match a word of the query;
    of late interaction ``shares`` says how much of the score each is."""

    rank: int
    id: str
    title: str
    text: str
    score: float
    words: tuple[str, ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    # Of a passage: its file, and its pages in words, empty where the format has none.
    file: str = ""
    pages: str = ""


@dataclass(frozen=True)
class SearchAnswer:
    """The documents of one retriever, best first, and the ``seconds`` of searching; or the ``problem`` instead."""

    retriever: str
    title: str
    hits: list[Hit] = field(default_factory=list)
    seconds: float = 0.0
    problem: CdpError | None = None

    @property
    def unprepared(self) -> bool:
        """Return True if the documents have to be indexed by a job first."""
        return isinstance(self.problem, NotPreparedError)

    @property
    def to_index(self) -> str:
        """The retriever whose index is missing."""
        return model_of(self.retriever)


@dataclass(frozen=True)
class Searched:
    """The answers to one query, in the order of the retrievers."""

    query: str
    corpus: CorpusManifest
    answers: list[SearchAnswer]


def list_retrievers(workspace: Workspace, named: Sequence[str] = ()) -> list[RetrieverChoice]:
    """Return BM25, the presets that are on this machine, the trained retrievers, and those behind an API: the ones that
    jobs were given, and the ``named`` ones."""
    lexical = RetrieverChoice(bm25.NAME, bm25.TITLE, "preset", "matches words; nothing is trained")

    names = [*named]
    for job in jobs.list_jobs(workspace, ["evaluation", "index"]):
        names += [name for name in job.config.values() if isinstance(name, str) and name.startswith(api.PREFIX)]

    apis = {}
    for name in names:
        with suppress(ConfigError):
            if (found := api.parse(name)) is not None:
                apis[name] = RetrieverChoice(name, found.title, "api", "a model behind an API; nothing is trained")

    there, reranking = [], []
    for choice in training.list_retrievers(workspace):
        kind = ""
        with suppress(CdpError):
            kind = available(workspace, choice.id).kind
        if kind or choice.kind == "job" or PRESETS[choice.id].embedded:
            there.append(choice)
        if kind == MULTI_VECTOR:
            reranking.append(_over_candidates(choice))

    return [lexical, *there, *reranking, *apis.values()]


def model_of(retriever: str) -> str:
    """Return the retriever that orders the documents: of one that reranks, the second."""
    parts = reranked_parts(retriever)
    return retriever if parts is None else parts[1]


def _over_candidates(choice: RetrieverChoice) -> RetrieverChoice:
    """BM25's first documents in the order of a multi-vector retriever."""
    name = retriever_id(bm25.NAME, hybrid=False, rerank=choice.id)
    title = reranked_title(bm25.TITLE, choice.title)
    return RetrieverChoice(name, title, choice.kind, "late interaction scores what BM25 finds")


@access.searches
def search(
    workspace: Workspace,
    query: str,
    retrievers: Sequence[str],
    corpus: str,
    k: int = DEFAULT_K,
    *,
    in_process: bool = False,
) -> Searched:
    """Search with each retriever; errors of one are its answer's ``problem``.

    The search process answers; ``in_process`` loads everything here. Raises InputError for a query or a choice that
    cannot be searched, NotFoundError for an unknown corpus.
    """
    text = checked_query(query)
    if not retrievers:
        raise InputError("No retriever is chosen.", hint="Choose up to three.")
    if len(retrievers) > MAX_RETRIEVERS:
        raise InputError(f"At most {MAX_RETRIEVERS} retrievers are compared at once.", hint="Leave some out.")
    if not 1 <= k <= MAX_K:
        raise InputError(f"Between 1 and {MAX_K} documents are shown, not {k}.")

    searched = resolve_corpus(workspace, corpus)
    payer = api.Payer(workspace, "search")
    own = SearchEngine(workspace, engine.memory_limit(), interactive=True, payer=payer) if in_process else None
    answers = [_answer(workspace, own, name, searched, text, k) for name in dict.fromkeys(retrievers)]

    return Searched(text, searched, answers)


def _answer(
    workspace: Workspace, own: SearchEngine | None, retriever: str, corpus: CorpusManifest, query: str, k: int
) -> SearchAnswer:
    name = retriever.strip()

    try:
        name = _whole_name(workspace, name)
        request = {"retriever": name, "corpus": corpus.id, "query": query, "k": k}
        value = ask(workspace, request) if own is None else own.search(name, corpus.id, query, k)
    except CdpError as problem:
        return SearchAnswer(retriever, _title(workspace, name), problem=problem)

    hits = []
    for rank, hit in enumerate(value["hits"], 1):
        file, pages = corpus.place_of(hit["id"])
        hits.append(Hit(rank, **hit, file="" if file == hit["id"] else file, pages=pages))

    return SearchAnswer(retriever, value["title"], hits, value["seconds"])


def _whole_name(workspace: Workspace, name: str) -> str:
    """Return the retriever's name if it may be used here; a folder's as an absolute path."""
    if bm25.language_in(name) is not None:
        return name
    if (parts := reranked_parts(name)) is not None:
        first, second = (_whole_name(workspace, part) for part in parts)
        return retriever_id(first, hybrid=False, rerank=second)
    if api.parse(name) is not None:
        return access.retriever(workspace, name)
    name = access.model(workspace, name)
    if name in PRESETS or (is_name(name) and workspace.job(name).is_dir()):
        return name

    folder = typed_folder(name)
    return name if folder is None else str(folder.resolve())


def _title(workspace: Workspace, name: str) -> str:
    if bm25.language_in(name) is not None:
        return bm25.TITLE
    if (parts := reranked_parts(name)) is not None:
        return reranked_title(*(_title(workspace, part) for part in parts))
    if (named := api.parse(name)) is not None:
        return named.title
    return next((choice.title for choice in training.list_retrievers(workspace) if choice.id == name), name)


@access.runs
def serve(workspace: Workspace, config: ServingConfig, announce: Callable[[str, str], None]) -> None:
    """Serve until SIGTERM or SIGINT; call ``announce`` with (model's name, address) once ready. Raises CdpError.

    The token comes from the file in the settings, else from the environment, where it is removed.
    """
    # Before torch is loaded: waiting threads then leave the processor to the event loop.
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    from cdp.serving.public import Serving

    token = os.environ.pop(TOKEN, "")
    if config.token_file:
        token = _read(Path(config.token_file))

    serving = Serving(workspace, config, token)
    announce(serving.api.name, serving.address)
    serving.run()


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(10_000).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"The token cannot be read from {path}: {reason}.") from error
    if not token:
        raise ConfigError(f"There is no token in {path}.")
    return token
