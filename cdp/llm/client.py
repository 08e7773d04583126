"""A client for one model at an endpoint with the OpenAI protocol (OpenAI, vLLM, Ollama, llama.cpp, a router).

Retries and Retry-After are the openai client's. Added are a deadline for a whole request, a limit on an answer's size,
a count of requests that may be charged without an answer, cancellation, and one sentence per failure. Requests run on
an event loop in a thread; callers are ordinary threads. The key is removed from all texts of the endpoint.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import re
import ssl
import threading
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

import httpx2
import openai

from cdp.base.errors import ProviderError, RefusedError
from cdp.base.redaction import clean, know
from cdp.base.text import shown
from cdp.base.worker import stop_grace_s
from cdp.llm.address import Endpoint
from cdp.llm.answers import (
    KEPT_RAW,
    Answer,
    Cancelled,
    Embeddings,
    Malformed,
    RequestError,
    Usage,
    paid_for,
    read_completion,
    read_embeddings,
)

CONNECT_TIMEOUT_S = 10.0
MAX_BYTES = 4 * 2**20  # of one answer; the longest (32,768 tokens) is below 1 MB

# Parameters that a model may refuse, with their replacement.
REPLACEMENTS = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None, "stop": None, "seed": None,
                "logprobs": None}  # fmt: skip
# Words of endpoints that refuse a schema.
SCHEMA_WORDS = ("response_format", "json_schema", "response format", "guided", "structured output")
RETRIED = (408, 409, 429)
NOT_CHAT = "Check that the address is that of a chat endpoint (often it ends in /v1)."
NOT_EMBEDDING = "Check that the model at this address makes embeddings (the address often ends in /v1)."

# Host and port of the address that a redirect names.
_HOST = re.compile(r"(?:https?:)?//(?:[^/?#\s@]*@)?([^/?#\s@]+)", re.IGNORECASE)

A = TypeVar("A", Answer, Embeddings)


class _Unreachable(openai.OpenAIError):
    """There never was a connection: most likely the address is wrong."""


class _Call:
    """One call of ``complete``: its task, how often it was sent, and how often without an answer."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.task = task
        self.sent = self.lost = 0
        self.under_way = False


_call: ContextVar[_Call] = ContextVar("call")


class _Http(openai.DefaultAsyncHttpxClient):
    """Sends one attempt, with a deadline that includes the body."""

    def __init__(self, owner: weakref.ref[ChatClient], timeout_s: float, **options: Any) -> None:
        super().__init__(**options)
        self._owner = owner
        self._timeout_s = timeout_s

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call, owner = _call.get(), self._owner()
        if owner is None or owner.stopping:
            raise asyncio.CancelledError
        call.sent += 1
        call.under_way = True
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await super().send(request, **{**options, "stream": False})
            owner.reached = True
            if response.status_code == 429 and b"insufficient_quota" in response.content:
                response.headers["x-should-retry"] = "false"  # no wait brings the credit back
            return response
        except TimeoutError as error:
            call.lost += 1
            raise httpx2.ReadTimeout("no whole answer in time", request=request) from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as error:
            if owner.reached:
                raise
            raise _Unreachable(_cause(error)) from None
        except BaseException:
            call.lost += 1
            raise
        finally:
            call.under_way = False


class ChatClient:
    """Requests to one model at one endpoint; thread-safe.

    At most ``concurrency`` requests are in flight. A request is retried ``retries`` times after a rate limit, a server
    error, a timeout or a lost connection; each attempt has ``timeout_s``.
    """

    def __init__(self, endpoint: Endpoint, model: str, *, concurrency: int, timeout_s: float, retries: int) -> None:
        self.url, self.model = endpoint.url, model
        self.takes_schema = True
        self.reached = self.stopping = False
        know(self, endpoint.key)
        self._timeout_s, self._retries = timeout_s, retries
        self._renamed: dict[str, str | None] = {}
        self._calls: set[_Call] = set()
        self._lock = threading.Lock()
        self._started = False
        timeout = openai.Timeout(None, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        http = _Http(
            weakref.ref(self), timeout_s, verify=_certificates(), limits=limits, timeout=timeout, follow_redirects=False
        )
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key, base_url=endpoint.url, max_retries=retries, timeout=timeout, http_client=http
        )
        self._slots = asyncio.Semaphore(concurrency)
        self._loop = asyncio.new_event_loop()
        # Previews make a client per click: its thread and sockets are freed with it.
        weakref.finalize(self, _close, self._loop, self._client).atexit = False

    def complete(self, body: dict[str, Any], usual: Usage, *, without_schema: dict[str, Any] | None = None) -> Answer:
        """Return the answer to one chat request; ``body`` is without the model.

        ``usual`` usage replaces missing token counts. If the endpoint refuses a response format, ``without_schema`` is
        sent instead, from then on. Raises RequestError if this request failed, RefusedError or ProviderError if every
        request would, Cancelled after ``stop``.
        """
        lost = Usage()
        for _ in range(len(REPLACEMENTS) + 2):
            used = body if self.takes_schema or without_schema is None else without_schema
            try:
                answer = self._ask(used, usual, lambda data: read_completion(data, usual))
                return replace(answer, usage=answer.usage + lost, model=answer.model or self.model)
            except _Again as again:
                lost += again.usage
            except (RequestError, Cancelled) as error:
                error.usage += lost
                raise
        raise RequestError(f"{self.url} refuses the request's parameters one after another.", usage=lost)

    def embed(self, texts: Sequence[str], usual: Usage) -> Embeddings:
        """Return a vector for each text; ``usual`` usage replaces a missing token count. Raises as ``complete``."""
        try:
            # Floats: some servers take no base64.
            body = {"input": list(texts), "encoding_format": "float"}
            return self._ask(body, usual, lambda data: read_embeddings(data, len(texts), usual))
        except RequestError as error:
            error.hint = NOT_EMBEDDING if error.hint == NOT_CHAT else error.hint
            raise

    @property
    def refused(self) -> tuple[str, ...]:
        """The parameters that this model was found not to take, and that have no replacement."""
        return tuple(name for name, other in dict(self._renamed).items() if other is None)

    def stop(self) -> None:
        """Cancel waiting requests now, and those in flight after as long as a stop may take: they are paid for."""
        with self._lock:
            if not self.stopping and self._started:
                self._loop.call_soon_threadsafe(self._end, max(0.0, 0.8 * stop_grace_s() - 1.0))
            self.stopping = True

    def _end(self, within_s: float) -> None:
        for call in self._calls:
            if not call.under_way:
                call.task.cancel()
        self._loop.call_later(within_s, lambda: [call.task.cancel() for call in self._calls])

    def _ask(self, body: dict[str, Any], usual: Usage, read: Callable[[bytes], A]) -> A:
        arguments = dict(body)
        for name, other in dict(self._renamed).items():
            value = arguments.pop(name, None)
            if other is not None and value is not None:
                arguments[other] = value
        data, call, error = self._post({"model": self.model, **arguments})
        n = call.lost if call else 0  # sent and not answered: perhaps charged
        lost = Usage(n * usual.input_tokens, n * usual.output_tokens, estimated=n, unanswered=n)
        if error is not None:
            raise self._failed(error, call, lost, body)
        try:
            if len(data) > MAX_BYTES:
                raise Malformed(f"it is longer than {MAX_BYTES // 2**20} MB")
            answer = read(data)
        except Malformed as problem:
            raise RequestError(
                f"The answer of {self.url} cannot be used: {problem}.",
                hint=problem.hint or ("" if problem.own else NOT_CHAT),
                exhausted=not problem.own,
                usage=paid_for(data, usual) + lost,
                raw=clean(data[:MAX_BYTES].decode("utf-8", "replace"))[:KEPT_RAW],
            ) from None
        return replace(answer, usage=answer.usage + lost)

    def _post(self, body: dict[str, Any]) -> tuple[bytes, _Call | None, BaseException | None]:
        """Send a request from the loop's thread; return its body, its call, and the error if there is no body."""
        with self._lock:
            if not self._started:
                threading.Thread(target=_run, args=(self._loop,), name="endpoint", daemon=True).start()
                self._started = True
        calls: list[_Call] = []

        async def send() -> bytes:
            task = asyncio.current_task()
            assert task is not None
            call = _Call(task)
            calls.append(call)
            _call.set(call)
            self._calls.add(call)
            try:
                if self.stopping:
                    raise asyncio.CancelledError
                async with self._slots:
                    asked: Any = self._client.chat.completions if "messages" in body else self._client.embeddings
                    return bytes((await asked.with_raw_response.create(**body)).content)
            finally:
                self._calls.discard(call)

        future = asyncio.run_coroutine_threadsafe(send(), self._loop)
        try:
            return future.result(), next(iter(calls), None), None
        except (openai.OpenAIError, concurrent.futures.CancelledError) as error:
            return b"", next(iter(calls), None), error

    def _failed(self, error: BaseException, call: _Call | None, lost: Usage, body: dict[str, Any]) -> Exception:
        """Return the error of a request without an answer."""
        if isinstance(error, concurrent.futures.CancelledError):
            return Cancelled(lost)
        if isinstance(error, _Unreachable):
            return ProviderError(
                f"{self.url} cannot be reached ({error}).",
                hint="Check the address and whether the server runs.",
            )
        if isinstance(error, openai.APIStatusError):
            return self._refused(error, call, lost, body)
        tries = call.sent if call else 1
        times = f", {tries} times in a row." if tries > 1 else "."
        if isinstance(error, openai.APITimeoutError):
            message = f"{self.url} gave no answer within {self._timeout_s:g} s{times}"
            hint = "Raise timeout, or lower concurrency if the endpoint is overloaded."
        else:
            message = f"The connection to {self.url} failed ({_cause(error)}){times}"
            hint = "Check whether the server still runs, and resume the job then."
        return RequestError(message, hint=hint, exhausted=True, usage=lost)

    def _refused(
        self, error: openai.APIStatusError, call: _Call | None, lost: Usage, body: dict[str, Any]
    ) -> Exception:
        """Return the error for a status: for every request, for this one, or _Again for another body."""
        status, said = error.status_code, self._said(error)
        if 300 <= status < 400:  # documents and key would go to an address that no one named
            named = _HOST.match(str(error.response.headers.get("location", "")))
            return RefusedError(
                f"{self.url} points to {shown(named[1]) if named else 'another path'} ({status}), and requests are not "
                "sent on.",
                hint="If you trust that address, set base_url to it.",
            )
        if status == 401:  # its words often hold part of the key
            return RefusedError(
                f"{self.url} refused the API key (401).", hint="Check the key and what it may be used for."
            )
        if status == 403:
            return RefusedError(f"{self.url} refused access (403: {said}).", hint="Check what the key may be used for.")
        if status == 404:
            return RefusedError(
                f"{self.url} has no model {self.model!r} (404: {said}).",
                hint="Check the model's name and that the address ends where the endpoint's does (often /v1).",
            )
        if status == 402 or (status == 429 and error.code == "insufficient_quota"):
            return RefusedError(f"The account's credit is used up ({status}: {said}).")
        if status in (400, 422) and "messages" in body and self._learn(error, body):
            return _Again(lost)
        if status not in RETRIED and status < 500:
            return RequestError(f"The endpoint refused the request ({status}: {said}).", usage=lost, raw=said)
        tries = call.sent if call else 1
        pause = clean(str(error.response.headers.get("retry-after", "")))[:40]
        if pause and tries <= self._retries:  # longer than the openai client waits: two minutes
            message = f"The endpoint asks for a longer pause than a run makes ({status}, Retry-After: {pause})."
            return ProviderError(message, hint="Resume the job then.")
        return RequestError(
            f"{self.url} is still failing after {tries} {'try' if tries == 1 else 'tries'} ({status}: {said}).",
            hint="Lower concurrency, raise retries, or resume the job later."
            if status == 429
            else "Try again later; finished documents are kept.",
            exhausted=True,
            usage=lost,
        )

    def _learn(self, error: openai.APIStatusError, body: dict[str, Any]) -> bool:
        """Learn from a refusal which parameters this model takes: newer ones take ``max_completion_tokens`` and no
        temperature, older endpoints no schema. Return True if the request should be sent again."""
        complaint = f"{error.param or ''} {self._said(error)}".lower()
        if "response_format" in body and any(word in complaint for word in SCHEMA_WORDS):
            self.takes_schema = False
            return True
        if "unsupported" not in complaint and "not support" not in complaint and "unsupported" not in str(error.code):
            return False
        for name, other in REPLACEMENTS.items():
            if name in complaint and name not in self._renamed:
                self._renamed[name] = other
                return True
            if name in complaint and name == error.param:  # learnt by another thread meanwhile
                return True
        return False

    def _said(self, error: openai.APIStatusError) -> str:
        """Return the endpoint's message, short, on one line, and without the key."""
        body = error.body
        message = body.get("message") if isinstance(body, dict) else None
        text = clean(str(message or error.message))[:2000].encode("utf-8", "replace").decode("utf-8")
        return " ".join(text.split())[:200].rstrip(".")


class _Again(Exception):  # noqa: N818 — tells the caller to send another body
    def __init__(self, usage: Usage) -> None:
        super().__init__()
        self.usage = usage


@functools.cache
def _certificates() -> ssl.SSLContext:
    # Read once: it takes 60 ms, and each preview makes a client of its own.
    return httpx2.create_ssl_context()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _close(loop: asyncio.AbstractEventLoop, client: Any) -> None:
    if not loop.is_running():
        loop.close()
        return
    closing = asyncio.run_coroutine_threadsafe(client.close(), loop)
    closing.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))


def _cause(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return " ".join((clean(str(cause)) or type(cause).__name__).split())[:120]
