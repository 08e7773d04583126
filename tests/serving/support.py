"""Real servers on free ports, in a thread of the test's process: what only a process has is tested on a real one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from cdp.base.config import ServingConfig
from cdp.base.workspace import Workspace
from cdp.cli.answers import Run
from cdp.cli.declare import find
from cdp.serving.public import Serving

TOKEN = "a-token-of-the-tests-0123456789"


@contextmanager
def serving(workspace: Workspace, retriever: str, token: str = "", **settings: Any) -> Iterator[Serving]:
    """A server that is ready; stopped at the end."""
    server = Serving(workspace, ServingConfig.from_dict({"retriever": retriever, "port": 0, **settings}), token)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


def command_config(words: list[str]) -> ServingConfig:
    """The settings that the command line's own parser makes of ``serve …``."""
    found = find(words)
    assert not isinstance(found, int)
    command, rest = found
    given = command.read(rest)
    config = command.bind(Run(Workspace.default(), given), given)["config"]
    assert isinstance(config, ServingConfig)
    return config


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """What a refusal says, which has the API's own form."""
    assert answer.headers["content-type"] == "application/json"
    value = answer.json()
    assert set(value) == {"error"}
    assert set(value["error"]) == {"message", "type", "param", "code"}
    assert value["error"]["message"]
    assert value["error"]["type"] in ("invalid_request_error", "rate_limit_error", "server_error")
    error: dict[str, Any] = value["error"]
    return error
