"""One chat endpoint: how a request is sent, and every way in which no whole answer comes back.

Requests run on an event loop in a thread of its own, because only there one deadline holds for all of a request: name
look-up, connection, waiting, and a body that comes a byte at a time. Callers are ordinary threads that wait. The
client's own retries are off, and what comes back is handed on as bytes; ``completions`` reads it.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import threading
import time
import weakref
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from cdp.base.imports import SECOND_TRANSPORT, without

with without(SECOND_TRANSPORT):
    import openai

CONNECT_TIMEOUT_S = 10.0

MOST_BYTES = 4 * 2**20
"""Of one answer, packed or not. The longest that may be asked for (32,768 tokens) is below 1 MB."""

MOST_ERROR_BYTES = 64 * 2**10
"""Of an answer with an error status, as it is sent: its first sentences are all that is shown."""


class NoAnswer(Exception):  # noqa: N818 — each of its kinds is handled, none is a fault of ours
    """No whole answer came. ``sent`` is whether the endpoint may have worked on the request, and may charge for it."""

    sent = True


class Unreachable(NoAnswer):
    """No connection: nobody listens, no such host, or no handshake."""

    sent = False


class Broken(NoAnswer):
    """The connection was lost before the whole answer was there."""


class Late(NoAnswer):
    """Not the whole answer within the time that a request has."""


class Abandoned(NoAnswer):
    """The run stops, and the answer did not come while it could wait."""


class Unreadable(NoAnswer):
    """The bytes cannot be taken in: too many of them, or not packed as they claim to be."""


class Endpoint:
    """``post`` may be called from several threads at once; connections are kept open between requests."""

    def __init__(self, base_url: str, key: str, *, timeout_s: float, connections: int) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._started = False
        self._under_way: set[asyncio.Timeout] = set()
        self._leave_at: float | None = None
        # No limit but the one of the whole request, except for the connection: an address where nothing answers is
        # told within seconds, however long answers may take.
        timeout = openai.Timeout(None, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        http = openai.DefaultAsyncHttpxClient(
            verify=_certificates(),
            limits=httpx2.Limits(max_connections=connections, max_keepalive_connections=connections),
            timeout=timeout,
            follow_redirects=True,
            event_hooks={"response": [_bound]},
        )
        self._client = openai.AsyncOpenAI(
            api_key=key, base_url=base_url, max_retries=0, timeout=timeout, http_client=http
        )
        self._loop = asyncio.new_event_loop()
        # Previews make an endpoint per click: its thread and sockets go when it is no longer used.
        weakref.finalize(self, _close, self._loop, self._client).atexit = False

    def post(self, body: dict[str, Any]) -> bytes:
        """The body of the answer to one chat request. Raises NoAnswer, or openai.APIStatusError for an error status."""
        with self._lock:
            if not self._started:
                threading.Thread(target=_run, args=(self._loop,), name="endpoint", daemon=True).start()
                self._started = True
        return asyncio.run_coroutine_threadsafe(self._post(body), self._loop).result()

    def leave_within(self, seconds: float) -> None:
        """Requests under way get at most so much longer; those that are not answered by then end as Abandoned."""
        with self._lock:
            if self._leave_at is not None:
                return
            self._leave_at = time.monotonic() + seconds
            if self._started:
                self._loop.call_soon_threadsafe(self._hurry)

    def _hurry(self) -> None:
        for limit in self._under_way:
            self._shorten(limit)

    def _shorten(self, limit: asyncio.Timeout) -> None:
        when = limit.when()
        if self._leave_at is not None and when is not None:
            limit.reschedule(min(when, self._loop.time() + max(0.0, self._leave_at - time.monotonic())))

    async def _post(self, body: dict[str, Any]) -> bytes:
        limit = asyncio.timeout(self._timeout_s)
        try:
            async with limit:
                self._under_way.add(limit)
                self._shorten(limit)
                create = self._client.chat.completions.with_streaming_response.create
                async with create(**body) as response:
                    data = bytearray()
                    async for chunk in response.iter_bytes():
                        data += chunk
                        if len(data) > MOST_BYTES:
                            raise Unreadable(f"it is longer than {MOST_BYTES // 2**20} MB")
                    return bytes(data)
        except TimeoutError:
            left = self._leave_at is not None and time.monotonic() >= self._leave_at
            raise (Abandoned if left else Late)(f"no answer within {self._timeout_s:g} s") from None
        except openai.APITimeoutError as error:
            raise Unreachable(_cause(error)) from None  # of the client's own limits only that of the connection is left
        except openai.APIConnectionError as error:
            never = isinstance(error.__cause__, httpx2.ConnectError | httpx2.UnsupportedProtocol)
            raise (Unreachable if never else Broken)(_cause(error)) from None
        except httpx2.DecodingError as error:
            raise Unreadable(f"it is not packed as it says ({_cause(error)})") from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError, EOFError) as error:
            raise Broken(_cause(error)) from None
        finally:
            self._under_way.discard(limit)


class _Bounded(httpx2.AsyncByteStream):
    """A response's bytes as they are sent, up to a limit: nothing larger is ever held, whatever its status."""

    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most:
                raise Unreadable(f"it is longer than {self._most / 2**20:.2g} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _bound(response: httpx2.Response) -> None:
    """Called for each response before its body is read."""
    most = MOST_BYTES if response.status_code < 300 else MOST_ERROR_BYTES
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, most)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """The authorities that this machine trusts, read once: 60 ms, and each preview makes an endpoint of its own."""
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
    return " ".join((str(cause) or type(cause).__name__).split())[:120]
