"""The dashboard's search process (one per workspace, its requests, when it ends): ``python -m cdp.serving.dashboard
<workspace> <socket>``.

Started by ``cdp.serving.client``. It serves any retriever and corpus over a Unix socket with a lock beside it, and ends
when idle, with its workspace, or on SIGTERM. It downloads nothing, uses no GPU, and writes only indexes.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from cdp.base.errors import CdpError, WorkspaceError
from cdp.base.locks import wait_for_lock
from cdp.base.workspace import Workspace, private_files
from cdp.retrievers.api import Payer
from cdp.serving import engine, web
from cdp.serving.client import ALREADY
from cdp.serving.engine import NotPreparedError, SearchEngine

LOOK_EVERY_S = 0.5
TAKE_WITHIN_S = 1.0
LARGEST_BODY = 1 << 20
CONNECTIONS = 256
GRACE_S = 2


class DashboardSearch(web.Body):
    """``POST /search``."""

    retriever: str
    corpus: str
    query: str
    k: int = Field(ge=1, le=1000)


class Instance:
    """The server of one workspace."""

    def __init__(self, workspace: Workspace, engine: SearchEngine) -> None:
        self.workspace, self.engine = workspace, engine
        self.at_work = 0
        self.last_asked = time.monotonic()
        route = Route("/search", self.search, methods=["POST"])
        app = web.AccessMiddleware(
            Router([route], redirect_slashes=False, lifespan=self._lifespan),
            local=True,
            began=lambda: self._count(1),
            done=lambda *_: self._count(-1),
        )
        self.server = web.server(app, connections=CONNECTIONS, grace_s=GRACE_S)

    async def search(self, request: Request) -> Response:
        asked = await web.read_body(request, DashboardSearch, LARGEST_BODY)
        return web.json_response(await asyncio.to_thread(self._answer, asked))

    def _answer(self, asked: DashboardSearch) -> dict[str, Any]:
        try:
            return self.engine.search(asked.retriever, asked.corpus, asked.query, asked.k)
        except CdpError as error:
            more = {"hint": error.hint, "unprepared": isinstance(error, NotPreparedError)}
            raise web.ApiError(400, type(error).__name__, error.message, more=more) from error
        except MemoryError:
            self.engine.cache.drop(lambda key: True)
            message, hint = "There is not enough memory for this search.", "Choose a smaller retriever, or fewer."
            raise web.ApiError(503, "no_memory", message, more={"hint": hint}) from None

    def _count(self, change: int) -> None:
        self.at_work += change
        self.last_asked = time.monotonic()

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        yield
        watching.cancel()

    async def _watch(self) -> None:
        """End the process once it is idle, or its workspace does not exist any more."""
        while self.workspace.root.is_dir():
            if not self.at_work and time.monotonic() - self.last_asked >= engine.IDLE_S:
                break
            await asyncio.sleep(min(LOOK_EVERY_S, engine.IDLE_S))
        self.server.should_exit = True


def main(root: str, path: str) -> int:
    """Serve until idle; return the exit code."""
    private_files()
    workspace, address = Workspace(Path(root)), Path(path)
    lock_file = address.with_suffix(".lock")

    # The file stays: a process that removed it could let two others hold locks on different files.
    try:
        lock = wait_for_lock(lock_file, "The search process", wait_s=TAKE_WITHIN_S)
    except WorkspaceError:
        return ALREADY

    try:
        address.unlink(missing_ok=True)  # of a killed process: it held the lock that is ours now
        own = SearchEngine(workspace, engine.memory_limit(), interactive=True, payer=Payer(workspace, "search"))

        instance = Instance(workspace, own)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(64)
            web.run(instance.server, listener)
    finally:
        with suppress(OSError):
            address.unlink(missing_ok=True)

        os.close(lock)

    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # without waiting for threads with unfinished answers
