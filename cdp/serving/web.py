"""Shared by both servers: Host, Origin and token checks, body validation, error format, uvicorn's limits.

Web pages must not reach a server on loopback, neither from another site (``Origin``, ``Sec-Fetch-Site``) nor by a name
that their owner resolves to 127.0.0.1 (``Host``). Answers have no CORS headers.
"""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import to_json
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cdp.base.hosts import host_of, loopback
from cdp.base.text import shown

M = TypeVar("M", bound=BaseModel)

LARGEST_HEAD = 32 * 1024  # bytes of a request's line and headers
KEEP_ALIVE_S = 30
READ_PAST = 4  # times the limit: a body that is too large is read so far, so that its client reads the answer
CLIENT_LEFT = 499  # status in log and metrics if the client left before the answer


class ApiError(Exception):
    """An error in the form of OpenAI's API. ``code`` is stable; ``message`` is one sentence."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.headers, self.more = dict(headers or {}), dict(more or {})

    def response(self) -> Response:
        kind = {429: "rate_limit_error", 500: "server_error"}.get(self.status, "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code, **self.more}
        return json_response({"error": error}, self.status, self.headers)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON, written by pydantic: several times as fast as ``json`` for thousands of numbers."""
    return Response(to_json(value), status, headers, "application/json")


class Body(BaseModel):
    """Base of request bodies: no unknown field, no 1 for true and no "5" for 5."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


async def read_body(request: Request, kind: type[M], limit: int) -> M:
    """Return the validated body of at most ``limit`` bytes. ApiError names the first wrong field."""
    # Pages of other sites can send forms and plain text without a preflight request, but not JSON.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ApiError(415, "unsupported_media_type", "Send JSON, with the header Content-Type: application/json.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiError(415, "unsupported_encoding", "Send the body uncompressed.")

    parts: list[bytes] = []
    size = 0

    async for part in request.stream():
        size += len(part)
        if size <= limit:
            parts.append(part)
        elif size > READ_PAST * limit:
            break

    if size > limit:
        message = f"A request may have {limit / 1e6:g} MB: send fewer texts."
        raise ApiError(413, "request_too_large", message, headers={"connection": "close"})

    try:
        return kind.model_validate_json(b"".join(parts))
    except ValidationError as error:
        # Without ``from error``: the text of the original would repeat what was sent.
        raise _invalid(error) from None


def _invalid(error: ValidationError) -> ApiError:
    problem = error.errors(include_url=False, include_context=False)[0]
    message = str(problem["msg"]).removeprefix("Value error, ").removesuffix(".")
    if not problem["loc"]:
        return ApiError(400, "invalid_body", f"The body is no such request: {message}.")
    param = str(problem["loc"][0])[:60]
    return ApiError(400, "invalid_value", f"{param}: {message}.", param=param)


class AccessMiddleware:
    """The outermost ASGI application: checks Host, Origin and token, answers errors, and reports each request.

    ``local``: answer only loopback names and ``hosts``. ``open_paths`` need no check. ``began`` is called before each
    request, ``done`` after it, with (scope, status, error code, seconds).
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        local: bool,
        hosts: Collection[str] = (),
        token: str = "",
        open_paths: Collection[str] = (),
        began: Callable[[], None] = lambda: None,
        done: Callable[[Scope, int, str, float], None],
    ) -> None:
        self.app, self.local, self.hosts, self.token = app, local, {name.lower() for name in hosts}, token.encode()
        self.open_paths, self.began, self.done = open_paths, began, done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        scope["request_id"] = secrets.token_hex(6)
        scope["error"] = ""
        start, status = time.perf_counter(), CLIENT_LEFT
        self.began()

        async def sent(message: Message) -> None:
            nonlocal status

            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", scope["request_id"].encode()),
                    (b"cache-control", b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                ]

            await send(message)

        scope["app"] = self  # makes the router raise HTTPException instead of answering in plain text

        try:
            if scope["path"] not in self.open_paths:
                self.check(Headers(scope=scope))

            await self.app(scope, receive, sent)
        except ClientDisconnect:
            pass
        except Exception as error:
            if status != CLIENT_LEFT:  # the answer has begun: uvicorn ends the connection
                raise

            refusal = _refusal(error, scope)
            scope["error"] = refusal.code
            await refusal.response()(scope, receive, sent)
        finally:
            self.done(scope, status, scope["error"], time.perf_counter() - start)

    def check(self, headers: Headers) -> None:
        """Raise ApiError for a request that must not be answered."""
        given_hosts = headers.getlist("host")
        host = given_hosts[0] if len(given_hosts) == 1 else ""
        name = host_of(host)

        known = name in self.hosts or (self.local and (loopback(name) or not given_hosts))  # HTTP/1.0 has none
        if (self.local or self.hosts) and not known:
            raise ApiError(403, "host_not_allowed", "This server has no such name: see the setting allowed_hosts.")

        # An Origin is compared as text: parsing one raises for values such as "http://[".
        origin = headers.get("origin")

        foreign = origin is not None and (not host or origin.partition("://")[2] != host)
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise ApiError(403, "origin_not_allowed", "This server does not answer web pages of other sites.")

        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip() if scheme.lower() == "bearer" else ""
        if self.token and not secrets.compare_digest(given.encode(), self.token):
            message = "The token is missing or wrong. Send it as: Authorization: Bearer TOKEN."
            raise ApiError(401, "invalid_api_key", message, headers={"www-authenticate": "Bearer"})


def _refusal(error: Exception, scope: Scope) -> ApiError:
    if isinstance(error, ApiError):
        return error
    path = shown(scope["path"])
    if isinstance(error, HTTPException) and error.status_code == 405:
        message = f"{path} does not take {scope['method'][:20]}."
        return ApiError(405, "method_not_allowed", message, headers=error.headers)
    if isinstance(error, HTTPException):
        return ApiError(404, "not_found", f"There is nothing at {path}.")
    # Without the message, which may hold texts of the request.
    frames = "".join(traceback.format_tb(error.__traceback__))
    print(f"{type(error).__name__} in request {scope['request_id']}\n{frames}", file=sys.stderr, flush=True)
    return ApiError(500, "internal_error", f"The server failed. Request {scope['request_id']}.")


def server(app: ASGIApp, *, connections: int, grace_s: int) -> uvicorn.Server:
    """Return uvicorn with its limits. TLS, rate limits and slow clients: see docs/SERVING.md on reverse proxies."""
    config = uvicorn.Config(
        app,
        http="h11",
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # uvicorn's would log the query of an address
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
        h11_max_incomplete_event_size=LARGEST_HEAD,
    )
    return uvicorn.Server(config)


def run(made: uvicorn.Server, listener: socket.socket) -> None:
    """Serve on a bound socket until SIGTERM, SIGINT or ``should_exit``; requests in flight are finished."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn stops, then raises the signal once more
    made.run(sockets=[listener])
