"""The routes: a request's body is read within its limits, its texts join the queue, the answer is written."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router

from cdp.base.errors import InputError
from cdp.base.text import shown
from cdp.searching.queries import checked_query
from cdp.serving import intake
from cdp.serving.batching import Batcher, ClosedError, FullError
from cdp.serving.bodies import embeddings_body, to_json
from cdp.serving.door import Door, Facts
from cdp.serving.errors import ApiError, busy, of_validation, unavailable
from cdp.serving.metrics import CONTENT_TYPE, Metrics
from cdp.serving.schema import EmbeddingRequest, SearchQuery, SearchRequest
from cdp.serving.served import DOCUMENT, QUERY, SEARCH, Plan, Served

M = TypeVar("M", bound=BaseModel)

AT_ONCE_S = 0.05
"""Seconds in which most answers are there. Only beyond them is it worth a task to learn that a client has gone."""

LARGEST_ANSWER = 10_000_000
"""Characters of documents' texts in the answer to one search."""


class Api:
    """The application of one server. ``served`` is None until everything is loaded; ``phase`` says what goes on."""

    def __init__(self, plan: Plan, token: str) -> None:
        self.plan, self.config = plan, plan.config
        self.served: Served | None = None
        self.batcher: Batcher | None = None
        self.phase: dict[str, Any] = {"status": "loading"}
        self.started = int(time.time())
        self.metrics = Metrics(
            waiting=lambda: self.batcher.waiting if self.batcher else 0, ready=lambda: self.served is not None
        )
        self.intake = intake.Intake(self.config)
        routes = [  # asked one after another: what is asked most often comes first
            Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            Route("/v1/search", self.search, methods=["GET", "POST"]),
            Route("/healthz", self.health),
            Route("/readyz", self.ready),
            Route("/metrics", self.measured),
            Route("/v1/models", self.models),
            Route("/v1/models/{model:path}", self.model),
        ]
        handlers: dict[Any, Any] = {ApiError: _refused, HTTPException: _no_route}
        router = Router(routes, redirect_slashes=False, lifespan=self._lifespan)
        self.door = Door(ExceptionMiddleware(router, handlers), self.config, token, self.metrics)

    def opened(self, served: Served) -> None:
        """What was loaded answers from now on. Called from the thread that loaded it."""
        config = self.config
        self.batcher = Batcher(
            served.run,
            batch_texts=config.batch_texts,
            wait_s=config.batch_wait_ms / 1000,
            max_queue=config.max_queue,
            others=lambda: self.intake.reading + self.intake.waiting,
            observe=self.metrics.of_batch,
        )
        self.served = served
        self.phase = {"status": "ready"}

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Router) -> AsyncIterator[None]:
        yield
        if self.batcher is not None:
            await asyncio.to_thread(self.batcher.close, self.config.grace_s)

    async def health(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        return _json(self.phase, 200 if self.served else 503)

    async def measured(self, request: Request) -> Response:
        return Response(self.metrics.page(), headers={"content-type": CONTENT_TYPE})

    async def models(self, request: Request) -> Response:
        return _json({"object": "list", "data": [self._described(name) for name in self._names()]})

    async def model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names():
            raise self._unknown(name)
        return _json(self._described(name))

    async def embeddings(self, request: Request) -> Response:
        served, facts = self._loaded(), _facts(request)
        if served.encoder is None:
            raise ApiError(400, "no_embeddings", "BM25 searches, and gives no embeddings.", param="model")
        async with self.intake.body(request) as body:
            asked = self._checked(EmbeddingRequest, body)
            return await self._embedded(request, served, asked, facts)

    async def _embedded(self, request: Request, served: Served, asked: EmbeddingRequest, facts: Facts) -> Response:
        role = self._role(asked.model, asked.input_type)
        if asked.dimensions not in (None, served.dimensions):
            message = f"This model's embeddings have {served.dimensions} dimensions and are not shortened."
            raise ApiError(400, "unsupported_dimensions", message, param="dimensions")
        facts.inputs, facts.texts = len(asked.input), asked.input
        rows = await self._result(request, role, asked.input)
        facts.tokens = sum(row.tokens for row in rows)
        cut = sum(row.cut for row in rows)
        self.metrics.tokens.inc(facts.tokens)
        self.metrics.cut.inc(cut)
        usage = {"prompt_tokens": facts.tokens, "total_tokens": facts.tokens}
        rest = {"model": asked.model, "usage": usage}
        body = await embeddings_body([row.vector for row in rows], asked.encoding_format, rest)
        return Response(body, headers={"x-cut-inputs": str(cut)}, media_type="application/json")

    async def search(self, request: Request) -> Response:
        served, facts = self._loaded(), _facts(request)
        if served.documents is None:
            raise ApiError(400, "no_corpus", "This server has no corpus to search: it gives embeddings alone.")
        if request.method != "POST":
            return await self._searched(request, served, _checked(SearchQuery, dict(request.query_params)), facts)
        async with self.intake.body(request) as body:
            return await self._searched(request, served, self._checked(SearchRequest, body), facts)

    async def _searched(
        self, request: Request, served: Served, asked: SearchQuery | SearchRequest, facts: Facts
    ) -> Response:
        if asked.model is not None:
            self._role(asked.model, QUERY)
        several = asked.queries if isinstance(asked, SearchRequest) else None
        given = [asked.query or ""] if several is None else several
        if len(given) * asked.top_k * max(asked.text_characters, 300) > LARGEST_ANSWER:
            message = "So many documents do not fit one answer: ask for fewer queries, documents or characters."
            raise ApiError(400, "answer_too_large", message, param="top_k")
        queries = [_query(text, "query" if several is None else f"queries[{n}]") for n, text in enumerate(given)]
        facts.inputs, facts.texts = len(queries), queries
        ranked = await self._result(request, SEARCH, [(query, asked.top_k) for query in queries])
        body = await asyncio.to_thread(self._answers, served, ranked, asked.text_characters)
        return Response(body, media_type="application/json")

    def _answers(self, served: Served, ranked: Sequence[Any], characters: int) -> bytes:
        documents, collection = served.documents, self.plan.collection
        assert documents is not None
        assert collection is not None
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
                for rank, (document, score) in enumerate(zip(documents.take(numbers), scores, strict=True), 1)
            ]
            data.append({"object": "search.result", "index": number, "hits": hits})
        corpus = {"id": collection.id, "name": collection.name, "documents": len(documents)}
        return to_json({"object": "list", "model": self.plan.name, "corpus": corpus, "data": data})

    def _checked(self, kind: type[M], body: bytes) -> M:
        return _checked(kind, body, (self.config.max_inputs, self.config.max_characters))

    async def _result(self, request: Request, kind: str, items: Sequence[Any]) -> list[Any]:
        """What the batches give for these items. Nobody's texts are read whose client has gone meanwhile."""
        assert self.batcher is not None
        try:
            future = self.batcher.submit(kind, items)
        except FullError as error:
            raise busy("server_busy", "Too many texts wait already: try again later.", error.retry_after) from error
        except ClosedError as error:
            raise unavailable("stopping", "The server is stopping.") from error
        results = asyncio.wrap_future(future)
        self.intake.waiting += 1
        try:
            await asyncio.wait((results,), timeout=min(AT_ONCE_S, self.config.timeout_s))
            return results.result() if results.done() else await self._later(request, results)
        finally:
            self.intake.waiting -= 1
            results.cancel()

    async def _later(self, request: Request, results: asyncio.Future[list[Any]]) -> list[Any]:
        """What takes longer is waited for only as long as the client does."""
        gone = asyncio.ensure_future(_disconnected(request))
        both: set[asyncio.Future[Any]] = {results, gone}
        try:
            left = max(0.0, self.config.timeout_s - AT_ONCE_S)
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
        if results.done():
            return results.result()
        if gone.done() and not gone.cancelled():
            raise ClientDisconnect
        raise unavailable("timeout", f"This took longer than {self.config.timeout_s:g} seconds.")

    def _loaded(self) -> Served:
        if self.served is None:
            raise unavailable("loading", "The model and the index are still being loaded.", 2)
        return self.served

    def _names(self) -> list[str]:
        """What may stand as ``model``: the retriever, which reads documents then, and the retriever in a role."""
        name = self.plan.name
        return [name] if self.plan.resolved is None else [name, f"{name}:{QUERY}", f"{name}:{DOCUMENT}"]

    def _role(self, model: str, input_type: str | None) -> str:
        """How texts for this model are read. ApiError for a model that is not served, or two roles that contradict."""
        if model not in self._names():
            raise self._unknown(model)
        named = model.removeprefix(self.plan.name).removeprefix(":")
        if named and input_type and named != input_type:
            message = f"The model's name says {named}, and input_type says {input_type}."
            raise ApiError(400, "contradiction", message, param="input_type")
        return named or input_type or DOCUMENT

    def _unknown(self, model: str) -> ApiError:
        message = f"There is no model {shown(model)} here. This server has: {', '.join(self._names())}."
        return ApiError(404, "model_not_found", message, param="model")

    def _described(self, name: str) -> dict[str, Any]:
        served = self.served
        encoder = served.encoder if served else None
        facts = {
            "dimensions": served.dimensions if served and encoder else None,
            "max_tokens": encoder.max_tokens if encoder else None,
            "input_type": None if self.plan.resolved is None else self._role(name, None),
        }
        known = {key: value for key, value in facts.items() if value is not None}
        return {"id": name, "object": "model", "created": self.started, "owned_by": "cdp-studio", **known}


def _checked(kind: type[M], value: Any, limits: tuple[int, int] = (1, 1)) -> M:
    try:
        if isinstance(value, bytes):
            return kind.model_validate_json(value, context={"limits": limits})
        return kind.model_validate(value)
    except ValidationError as error:
        raise of_validation(error) from None  # its text would repeat what was sent


def _query(text: str, where: str) -> str:
    try:
        return checked_query(text)
    except InputError as error:
        raise ApiError(400, "invalid_query", f"{where}: {error.message}", param=where.partition("[")[0]) from None


def _facts(request: Request) -> Facts:
    facts: Facts = request.scope["facts"]
    return facts


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


async def _disconnected(request: Request) -> None:
    """Returns once the client has gone. A body that a GET may have is read past."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _refused(request: Request, error: ApiError) -> Response:
    _facts(request).code = error.code
    return error.response()


async def _no_route(request: Request, error: HTTPException) -> Response:
    path = shown(request.url.path)
    if error.status_code == 405:
        message = f"{path} is not asked with {request.method[:20]}."
        return await _refused(request, ApiError(405, "method_not_allowed", message, headers=error.headers))
    message = f"There is nothing at {path}. There is /v1/models, /v1/embeddings and /v1/search."
    return await _refused(request, ApiError(404, "not_found", message))
