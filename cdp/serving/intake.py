"""A request's body, within its limits of size and time; all bodies together within a limit of memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from cdp.base.config import ServingConfig
from cdp.serving.errors import ApiError, busy

IN_FLIGHT = 32
"""So many bodies of the largest size may be in memory at once; of small ones thousands."""

READ_PAST = 4
"""Of a body that is too large so many times its limit is read and thrown away, for a client that sends all of it before
it reads an answer. Who sends more has the connection closed."""

CLOSE = {"connection": "close"}


class Intake:
    """Counts what is being read and what waits, for all requests of a server. Used by the event loop alone."""

    def __init__(self, config: ServingConfig) -> None:
        self.limit = int(config.max_body_mb * 1_000_000)
        self.seconds = config.read_timeout_s
        self.reading = self.waiting = self.held = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body; its memory counts until the request is answered. ApiError for one that is no JSON by its headers,
        too large, or too slow."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ApiError(415, "unsupported_media_type", "Send JSON, with the header Content-Type: application/json.")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise ApiError(415, "unsupported_encoding", "Send the body as it is, not compressed.")
        reserved = self._announced(request)
        if self.held + reserved > IN_FLIGHT * self.limit:
            raise busy("server_busy", "Too many large requests are being answered: try again later.", 2)
        self.held += reserved
        try:
            yield await self._read(request)
        finally:
            self.held -= reserved

    def _announced(self, request: Request) -> int:
        """The bytes that a body will have; its limit where the request does not say."""
        length = request.headers.get("content-length", "")
        return min(int(length), self.limit) if length.isdecimal() else self.limit

    async def _read(self, request: Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        self.reading += 1
        try:
            async with asyncio.timeout(self.seconds):
                more = True
                while more and size <= (1 + READ_PAST) * self.limit:
                    message = await request.receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    part, more = message.get("body", b""), message.get("more_body", False)
                    size += len(part)
                    if size <= self.limit:
                        parts.append(part)
                    else:
                        parts.clear()
        except TimeoutError:
            raise ApiError(408, "too_slow", "The body did not arrive in time.", headers=CLOSE) from None
        finally:
            self.reading -= 1
        if size > self.limit:
            limit = f"{self.limit / 1e6:g} MB"
            raise ApiError(413, "request_too_large", f"A request may have {limit}: send fewer texts.", headers=CLOSE)
        return b"".join(parts)
