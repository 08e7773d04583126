"""Searching by hand: one query, the best documents of up to three retrievers side by side.

The dashboard loads neither torch nor indexes. A search process does (``cdp.serving.dashboard``): one per workspace,
started by the first query, restarted by the next if it was killed. It listens on a Unix socket in a folder that only
this account may open: ``cdp-<uid>`` among the temporary files, or ``$CDP_RUNTIME_DIR`` (paths of sockets are short).
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cdp import jobs
from cdp.base.config import TOKEN, IndexConfig, ServingConfig
from cdp.base.errors import CdpError, ConfigError, InputError, WorkspaceError
from cdp.base.text import typed_folder
from cdp.base.version import __version__
from cdp.base.workspace import Workspace, is_name
from cdp.corpus import CorpusManifest, resolve_corpus
from cdp.jobs import JobView
from cdp.jobs.launchers import SPINS, python_path
from cdp.retrievers import PRESETS, api, bm25
from cdp.services import access, clusters, training
from cdp.services.training import RetrieverChoice
from cdp.serving import engine
from cdp.serving.engine import (
    DEFAULT_K,
    MOST_K,
    Engine,
    NotPreparedError,
    available,
    checked_query,
)

WORKER, INSTANCE = "cdp.workers.index", "cdp.serving.dashboard"

MOST_RETRIEVERS = 3  # side by side
SNIPPET = 260  # characters: three or four lines of a column
BEFORE = 50  # characters before the first match
LOOKED_AT = 6000  # characters of a document

RUNTIME = "CDP_RUNTIME_DIR"
LONGEST_ADDRESS = 100  # bytes of a socket's path; systems take 104 to 108
ALREADY = 3  # exit code of the process if another one serves this workspace
START_WITHIN_S = 60.0  # on a busy machine Python alone takes seconds
ANSWER_WITHIN_S = 300.0  # a large model takes this long to load from a slow disk
ATTEMPTS = 2  # a request whose process was killed is retried once
_STARTING = threading.Lock()
# A character of Chinese, Japanese or Korean: no spaces between words.
_JOINED = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")


@dataclass(frozen=True)
class Hit:
    """A retrieved document. ``rank`` counts from 1; ``words`` are its words that match a word of the query."""

    rank: int
    id: str
    title: str
    text: str
    score: float
    words: tuple[str, ...] = ()
    # Of a passage: its file, and the page on which it begins, 0 where the format has none.
    file: str = ""
    page: int = 0


@dataclass(frozen=True)
class Answer:
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


@dataclass(frozen=True)
class Searched:
    """The answers to one query, in the order of the retrievers."""

    query: str
    corpus: CorpusManifest
    answers: list[Answer]


def list_retrievers(workspace: Workspace, named: Sequence[str] = ()) -> list[RetrieverChoice]:
    """Return BM25, the presets that are on this machine, the trained retrievers, and those behind an API: the ones that
    jobs were given, and the ``named`` ones."""
    lexical = RetrieverChoice(bm25.NAME, bm25.TITLE, "preset", "matches words; nothing is trained")

    def is_here(choice: RetrieverChoice) -> bool:
        if choice.kind == "job" or PRESETS[choice.id].embedded:
            return True
        with suppress(CdpError):
            available(workspace, choice.id)
            return True
        return False

    given = [value for job in jobs.list_jobs(workspace, ["evaluation", "index"]) for value in job.config.values()]
    apis = {}
    for name in [*named, *(value for value in given if isinstance(value, str) and value.startswith(api.PREFIX))]:
        with suppress(ConfigError):
            if (found := api.parse(name)) is not None:
                apis[name] = RetrieverChoice(name, found.title, "api", "a model behind an API; nothing is trained")
    return [lexical, *filter(is_here, training.list_retrievers(workspace)), *apis.values()]


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
    if len(retrievers) > MOST_RETRIEVERS:
        raise InputError(f"At most {MOST_RETRIEVERS} retrievers are compared at once.", hint="Leave some out.")
    if not 1 <= k <= MOST_K:
        raise InputError(f"Between 1 and {MOST_K} documents are shown, not {k}.")
    searched = resolve_corpus(workspace, corpus)
    payer = api.Payer(workspace, "search")
    own = Engine(workspace, engine.memory_limit(), interactive=True, payer=payer) if in_process else None
    answers = [_answer(workspace, own, name, searched, text, k) for name in dict.fromkeys(retrievers)]
    return Searched(text, searched, answers)


def _answer(
    workspace: Workspace, own: Engine | None, retriever: str, corpus: CorpusManifest, query: str, k: int
) -> Answer:
    name = retriever.strip()
    try:
        name = _whole_name(workspace, name)
        request = {"retriever": name, "corpus": corpus.id, "query": query, "k": k}
        value = _ask(workspace, request) if own is None else own.search(name, corpus.id, query, k)
    except CdpError as problem:
        return Answer(retriever, _title(workspace, name), problem=problem)
    hits = []
    for rank, hit in enumerate(value["hits"], 1):
        file, page = corpus.place_of(hit["id"])
        hits.append(Hit(rank, **hit, file="" if file == hit["id"] else file, page=page))
    return Answer(retriever, value["title"], hits, value["seconds"])


def _whole_name(workspace: Workspace, name: str) -> str:
    """Return the retriever's name if it may be used here; a folder's as an absolute path."""
    if bm25.language_in(name) is not None:
        return name
    if api.parse(name) is not None:
        return access.retriever(workspace, name)
    name = access.model(workspace, name)
    is_job = is_name(name) and workspace.job(name).is_dir()
    folder = None if name in PRESETS or is_job else typed_folder(name)
    return name if folder is None else str(folder.resolve())


def _title(workspace: Workspace, name: str) -> str:
    if bm25.language_in(name) is not None:
        return bm25.TITLE
    if (named := api.parse(name)) is not None:
        return named.title
    return next((choice.title for choice in training.list_retrievers(workspace) if choice.id == name), name)


@access.runs
def start_index(workspace: Workspace, config: IndexConfig) -> str:
    """Submit a job that indexes the documents; return its id, or that of the active job that does so already."""
    corpus = resolve_corpus(workspace, config.corpus)
    name = _whole_name(workspace, config.retriever)
    if (active := indexing(workspace, name, corpus.id)) is not None:
        return active.id
    elsewhere = bm25.language_in(name) is not None or api.parse(name) is not None
    settings = {**config.to_dict(), "retriever": name, "corpus": corpus.id}
    return jobs.submit(
        workspace,
        kind="index",
        name=f"{_title(workspace, name)} on {corpus.name}",
        module=WORKER,
        config=settings,
        device=clusters.request(workspace, 0 if elsewhere else None, at_most=1),
        inputs={"corpus": corpus.id, "documents": corpus.content_hash},
        uses_pool=not elsewhere,
        env_secrets=access.environment_for(settings),
    )


def indexing(workspace: Workspace, retriever: str, corpus: str) -> JobView | None:
    """Return the active job that indexes this corpus with this retriever."""
    wanted = {"retriever": retriever, "corpus": corpus}.items()
    active = (job for job in jobs.list_active(workspace) if job.kind == "index")
    return next((job for job in active if wanted <= job.config.items()), None)


def _ask(workspace: Workspace, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the process's answer; CdpError as it raised it. Starts the process if none runs."""
    import httpx

    address = _address(workspace)
    for _ in range(ATTEMPTS):
        _ensure_listening(workspace, address)
        try:
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(address)), timeout=ANSWER_WITHIN_S) as client:
                reply: dict[str, Any] = client.post("http://localhost/search", json=dict(request)).json()
        except httpx.TimeoutException as error:
            raise WorkspaceError(
                f"The search process has not answered within {ANSWER_WITHIN_S:.0f} seconds.",
                hint="Try again in a moment: it may still be loading.",
            ) from error
        except httpx.TransportError:
            continue  # it was killed, or ended just now because it was idle
        if "error" not in reply:
            return reply
        problem = reply["error"]
        kind = NotPreparedError if problem.get("unprepared") else CdpError
        raise kind(problem["message"], hint=problem.get("hint", ""))
    raise WorkspaceError(
        f"The search process ended {ATTEMPTS} times before it could answer.",
        hint="The model or the documents may need more memory than there is: choose a smaller retriever or corpus.",
    )


def _address(workspace: Workspace) -> Path:
    """Return the socket of this workspace's process. Makes its folder; WorkspaceError if that is not private."""
    named = os.environ.get(RUNTIME, "").strip()
    folder = Path(named) if named else Path(tempfile.gettempdir()) / f"cdp-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=bool(named), exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise WorkspaceError.refused(folder, "made", error) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise WorkspaceError(
            f"{folder} is not a private folder of this account, so no search process is asked there.",
            hint=f"Remove it, or set {RUNTIME} to a folder that only this account may open (chmod 700).",
        )
    parts = (os.path.realpath(workspace.root), __version__)  # processes of another version give other answers
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    path = folder / f"{key}.sock"
    if len(os.fsencode(path)) > LONGEST_ADDRESS:
        raise WorkspaceError(f"{path} is too long for a socket.", hint=f"Set {RUNTIME} to a folder with a short path.")
    return path


def _ensure_listening(workspace: Workspace, address: Path) -> None:
    """Start the process where none listens. WorkspaceError if it does not begin to."""
    if _listens(address):
        return
    if not workspace.root.is_dir():
        raise WorkspaceError("There is nothing to search yet.", hint="Add a corpus first.")
    # One start for all sessions of this process.
    with _STARTING, tempfile.TemporaryFile() as log:
        process = None
        deadline = time.monotonic() + START_WITHIN_S
        while not _listens(address):
            if time.monotonic() > deadline:
                raise WorkspaceError(
                    f"The search process does not listen after {START_WITHIN_S:.0f} seconds.",
                    hint="Try again in a moment.",
                )
            if process is None or process.poll() == ALREADY:  # the other one ended meanwhile, or begins to listen
                process = _start(workspace, address, log)
            elif process.poll() is not None:
                log.seek(0)
                lines = log.read()[-4000:].decode("utf-8", "replace").strip().splitlines()
                reason = lines[-1] if lines else f"exit code {process.returncode}."
                hint = "Is the machine out of memory or of processes?"
                raise WorkspaceError(f"The search process could not start: {reason}", hint=hint)
            time.sleep(0.02)


def _listens(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        return connection.connect_ex(str(address)) == 0


def _start(workspace: Workspace, address: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process in a session of its own, without a terminal, a GPU or the network's hub."""
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(os.environ),
        "CDP_WORKSPACE": str(workspace.root),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", SPINS),
    }
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", INSTANCE, str(workspace.root), str(address)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        raise WorkspaceError(
            f"The search process could not be started: {error.strerror or error}.",
            hint="Is the machine out of memory or of processes?",
        ) from error

    # It may outlive this process; if it does not, it has to be reaped. The next one removes the socket of a killed one.
    threading.Thread(target=process.wait, name="reap-search", daemon=True).start()
    return process


def marked(text: str, words: Sequence[str]) -> list[tuple[str, bool]]:
    """Split ``text`` into pieces, each with whether it is one of the ``words`` (case-insensitive, whole words).

    Chinese, Japanese and Korean words match anywhere.
    """
    if not words:
        return [(text, False)] if text else []
    apart = [re.escape(word) if _JOINED.search(word) else rf"\b{re.escape(word)}\b" for word in words]
    pattern = re.compile(f"({'|'.join(sorted(apart, key=len, reverse=True))})", re.IGNORECASE)
    return [(piece, i % 2 == 1) for i, piece in enumerate(pattern.split(text)) if piece]


def snippet(text: str, words: Sequence[str], width: int = SNIPPET) -> list[tuple[str, bool]]:
    """Return the ``width`` characters of the text with the most matches, as pieces of ``marked``, with ellipses."""
    line = " ".join(text[:LOOKED_AT].split())
    starts, at = [], 0
    for piece, matches in marked(line, words):
        starts += [at] if matches else []
        at += len(piece)
    best = max(starts, key=lambda start: sum(start <= other < start + width - BEFORE for other in starts), default=0)
    furthest = max(0, len(line) - width)  # no further than needed to show the end
    begin = _word_start(line, min(best - BEFORE, furthest)) if min(best - BEFORE, furthest) > 0 else 0
    end = len(line) if len(line) - begin <= width else max(line.rfind(" ", begin + width // 2, begin + width), begin)
    end = end if end > begin else begin + width
    cut_after = end < len(line) or len(text) > LOOKED_AT
    return marked(f"{'… ' if begin else ''}{line[begin:end].strip()}{' …' if cut_after else ''}", words)


def _word_start(line: str, at: int) -> int:
    """Return the beginning of the next word, or ``at`` in a script without spaces."""
    space = line.find(" ", at, at + BEFORE)
    return at if space < 0 or at == 0 else space + 1


@access.runs
def serve(workspace: Workspace, config: ServingConfig, announce: Callable[[str, str], None]) -> None:
    """Serve until SIGTERM or SIGINT; call ``announce`` with (model's name, address) once ready. Raises CdpError.

    The token comes from the file in the settings, else from the environment, where it is removed.
    """
    # Before torch is loaded: waiting threads then leave the processor to the event loop.
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    from cdp.serving.public import Serving

    token = os.environ.pop(TOKEN, "")
    serving = Serving(workspace, config, _read(Path(config.token_file)) if config.token_file else token)
    announce(serving.api.name, serving.address)
    serving.run()


def _read(path: Path) -> str:
    """Return the token in a file. Raises ConfigError."""
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(10_000).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"The token cannot be read from {path}: {reason}.") from error
    if not token:
        raise ConfigError(f"There is no token in {path}.")
    return token
