"""``cdp serve``: OpenAI-compatible embeddings and search, with one retriever over one corpus."""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from pydantic import BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Scope

from cdp.base.config import ServingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.text import shown
from cdp.base.workspace import Workspace
from cdp.retrievers import bm25
from cdp.retrievers.encode import encode, precision_for
from cdp.retrievers.load import use_threads
from cdp.serving import web
from cdp.serving.engine import DEFAULT_K, MOST_K, SHOWN_CHARACTERS, Encoder, Engine, Opened, Ranked, checked_query
from cdp.serving.web import ApiError, json_response

QUERY, DOCUMENT, SEARCH = "query", "document", "search"  # kinds of a batch; the first two are roles of a text
ROUTES = ("/healthz", "/metrics", "/v1/models", "/v1/embeddings", "/v1/search")  # any other is "other" in the metrics

SHORTEST_TOKEN = 16
BATCH_TEXTS = 64  # larger batches of short texts are hardly faster on a CPU and delay all of their requests
MOST_INPUTS = 2048  # texts or queries in one request: OpenAI's own limit, which its clients are made for
LARGEST_BODY = 8_000_000  # bytes: 2,048 texts of 4,000 characters
CONNECTIONS = 1024  # a process may usually open as many files; each takes some 20 kB
LONGEST_TEXT = 100_000  # characters: far more than any encoder reads
LARGEST_ANSWER = 10_000_000  # characters of documents' texts in one answer
QUEUED_REQUESTS = 4  # the queue holds the texts of this many requests of the largest size
GRACE_S = 30  # how long a stop waits for requests in flight
ROWS_AT_ONCE = 128  # vectors whose JSON takes a few milliseconds; more are written in a thread


def _texts(value: Any) -> list[str]:
    """Return one text or a list of them as a list."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed:
        raise ValueError("This must be a text, or a list of texts that is not empty.")
    if len(listed) > MOST_INPUTS:
        raise ValueError(f"There are {len(listed):,} texts; the limit is {MOST_INPUTS:,}.")
    for number, text in enumerate(listed):
        if isinstance(text, int | list):
            # Token ids are those of another model's tokenizer.
            raise ValueError("Token ids are not taken: send texts (LangChain: check_embedding_ctx_length=False).")
        if not isinstance(text, str) or not text:
            raise ValueError(f"Number {number} is not a text, or an empty one.")
        if len(text) > LONGEST_TEXT:
            raise ValueError(f"Number {number} has {len(text):,} characters; the limit is {LONGEST_TEXT:,}.")
    return listed


Texts = Annotated[list[str], BeforeValidator(_texts)]


class EmbeddingRequest(web.Body):
    """``POST /v1/embeddings``. The model's name may end in ``:query`` or ``:document``, for the retriever's prompt."""

    model: str
    input: Texts
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


class SearchRequest(web.Body):
    """``POST /v1/search``: the best documents of each query."""

    query: Texts
    top_k: int = Field(DEFAULT_K, ge=1, le=MOST_K)
    text_characters: int = Field(300, ge=0, le=SHOWN_CHARACTERS)


# Kind, items, and the future of their results.
_Chunk = tuple[str, list[Any], "asyncio.Future[list[Any]]"]


class Batcher:
    """Batches the texts of many requests: ``run(kind, items)`` returns one result per item, in one thread.

    Texts that arrive while the model is busy become its next batch: 64 short texts take little longer than one. A large
    request is queued in chunks, each behind the texts of others: none waits for the 2,000 texts of another.
    """

    def __init__(
        self,
        run: Callable[[str, list[Any]], Sequence[Any]],
        *,
        batch_texts: int,
        max_queue: int,
        observe: Callable[[str, int], None],
    ) -> None:
        self.run, self.batch_texts, self.max_queue, self.observe = run, batch_texts, max_queue, observe
        self.waiting = 0  # texts of unanswered requests
        self._pending: list[_Chunk] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        self._task: asyncio.Task[None] | None = None

    async def submit(self, kind: str, items: Sequence[Any]) -> list[Any]:
        """Return the results of these items, in order. Raises ApiError if the queue is full, and errors of ``run``."""
        if self.waiting + len(items) > self.max_queue:
            raise ApiError(
                429, "server_busy", "Too many texts wait already: try again later.", headers={"retry-after": "2"}
            )
        self.waiting += len(items)
        try:
            results: list[Any] = []
            for start in range(0, len(items), self.batch_texts // 2):
                future = asyncio.get_running_loop().create_future()
                self._pending.append((kind, list(items[start : start + self.batch_texts // 2]), future))
                if self._task is None or self._task.done():
                    self._task = asyncio.create_task(self._work())
                results += await future
            return results
        finally:
            self.waiting -= len(items)
            # Of a request that was given up nothing is computed.
            self._pending = [chunk for chunk in self._pending if not chunk[2].done()]

    async def _work(self) -> None:
        while self._pending:
            kind, room = self._pending[0][0], self.batch_texts
            batch: list[_Chunk] = []
            left: list[_Chunk] = []
            for chunk in self._pending:
                fits = chunk[0] == kind and len(chunk[1]) <= room
                (batch if fits else left).append(chunk)
                room -= len(chunk[1]) if fits else 0
            self._pending = left
            await self._run(kind, batch)

    async def _run(self, kind: str, batch: list[_Chunk]) -> None:
        texts = [item for _, items, _ in batch for item in items]
        try:
            found = iter(await asyncio.get_running_loop().run_in_executor(self._thread, self.run, kind, texts))
        except Exception as error:
            if len(batch) > 1:  # a bad text must fail its own request only
                for alone in batch:
                    await self._run(kind, [alone])
            elif not batch[0][2].done():
                batch[0][2].set_exception(error)
            return
        self.observe(kind, len(texts))
        for _, items, future in batch:
            results = list(islice(found, len(items)))
            if not future.done():
                future.set_result(results)


class Metrics:
    """Prometheus metrics. Labels have few values, so that unknown paths cannot fill the memory."""

    def __init__(self, waiting: Callable[[], float]) -> None:
        registry = self.registry = CollectorRegistry()
        seconds = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
        self.requests = Counter("cdp_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "cdp_request_seconds", "Time of a request.", ["route"], buckets=seconds, registry=registry
        )
        self.tokens = Counter("cdp_tokens", "Tokens of embedded texts.", registry=registry)
        texts = [2**n for n in range(13)]
        self.batch = Histogram("cdp_batch_texts", "Texts in a batch.", ["kind"], buckets=texts, registry=registry)
        Gauge("cdp_waiting_texts", "Texts of unanswered requests.", registry=registry).set_function(waiting)
        ProcessCollector(registry=registry)


@dataclass(frozen=True)
class Embedding:
    """One text's vector (dim,) float32, the number of its tokens, and whether it was truncated."""

    vector: np.ndarray
    tokens: int
    cut: bool


@dataclass(frozen=True)
class Loaded:
    """The served encoder (None for BM25) and the index over a corpus, if one is named."""

    encoder: Encoder | None
    opened: Opened | None

    @property
    def dimensions(self) -> int:
        return int(self.encoder.model.get_embedding_dimension() or 0) if self.encoder else 0

    def run(self, kind: str, items: list[Any]) -> Sequence[Any]:
        """Rank (query, number of documents) pairs for SEARCH, else embed texts in the role ``kind``."""
        if kind == SEARCH:
            assert self.opened is not None
            most = max(k for _, k in items)  # the best 5 are the first 5 of the best 100
            ranked = self.opened.index.rank([query for query, _ in items], most)
            return [(scores[:k], numbers[:k]) for (scores, numbers), (_, k) in zip(ranked, items, strict=True)]
        return self._embed(kind, items)

    def _embed(self, role: str, texts: list[str]) -> list[Embedding]:
        from cdp.retrievers.static import token_counts

        encoder = self.encoder
        assert encoder is not None
        # As an evaluation embeds: the same prompt, length, precision and normalisation.
        encoding = encoder.encoding(role, precision_for(encoder.model))
        with encoder.lock:
            counts, cut = token_counts(encoder.model, texts, encoding.prompt)
            vectors = encode(encoder.model, texts, encoding, batch_size=len(texts)).astype(np.float32, copy=False)
        return [Embedding(*values) for values in zip(vectors, counts, cut, strict=True)]


class PublicApi:
    """The routes of ``cdp serve``. Requests cannot name objects of the workspace."""

    def __init__(self, name: str, loaded: Loaded, config: ServingConfig, token: str = "") -> None:
        self.name, self.loaded = name, loaded
        self.started = int(time.time())
        self.metrics = Metrics(lambda: self.batcher.waiting)
        self.batcher = Batcher(
            loaded.run,
            batch_texts=BATCH_TEXTS,
            max_queue=QUEUED_REQUESTS * MOST_INPUTS,
            observe=lambda kind, texts: self.metrics.batch.labels(kind).observe(texts),
        )
        routes = [
            Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            Route("/v1/search", self.search, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{model:path}", self.model),
            Route("/metrics", self.measured),
            Route("/healthz", lambda request: json_response({"status": "ok"})),
        ]
        self.app = web.AccessMiddleware(
            Router(routes, redirect_slashes=False),
            local=web.loopback(config.host),
            hosts=[name.strip() for name in config.allowed_hosts.split(",") if name.strip()],
            token=token,
            open_paths=("/healthz",),
            done=self._done,
        )

    async def measured(self, request: Request) -> Response:
        return Response(generate_latest(self.metrics.registry), headers={"content-type": CONTENT_TYPE_LATEST})

    async def models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [self._described(name) for name in self._names()]})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names():
            raise self._unknown(name)
        return json_response(self._described(name))

    async def embeddings(self, request: Request) -> Response:
        if self.loaded.encoder is None:
            raise ApiError(400, "no_embeddings", "BM25 searches, and gives no embeddings.", param="model")
        asked = await web.read_body(request, EmbeddingRequest, LARGEST_BODY)
        if asked.model not in self._names():
            raise self._unknown(asked.model)
        # Most retrievers put no prompt before a document, as other servers do for every text.
        role = asked.model.removeprefix(self.name).removeprefix(":") or DOCUMENT
        if asked.dimensions not in (None, self.loaded.dimensions):
            message = f"This model's embeddings have {self.loaded.dimensions} dimensions and are not shortened."
            raise ApiError(400, "unsupported_dimensions", message, param="dimensions")
        rows = await self.batcher.submit(role, asked.input)
        tokens, cut = sum(row.tokens for row in rows), sum(row.cut for row in rows)
        self.metrics.tokens.inc(tokens)

        def written() -> Response:
            data = [
                {"object": "embedding", "index": n, "embedding": _value(row.vector, asked.encoding_format)}
                for n, row in enumerate(rows)
            ]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            value = {"object": "list", "model": asked.model, "usage": usage, "data": data}
            return json_response(value, headers={"x-cut-inputs": str(cut)})

        return written() if len(rows) <= ROWS_AT_ONCE else await asyncio.to_thread(written)

    async def search(self, request: Request) -> Response:
        if self.loaded.opened is None:
            raise ApiError(400, "no_corpus", "This server has no corpus to search: it gives embeddings only.")
        asked = await web.read_body(request, SearchRequest, LARGEST_BODY)
        if len(asked.query) * asked.top_k * max(asked.text_characters, 300) > LARGEST_ANSWER:
            message = "The answer would be too large: ask for fewer queries, documents or characters."
            raise ApiError(400, "answer_too_large", message, param="top_k")
        try:
            items = [(checked_query(text), asked.top_k) for text in asked.query]
        except InputError as error:
            raise ApiError(400, "invalid_value", error.message, param="query") from None
        ranked = await self.batcher.submit(SEARCH, items)
        return await asyncio.to_thread(self._answers, self.loaded.opened, ranked, asked.text_characters)

    def _answers(self, opened: Opened, ranked: Sequence[Ranked], characters: int) -> Response:
        data = []
        for number, (scores, numbers) in enumerate(ranked):
            hits = [
                {
                    "rank": rank,
                    "id": document.id,
                    "score": score,
                    "title": document.title,
                    "text": document.text[:characters],
                    "text_cut": len(document.text) > characters,
                }
                for rank, (document, score) in enumerate(zip(opened.documents.take(numbers), scores, strict=True), 1)
            ]
            data.append({"object": "search.result", "index": number, "hits": hits})
        corpus = {"id": opened.collection.id, "name": opened.collection.name, "documents": len(opened.documents)}
        return json_response({"object": "list", "model": self.name, "corpus": corpus, "data": data})

    def _names(self) -> list[str]:
        """Return the valid values of ``model``: the retriever, and the retriever in a role."""
        return [self.name, *(f"{self.name}:{role}" for role in (QUERY, DOCUMENT) if self.loaded.encoder)]

    def _unknown(self, model: str) -> ApiError:
        message = f"There is no model {shown(model)} here. This server has: {', '.join(self._names())}."
        return ApiError(404, "model_not_found", message, param="model")

    def _described(self, name: str) -> dict[str, Any]:
        facts: dict[str, Any] = {"id": name, "object": "model", "created": self.started, "owned_by": "cdp-studio"}
        if self.loaded.encoder:
            facts |= {"dimensions": self.loaded.dimensions, "max_tokens": self.loaded.encoder.max_tokens}
        return facts

    def _done(self, scope: Scope, status: int, code: str, seconds: float) -> None:
        path = scope["path"]
        route = "/v1/models" if path.startswith("/v1/models/") else path if path in ROUTES else "other"
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if route in ("/healthz", "/metrics") and status == 200:
            return
        # Without the address's query, which may hold texts, and without control characters.
        escaped = path[:100].encode("unicode_escape").decode("ascii").replace(" ", "\\x20")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        client = (scope.get("client") or ("-",))[0]
        words = (now, client, scope["method"], escaped, status, f"{1000 * seconds:.1f}ms", code, scope["request_id"])
        print(*(word for word in words if word), file=sys.stderr, flush=True)


def _value(vector: np.ndarray, encoding_format: str) -> str | list[float]:
    """Return a vector (dim,) as numbers, or as the base64 of its little-endian float32 bytes."""
    if encoding_format == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii")
    values: list[float] = vector.tolist()
    return values


class Serving:
    """One server: the constructor binds its port and loads, ``run`` serves until it is stopped. Raises CdpError."""

    def __init__(self, workspace: Workspace, config: ServingConfig, token: str) -> None:
        token = check_token(config, token)
        if bm25.language_in(config.retriever) is not None and not config.corpus:
            raise ConfigError("BM25 searches, and gives no embeddings.", hint="Name a corpus: --corpus ID.")
        self.listener = _bind(config)
        try:
            name, loaded = _load(workspace, config)
            # Only now: while the server loads, clients are refused at once.
            with _refused(config):
                self.listener.listen(2048)
        except BaseException:
            self.listener.close()
            raise
        self.api = PublicApi(name, loaded, config, token)
        host, port = self.listener.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.server = web.server(self.api.app, connections=CONNECTIONS, grace_s=GRACE_S)

    def run(self) -> None:
        web.run(self.server, self.listener)


def _load(workspace: Workspace, config: ServingConfig) -> tuple[str, Loaded]:
    """Load the model, open or make the index; return them with the model's name for callers."""
    device = "cpu" if config.device == "cpu" else None
    phases: set[str] = set()

    def report(phase: str, done: int, total: int) -> None:
        if phase not in phases:
            phases.add(phase)
            print(f"{phase}{f' ({total:,})' if total else ''}", file=sys.stderr, flush=True)

    # Nothing else is loaded: no limit, and no query waits for the index.
    engine = Engine(workspace, float("inf"), None, device=device, download=True, progress=report)
    opened = engine.open(config.retriever, config.corpus) if config.corpus else None
    if bm25.language_in(config.retriever) is not None:
        return config.name or config.retriever.strip(), Loaded(None, opened)
    resolved = engine.resolve(config.retriever)
    encoder = engine.encoder(resolved, config.retriever)
    use_threads(encoder.model)
    loaded = Loaded(encoder, opened)
    loaded.run(QUERY, ["a"])  # the first call is slow
    # Callers see only the last part of a folder's path.
    return config.name or (Path(resolved.source).name if resolved.origin == "folder" else resolved.name), loaded


def check_token(config: ServingConfig, token: str) -> str:
    """Return the token, stripped. ConfigError if it is missing or too weak."""
    token = token.strip()
    if not token and (config.allowed_hosts.strip() or not web.loopback(config.host)):
        raise ConfigError(
            "Other machines reach this server, so a token is needed.",
            hint="Put one into a file and name it with --token-file; or listen on 127.0.0.1 without allowed_hosts.",
        )
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise ConfigError(
            f"The token must have at least {SHORTEST_TOKEN} characters, printable ASCII without spaces.",
            hint="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


def _bind(config: ServingConfig) -> socket.socket:
    """Return a bound socket. ConfigError if the address cannot be had."""
    with _refused(config):
        kind, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio turns Nagle's algorithm off only if the protocol is named; else bodies of answers would wait 40 ms.
        listener = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    return listener


@contextmanager
def _refused(config: ServingConfig) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"Cannot listen on {config.host} port {config.port}: {reason}.", hint="Choose another --port or --host."
        ) from error
