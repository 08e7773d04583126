"""uvicorn's HTTP/1.1 protocol, for clients that cannot be trusted to be quick or to speak HTTP.

uvicorn waits as long as somebody likes for the end of a request's head and for an answer to be taken. Here both have a
limit, as connections have, and what is no HTTP is refused in the API's own form.
"""

from __future__ import annotations

import asyncio
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from cdp.serving.errors import ApiError

LARGEST_HEAD = 32 * 1024
"""Bytes of a request's line and headers."""


class Protocol(H11Protocol):
    """``limited`` makes the class that a server uses."""

    most: ClassVar[int] = 1024
    patience_s: ClassVar[float] = 15.0

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._late, self._stalled):
            if timer is not None:
                timer.cancel()
        self._late = self._stalled = None
        super().connection_lost(exc)

    def _watch(self) -> None:
        """A client that has begun a head, or goes on with a body that was refused, has ``patience_s`` to end it."""
        sending = self.conn.their_state is h11.SEND_BODY and self.conn.our_state in (h11.DONE, h11.MUST_CLOSE)
        if not sending and self.conn.their_state is not h11.IDLE:
            if self._late is not None:
                self._late.cancel()
                self._late = None
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.patience_s, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self.patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # an answer that nobody takes would keep the connection for ever
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = bytes(ApiError(400, "invalid_http", "This is not a valid HTTP request.").response().body)
            length = str(len(body))
            headers = [("content-type", "application/json"), ("content-length", length), ("connection", "close")]
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def limited(most: int, patience_s: float) -> type[Protocol]:
    """The protocol with these limits: connections, and seconds for a slow client."""
    return type("LimitedProtocol", (Protocol,), {"most": most, "patience_s": patience_s})
