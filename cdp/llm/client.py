"""A client for one model at an endpoint with the OpenAI protocol (OpenAI, vLLM, Ollama, llama.cpp, a router): requests,
retries (how long: ``refusals``), timeouts, error sentences.

Retries and Retry-After are the openai client's. Added are a deadline for a whole request, a limit on an answer's size,
a count of requests that may be charged without an answer, cancellation, and one sentence per failure, out of whichever
words the server has (``cdp.llm.refusals``). Requests run on an event loop in a thread; callers are ordinary threads.
The key is removed from all texts of the endpoint.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import re
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

import httpx2
import openai

from cdp.base.errors import ProviderError, RefusedError
from cdp.base.hosts import loopback
from cdp.base.redaction import clean, know
from cdp.base.text import shown
from cdp.base.worker import stop_grace_s
from cdp.llm.address import Endpoint, proxy_for, split_query
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
from cdp.llm.refusals import REPLACEMENTS, SCHEMA_KINDS, Learnt, Refusal, page_title, read_refusal

CONNECT_TIMEOUT_S = 10.0
MAX_BYTES = 4 * 2**20  # of one answer; the longest (32,768 tokens) is below 1 MB
LONGEST_PAUSE_S = 120.0  # that the openai client waits

RETRIED = (408, 409, 429)
NOT_CHAT = "Check that the address is that of a chat endpoint (often it ends in /v1)."
NOT_EMBEDDING = "Check that the model at this address makes embeddings (the address often ends in /v1)."

# Host and port of the address that a redirect names.
_HOST = re.compile(r"(?:https?:)?//(?:[^/?#\s@]*@)?([^/?#\s@]+)", re.IGNORECASE)

# FastAPI, llama.cpp, Go, Azure; OpenAI; Node. A model that is missing has a name.
_NO_PATH = re.compile(r"(?:404 |page |file |resource )*not found\W*$|a web page|invalid url|cannot post", re.IGNORECASE)

A = TypeVar("A", Answer, Embeddings)
MakeBody = Callable[[], dict[str, Any]]


class _Unreachable(openai.OpenAIError):
    """There never was a connection: most likely the address is wrong."""


class _Call:
    """One call of ``complete``: its task, how often it was sent, and how often without an answer."""

    task: asyncio.Task[Any]

    def __init__(self) -> None:
        self.sent = self.lost = 0
        self.under_way = self.learnt = False


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
            return self._as_said(response, call)
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

    def _as_said(self, response: httpx2.Response, call: _Call) -> httpx2.Response:
        """Return the response with status and pause of its body, by which the openai client retries."""
        refusal = read_refusal(response.status_code, response.headers, response.content, time.time())
        if refusal is None:
            return response
        response.extensions["refusal"] = refusal
        if response.status_code < 300:  # an error inside HTTP 200
            call.lost += b'"usage"' in response.content  # perhaps charged
            response.status_code = refusal.status
        if refusal.retry_after and "retry-after" not in response.headers:
            response.headers["retry-after"] = f"{refusal.retry_after:g}"
        if refusal.refuses:  # no wait changes that
            response.headers["x-should-retry"] = "false"
        return response


class ChatClient:
    """Requests to one model at one endpoint; thread-safe.

    At most ``concurrency`` requests are in flight. A request is retried ``retries`` times after a rate limit, a server
    error, a timeout or a lost connection; each attempt has ``timeout_s``. What the server does not take is kept in
    ``learnt``. Raises ConfigError for a proxy of the environment that cannot be used.
    """

    def __init__(
        self, endpoint: Endpoint, model: str, *, concurrency: int, timeout_s: float, retries: int,
        learnt: Learnt | None = None,
    ) -> None:  # fmt: skip
        self.url, self.model = endpoint.url, model
        self.learnt = learnt or Learnt(model, endpoint.url)
        self.reached = self.stopping = False
        know(self, endpoint.key)
        self._timeout_s, self._retries = timeout_s, retries
        self._calls: set[_Call] = set()
        self._lock = threading.Lock()
        self._started = False
        timeout = openai.Timeout(None, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._proxy = proxy_for(endpoint.url)  # a bad one raises here; httpx's own error is a traceback
        http = _Http(
            weakref.ref(self), timeout_s, verify=_certificates(), limits=limits, timeout=timeout,
            follow_redirects=False, trust_env=not loopback(endpoint.url),
        )  # fmt: skip

        base_url, query = split_query(endpoint.url)
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key, base_url=base_url, default_query=query, max_retries=retries, timeout=timeout,
            http_client=http,
            # Azure's deployments read the key from this header alone; others ignore it.
            default_headers={"api-key": endpoint.key} if "/openai/deployments/" in base_url else None,
        )  # fmt: skip

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
        answer = self._taken(body, usual, lambda data: read_completion(data, usual), without_schema)
        return replace(answer, model=answer.model or self.model)

    def embed(self, texts: Sequence[str], usual: Usage, *, retries: int | None = None) -> Embeddings:
        """Return a vector for each text; ``usual`` usage replaces a missing token count.

        Raises as ``complete``; after a RequestError ``learnt`` may say that the server takes fewer texts a request.
        """
        try:
            # Floats: some servers take no base64.
            body = {"input": list(texts), "encoding_format": "float"}
            return self._taken(body, usual, lambda data: read_embeddings(data, len(texts), usual), retries=retries)
        except RequestError as error:
            error.hint = NOT_EMBEDDING if error.hint == NOT_CHAT else error.hint
            raise

    @property
    def refused(self) -> tuple[str, ...]:
        """The parameters that this model was found not to take, and that have no replacement."""
        return tuple(name for name in sorted(self.learnt.refused) if REPLACEMENTS.get(name, "") is None)

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

    def _taken(
        self, body: dict[str, Any], usual: Usage, read: Callable[[bytes], A],
        without_schema: dict[str, Any] | None = None, retries: int | None = None,
    ) -> A:  # fmt: skip
        """Return the answer to ``body`` in a form that the server takes."""
        lost = Usage()
        for _ in range(len(REPLACEMENTS) + len(SCHEMA_KINDS)):
            try:
                answer = self._ask(lambda: self.learnt.fit(body, without_schema), usual, read, retries)
                return replace(answer, usage=answer.usage + lost)
            except _Again as again:
                lost += again.usage
            except (RequestError, Cancelled) as error:
                error.usage += lost
                raise

        raise RequestError(f"{self.url} refuses the request's parameters one after another.", usage=lost)

    def _ask(self, body: MakeBody, usual: Usage, read: Callable[[bytes], A], retries: int | None) -> A:
        data, call, error = self._post(body, self._retries if retries is None else retries)
        n = call.lost  # sent and not answered: perhaps charged
        lost = Usage(n * usual.input_tokens, n * usual.output_tokens, estimated=n, unanswered=n)

        if error is not None:
            raise self._failed(error, call, lost)

        try:
            if page := page_title(data):
                raise Malformed(f"it is {page}, not JSON")
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

    def _post(self, body: MakeBody, retries: int) -> tuple[bytes, _Call, BaseException | None]:
        """Send a request from the loop's thread; return its body, its call, and the error if there is no body."""
        with self._lock:
            if not self._started:
                threading.Thread(target=_run, args=(self._loop,), name="endpoint", daemon=True).start()
                self._started = True

        call = _Call()

        async def send() -> bytes:
            task = asyncio.current_task()
            assert task is not None
            call.task = task
            _call.set(call)
            self._calls.add(call)

            try:
                if self.stopping:
                    raise asyncio.CancelledError

                async with self._slots:
                    asked = {"model": self.model, **body()}  # by what was learnt while this one waited
                    # Not embeddings.create: where encoding_format is left out it asks for base64.
                    path = "/chat/completions" if "messages" in asked else "/embeddings"
                    options: Any = {"max_retries": retries}
                    sent = self._client.post(path, body=asked, cast_to=httpx2.Response, options=options)

                    try:
                        return bytes((await sent).content)
                    except openai.APIStatusError as error:  # learnt before the next request leaves
                        call.learnt = self.learnt.learn(error.response.extensions["refusal"], asked)
                        raise
            finally:
                self._calls.discard(call)

        future = asyncio.run_coroutine_threadsafe(send(), self._loop)

        try:
            return future.result(), call, None
        except (openai.OpenAIError, concurrent.futures.CancelledError) as error:
            return b"", call, error

    def _failed(self, error: BaseException, call: _Call, lost: Usage) -> Exception:
        """Return the error of a request without an answer."""
        if isinstance(error, concurrent.futures.CancelledError):
            return Cancelled(lost)

        through = f"Requests to it go through {self._proxy}. " if self._proxy else ""

        if isinstance(error, _Unreachable):
            return ProviderError(
                f"{self.url} cannot be reached ({clean(str(error))}).",
                hint=f"{through}Check the address and whether the server runs.",
            )

        if isinstance(error, openai.APIStatusError):
            return self._refused(error, call, lost)

        tries = call.sent
        times = f", {tries} times in a row." if tries > 1 else "."

        if isinstance(error, openai.APITimeoutError):
            message = f"{self.url} gave no answer within {self._timeout_s:g} s{times}"
            hint = "Raise timeout, or lower concurrency if the endpoint is overloaded."
        else:
            message = f"The connection to {self.url} failed ({clean(_cause(error))}){times}"
            hint = f"{through}Check whether the server still runs, and resume the job then."

        return RequestError(message, hint=hint, exhausted=True, usage=lost)

    def _refused(self, error: openai.APIStatusError, call: _Call, lost: Usage) -> Exception:
        """Return the error for a status: for every request, for this one, or _Again for another body."""
        refusal: Refusal = error.response.extensions["refusal"]
        status, said = refusal.status, " ".join(clean(refusal.words).split())[:200].rstrip(".")
        if 300 <= status < 400:  # documents and key would go to an address that no one named
            named = _HOST.match(str(error.response.headers.get("location", "")))
            return RefusedError(
                f"{self.url} points to {shown(named[1]) if named else 'another path'} ({status}), and requests are not "
                "sent on.",
                hint="If you trust that address, set base_url to it.",
            )

        if status == 401 or refusal.refuses == "key":  # its words often hold part of the key
            return RefusedError(
                f"{self.url} refused the API key ({status}).", hint="Check the key and what it may be used for."
            )

        if status == 403:
            return RefusedError(f"{self.url} refused access (403: {said}).", hint="Check what the key may be used for.")
        if call.learnt and refusal.refuses != "texts":
            return _Again(lost)

        if status == 404 and _NO_PATH.match(said):
            return RefusedError(
                f"{self.url} is the address of no such endpoint (404: {said}).",
                hint="Check that the address ends where the endpoint's does (often /v1).",
            )

        if status == 404 or refusal.refuses == "model":
            return RefusedError(
                f"{self.url} has no model {self.model!r} ({status}: {said}).",
                hint="Check the model's name and that the address ends where the endpoint's does (often /v1).",
            )

        if status == 402 or refusal.refuses == "credit":
            return RefusedError(f"The account's credit is used up ({status}: {said}).")

        if refusal.refuses or (status not in RETRIED and status < 500):
            most = (
                f" It takes at most {refusal.limit:,} tokens." if refusal.refuses == "tokens" and refusal.limit else ""
            )
            return RequestError(
                f"The endpoint refused the request ({status}: {said}).{most}", usage=lost, raw=said, status=status
            )

        tries = call.sent

        if (refusal.retry_after or 0) > LONGEST_PAUSE_S:
            pause = f"Retry-After: {refusal.retry_after:.0f} s"
            message = f"The endpoint asks for a longer pause than a run makes ({status}, {pause})."
            return ProviderError(message, hint="Resume the job then.")

        return RequestError(
            f"{self.url} is still failing after {tries} {'try' if tries == 1 else 'tries'} ({status}: {said}).",
            hint="Lower concurrency, raise retries, or resume the job later."
            if status == 429
            else "Try again later; finished documents are kept.",
            exhausted=True,
            usage=lost,
            status=status,
        )


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
