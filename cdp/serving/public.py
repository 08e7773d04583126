"""``cdp serve``: routes and limits, requests given up, OpenAI's form of embeddings, token strength."""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Scope

from cdp.base.config import ServingConfig
from cdp.base.errors import ConfigError, InputError
from cdp.base.hosts import loopback
from cdp.base.text import shown
from cdp.base.workspace import Workspace
from cdp.corpus import resolve_corpus
from cdp.retrievers import DENSE, bm25, resolve
from cdp.retrievers.encode import encode, precision_for
from cdp.retrievers.load import use_threads
from cdp.serving import web
from cdp.serving.engine import DEFAULT_K, MAX_K, SHOWN_CHARACTERS, Encoder, Opened, Ranked, SearchEngine, checked_query
from cdp.serving.web import ApiError, json_response

T = TypeVar("T")

QUERY, DOCUMENT = "query", "document"  # roles of a text

SHORTEST_TOKEN = 16
BATCH_TEXTS = 64  # larger batches of short texts are hardly faster on a CPU
MAX_INPUTS = 2048  # texts or queries in one request: OpenAI's own limit, which its clients are made for
LARGEST_BODY = 8_000_000  # bytes: 2,048 texts of 4,000 characters
CONNECTIONS = 1024  # a process may usually open as many files; each takes some 20 kB
LONGEST_TEXT = 100_000  # characters: far more than any encoder reads
LARGEST_ANSWER = 10_000_000  # characters of documents' texts in one answer
MAX_WAITING = 4 * MAX_INPUTS  # texts of unanswered requests
GRACE_S = 30  # how long a stop waits for requests in flight


def _texts(value: Any) -> list[str]:
    """Return one text or a list of them as a list."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed:
        raise ValueError("This must be a text, or a list of texts that is not empty.")
    if len(listed) > MAX_INPUTS:
        raise ValueError(f"There are {len(listed):,} texts; the limit is {MAX_INPUTS:,}.")

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
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = None
    user: str | None = None


class SearchRequest(web.Body):
    """``POST /v1/search``: the best documents of each query."""

    query: Texts
    top_k: int = Field(DEFAULT_K, ge=1, le=MAX_K)
    text_characters: int = Field(300, ge=0, le=SHOWN_CHARACTERS)


@dataclass(frozen=True)
class Loaded:
    """The served encoder, and the index over a corpus if one is named. BM25 and kinds other than dense have no encoder
    here: they search, and give no embeddings."""

    encoder: Encoder | None
    opened: Opened | None

    @property
    def dimensions(self) -> int:
        return int(self.encoder.model.get_embedding_dimension() or 0) if self.encoder else 0

    def rank(self, queries: list[str], k: int) -> list[Ranked]:
        """Return the best ``k`` documents of each query."""
        assert self.opened is not None
        starts = range(0, len(queries), BATCH_TEXTS)
        return [one for i in starts for one in self.opened.index.rank(queries[i : i + BATCH_TEXTS], k)]

    def embed(self, texts: list[str], role: str) -> tuple[np.ndarray, int, int]:
        """Return the vectors (n, dim) float32 of texts, the tokens read, and how many texts were truncated."""
        from cdp.retrievers.static import token_counts

        encoder = self.encoder
        assert encoder is not None
        # As an evaluation embeds: the same prompt, length, precision and normalisation.
        encoding = encoder.encoding(role, precision_for(encoder.model))
        with encoder.lock:
            counts, cut = token_counts(encoder.model, texts, encoding.prompt)
            vectors = encode(encoder.model, texts, encoding, batch_size=BATCH_TEXTS).astype(np.float32, copy=False)
        return vectors, int(sum(counts)), int(sum(cut))


class PublicApi:
    """The routes of ``cdp serve``. Requests cannot name objects of the workspace."""

    def __init__(self, name: str, loaded: Loaded, config: ServingConfig, token: str = "") -> None:
        self.name, self.loaded = name, loaded
        self.started = int(time.time())
        self.waiting = 0  # texts of unanswered requests
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="encoder")
        routes = [
            Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            Route("/v1/search", self.search, methods=["POST"]),
            Route("/v1/models", self.models),
            Route("/v1/models/{model:path}", self.model),
            Route("/healthz", lambda request: json_response({"status": "ok"})),
        ]

        self.app = web.AccessMiddleware(
            Router(routes, redirect_slashes=False),
            local=loopback(config.host),
            hosts=config.allowed_hosts,
            token=token,
            open_paths=("/healthz",),
            done=self._done,
        )

    async def _run(self, work: Callable[[list[str], Any], T], texts: list[str], argument: Any) -> T:
        """Do the work of a request, one request after another. Raises ApiError where too much waits already."""
        if self.waiting + len(texts) > MAX_WAITING:
            message = "Too many texts wait already: try again later."
            raise ApiError(429, "server_busy", message, headers={"retry-after": "2"})
        self.waiting += len(texts)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, texts, argument)
        finally:
            self.waiting -= len(texts)

    async def models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [self._described(name) for name in self._names()]})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names():
            raise self._unknown(name)
        return json_response(self._described(name))

    async def embeddings(self, request: Request) -> Response:
        if self.loaded.encoder is None:
            message = f"{self.name} searches, and gives no embeddings."
            raise ApiError(400, "no_embeddings", message, param="model")
        asked = await web.read_body(request, EmbeddingRequest, LARGEST_BODY)
        if asked.model not in self._names():
            raise self._unknown(asked.model)
        # Most retrievers put no prompt before a document, as other servers do for every text.
        role = asked.model.removeprefix(self.name).removeprefix(":") or DOCUMENT
        if asked.dimensions not in (None, self.loaded.dimensions):
            message = f"This model's embeddings have {self.loaded.dimensions} dimensions and are not shortened."
            raise ApiError(400, "unsupported_dimensions", message, param="dimensions")
        vectors, tokens, cut = await self._run(self.loaded.embed, asked.input, role)

        def written() -> Response:
            data = [
                {"object": "embedding", "index": n, "embedding": _value(vector, asked.encoding_format)}
                for n, vector in enumerate(vectors)
            ]
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            value = {"object": "list", "model": asked.model, "usage": usage, "data": data}
            return json_response(value, headers={"x-cut-inputs": str(cut)})

        return await asyncio.to_thread(written)

    async def search(self, request: Request) -> Response:
        if self.loaded.opened is None:
            raise ApiError(400, "no_corpus", "This server has no corpus to search: it gives embeddings only.")
        asked = await web.read_body(request, SearchRequest, LARGEST_BODY)
        if len(asked.query) * asked.top_k * max(asked.text_characters, 300) > LARGEST_ANSWER:
            message = "The answer would be too large: ask for fewer queries, documents or characters."
            raise ApiError(400, "answer_too_large", message, param="top_k")
        try:
            queries = [checked_query(text) for text in asked.query]
        except InputError as error:
            raise ApiError(400, "invalid_value", error.message, param="query") from None
        ranked = await self._run(self.loaded.rank, queries, asked.top_k)
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

        corpus = {"id": opened.corpus.id, "name": opened.corpus.name, "documents": len(opened.documents)}
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
        if path == "/healthz" and status == 200:
            return
        # Without the address's query, which may hold texts, and without control characters.
        escaped = path[:100].encode("unicode_escape").decode("ascii").replace(" ", "\\x20")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        client = (scope.get("client") or ("-",))[0]
        words = (now, client, scope["method"], escaped, status, f"{1000 * seconds:.1f}ms", code, scope["request_id"])
        print(*(word for word in words if word), file=sys.stderr, flush=True)


def _value(vector: np.ndarray, encoding_format: str | None) -> str | list[float]:
    """Return a vector (dim,) as numbers, or as the base64 of its little-endian float32 bytes."""
    if encoding_format == "base64":
        return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode("ascii")
    values: list[float] = vector.tolist()
    return values


class Serving:
    """One server: the constructor binds its port and loads, ``run`` serves until it is stopped. Raises CdpError."""

    def __init__(self, workspace: Workspace, config: ServingConfig, token: str) -> None:
        token = check_token(config, token)
        # BM25, and the kinds that give a text more or other than one vector.
        lexical = bm25.language_in(config.retriever) is not None
        if not config.corpus and (lexical or resolve(config.retriever, workspace).kind != DENSE):
            raise ConfigError(
                f"{config.retriever} searches, and gives no embeddings: a text has no single vector there.",
                hint="Name a corpus: --corpus ID.",
            )

        self.listener = _bind(config)
        name, loaded = _load(workspace, config)
        self.listener.listen(2048)  # only now: while the server loads, clients are refused at once
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
    engine = SearchEngine(workspace, float("inf"), device=device, download=True, progress=report)
    opened = None
    if config.corpus:
        opened = engine.open(config.retriever, resolve_corpus(workspace, config.corpus).id)
    if bm25.language_in(config.retriever) is not None:
        return config.name or config.retriever.strip(), Loaded(None, opened)

    resolved = engine.resolve(config.retriever)
    encoder = engine.encoder(resolved, config.retriever)
    use_threads(encoder.model)

    # Callers see only the last part of a folder's path.
    name = config.name or (Path(resolved.source).name if resolved.origin == "folder" else resolved.name)
    if resolved.kind != DENSE:
        return name, Loaded(None, opened)

    loaded = Loaded(encoder, opened)
    loaded.embed(["a"], QUERY)  # the first call is slow
    return name, loaded


def check_token(config: ServingConfig, token: str) -> str:
    """Return the token, stripped. ConfigError if it is missing or too weak."""
    token = token.strip()
    if not token and (config.allowed_hosts or not loopback(config.host)):
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
    # asyncio turns Nagle's algorithm off only if the protocol is named; else bodies of answers would wait 40 ms.
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"Cannot listen on {config.host} port {config.port}: {reason}.", hint="Choose another --port or --host."
        ) from error
    return listener
