"""The process of ``cdp serve``: it listens at once, loads, answers, and on SIGTERM ends what is in flight."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

import uvicorn

from cdp.base.config import ServingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.serving import served
from cdp.serving.app import Api
from cdp.serving.door import loopback
from cdp.serving.protocol import LARGEST_HEAD, limited

SHORTEST_TOKEN = 16
"""Characters. Whoever may guess 50 times a second guesses no 16 random ones."""

KEEP_ALIVE_S = 30
"""An idle connection stays open for so long, so that a client need not open one per request."""


def check_token(config: ServingConfig, token: str) -> str:
    """The token without the line break that files end with. ConfigError for one that is missing or can be guessed."""
    token = token.strip()
    if not token and (config.proxy or not loopback(config.host)):
        where = "the proxy" if config.proxy else config.host or "every address"
        raise ConfigError(
            f"Others can come by {where}, so a token is needed.",
            hint="Put one into a file and name it with --token-file; or listen on 127.0.0.1 without a proxy.",
        )
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise ConfigError(
            f"The token must have at least {SHORTEST_TOKEN} characters, printable ASCII without spaces.",
            hint="Make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    return token


Announce = Callable[[str, str, str], None]
"""Told (model's name, address, event): ``listening``, then ``ready``."""


class Serving:
    """One server. Made, it holds its port; ``run`` returns when it has stopped.

    CdpError if there is nothing to serve or the address cannot be listened on.
    """

    def __init__(self, workspace: Workspace, config: ServingConfig, token: str) -> None:
        token = check_token(config, token)
        self.workspace = workspace
        self.plan = served.plan(workspace, config)
        self.api = Api(self.plan, token)
        self.listener = _listen(config)
        self.address = _address(self.listener)
        self.server = uvicorn.Server(
            uvicorn.Config(
                self.api.door,
                http=limited(config.max_connections, config.read_timeout_s),
                loop="asyncio",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(config.proxy),
                forwarded_allow_ips=config.proxy or "127.0.0.1",
                backlog=2048,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=config.grace_s,
                h11_max_incomplete_event_size=LARGEST_HEAD,
            )
        )
        self.problem: BaseException | None = None

    def run(self, announce: Announce) -> None:
        """Listen, load, answer. Raises what kept the model or the index from being loaded."""
        announce(self.plan.name, self.address, "listening")
        threading.Thread(target=self._load, args=(announce,), daemon=True, name="loading").start()
        self.server.run(sockets=[self.listener])
        notify("STOPPING=1")
        if self.problem is not None:
            raise self.problem

    def stop(self) -> None:
        """Take nothing new, end what is in flight, and return from ``run``."""
        self.server.should_exit = True

    def _load(self, announce: Announce) -> None:
        try:
            self.api.opened(served.load(self.workspace, self.plan, _reporter(self.api)))
        except BaseException as error:
            self.problem = error
            self.stop()
        else:
            announce(self.plan.name, self.address, "ready")
            notify("READY=1")


def serve(workspace: Workspace, config: ServingConfig, token: str, announce: Announce) -> None:
    """Serve until SIGTERM or SIGINT."""
    serving = Serving(workspace, config, token)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn stops, then raises the signal once more: it is done with
    serving.run(announce)


def _listen(config: ServingConfig) -> socket.socket:
    """The listening socket. ConfigError where the address cannot be had."""
    try:
        kind, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol named: asyncio turns Nagle's algorithm off for such sockets alone, and the body of an answer
        # would wait 40 ms for the acknowledgement of its head.
        listener = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            f"Nobody can listen on {config.host} port {config.port}: {reason}.", hint="Choose another --port or --host."
        ) from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reporter(api: Api) -> served.Progress:
    """What is being loaded, for /readyz, and on stderr at each new phase and every ten seconds."""
    last: tuple[str, float] = ("", 0.0)

    def report(phase: str, done: int, total: int) -> None:
        nonlocal last
        api.phase = {"status": "loading", "phase": phase, "done": done, "total": total}
        now = time.monotonic()
        if phase != last[0] or now - last[1] > 10:
            last = (phase, now)
            print(f"{phase}{f' {done:,} of {total:,}' if total else ''}", file=sys.stderr, flush=True)

    return report


def notify(state: str) -> None:
    """Tell systemd, where it started us and wants to know (Type=notify)."""
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(f"\0{name[1:]}" if name.startswith("@") else name)
            sender.sendall(state.encode())
    except OSError as error:
        print(f"systemd was not told {state}: {error}", file=sys.stderr)
