"""The search process: ``python -m cdp.workers.search <workspace>``. One per workspace, started by whoever asks first.

It answers over a Unix socket (``cdp.searching.wire``), holds models and indexes while they are asked for, and ends by
itself: when nobody has asked for a while, when the workspace is gone, or on SIGTERM. It downloads nothing, uses no GPU,
and writes only what can be made anew (``embeddings/``). A lock keeps a second one away; killed, it leaves a socket that
nobody listens to, which whoever looks next removes.
"""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, InputError
from cdp.base.locks import try_lock
from cdp.base.workspace import Workspace, private_files
from cdp.searching import Engine, wire
from cdp.searching.limits import idle_seconds, memory_limit

ALREADY = 3
"""The exit code of a process that is not needed: another one answers for this workspace."""

LOOK_EVERY_S = 0.5

TAKE_WITHIN_S = 1.0


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: str, engine: Engine) -> None:
        super().__init__(address, Handler)
        self.engine = engine
        self.at_work = 0
        self.last_asked = time.monotonic()
        self.counting = threading.Lock()

    def idle_for(self) -> float:
        """Seconds since the last request was answered; 0 while one is being answered."""
        with self.counting:
            return 0.0 if self.at_work else time.monotonic() - self.last_asked

    def count(self, change: int) -> None:
        with self.counting:
            self.at_work += change
            self.last_asked = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone meanwhile, or does not speak as we do: nobody is left to be told."""


class Handler(socketserver.BaseRequestHandler):
    """One request, one answer."""

    server: Server
    request: socket.socket

    def handle(self) -> None:
        self.server.count(1)
        try:
            self.request.settimeout(30)  # a caller that says nothing does not keep the process from being idle
            request = wire.receive(self.request, wire.MOST_BYTES)
            self.request.settimeout(None)
            wire.send(self.request, self._answer(request))
        finally:
            self.server.count(-1)

    def _answer(self, request: Any) -> dict[str, Any]:
        try:
            return {"answer": answer(self.server, request)}
        except CdpError as error:
            return {"error": wire.described(error)}
        except MemoryError:
            self.server.engine.held.drop(lambda key: True)
            return {"error": {"message": "There is not enough memory for this search.",
                              "hint": "Choose a smaller retriever, or fewer of them."}}  # fmt: skip
        except Exception as error:
            traceback.print_exc()
            text = f"The search failed by an error of ours ({type(error).__name__}: {error})."
            return {"error": {"message": text, "hint": "Try again; if it returns, report it with this line."}}


def answer(server: Server, request: Any) -> dict[str, Any]:
    """What is asked for: ``search``, ``status`` or ``stop``."""
    what = request.get("op") if isinstance(request, dict) else None
    if what == "search":
        retriever, collection, query, k = (request.get(name) for name in ("retriever", "collection", "query", "k"))
        texts = isinstance(retriever, str) and isinstance(collection, str) and isinstance(query, str)
        if not texts or not isinstance(k, int) or not 1 <= k <= 1000:
            raise InputError("The request is not complete.", hint="This is a fault of ours: report it.")
        return server.engine.search(retriever, collection, query, k)
    if what == "status":
        return {"pid": os.getpid(), "idle_s": idle_seconds(), **server.engine.status()}
    if what == "stop":
        threading.Thread(target=server.shutdown, daemon=True).start()
        return {"pid": os.getpid()}
    raise InputError("The request is not known.", hint="This is a fault of ours: report it.")


def main(root: str) -> int:
    """Serve until idle; the exit code."""
    private_files()
    workspace = Workspace(Path(root))
    address = wire.address_of(workspace)
    lock = _take(address.lock)
    if lock is None:
        return ALREADY
    identity = _identity(workspace.root)
    if identity is None:
        print(f"There is no workspace {root}.", file=sys.stderr)
        address.lock.unlink(missing_ok=True)
        return 1
    address.socket.unlink(missing_ok=True)  # of one that was killed: it held the lock that we hold now
    try:
        with Server(str(address.socket), Engine(workspace, memory_limit())) as server:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: threading.Thread(target=server.shutdown, daemon=True).start())
            threading.Thread(target=_watch, args=(server, workspace.root, identity), daemon=True).start()
            server.serve_forever(poll_interval=0.1)
    finally:
        address.socket.unlink(missing_ok=True)
        address.lock.unlink(missing_ok=True)
        os.close(lock)
    return 0


def _watch(server: Server, root: Path, identity: tuple[int, int]) -> None:
    """End the process once nobody asks any more, or the workspace is no longer there."""
    limit = idle_seconds()
    while server.idle_for() < limit and _identity(root) == identity:
        time.sleep(min(LOOK_EVERY_S, limit))
    server.shutdown()


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _take(path: Path) -> int | None:
    """The lock, or None if another process keeps it. Who clears away behind a killed one has it for an instant."""
    deadline = time.monotonic() + TAKE_WITHIN_S
    while time.monotonic() < deadline:
        lock = try_lock(path)
        if lock is not None and _is_there(lock, path):
            return lock
        if lock is not None:
            os.close(lock)
        time.sleep(0.02)
    return None


def _is_there(descriptor: int, path: Path) -> bool:
    """Whether the lock that is held is still the file of that name: its last holder may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    os._exit(code)  # threads at work on an answer that nobody waits for any more do not delay the end
