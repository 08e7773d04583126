"""The command as a process: it says when it is ready, and on SIGTERM ends what is in flight."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from cdp.base.config import TOKEN as VARIABLE
from cdp.base.workspace import Workspace
from cdp.services import demo
from tests.cli.support import refusal
from tests.serving.support import TOKEN
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow


def line(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    value: dict[str, Any] = json.loads(process.stdout.readline())
    return value


def test_a_stop_ends_what_is_in_flight(workspace: Workspace, tmp_path: Path) -> None:
    demo.load(workspace)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    command = ["serve", "bm25", "--corpus", "demo", "--port", "0", "--token-file", str(tmp_path / "token"), "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cdp", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip
    client = httpx.Client(timeout=30)
    try:
        listening = line(process)
        assert (listening["id"], listening["state"]) == ("bm25", "ready")
        port = int(listening["url"].rpartition(":")[2])
        bearer = {"authorization": f"Bearer {TOKEN}"}
        search = f"{listening['url']}/v1/search"
        for headers, status in (({}, 401), (bearer, 200)):
            assert client.post(search, json={"query": "secretbees"}, headers=headers).status_code == status
        body = b'{"query": "honeybees"}'
        lines = ["POST /v1/search HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}",
                 "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]  # fmt: skip
        asking = socket.create_connection(("127.0.0.1", port), timeout=30)
        asking.sendall("\r\n".join(lines).encode() + body[:5])
        idle = socket.create_connection(("127.0.0.1", port), timeout=30)
        client.get(f"{listening['url']}/healthz")  # what was sent before has been read when this is answered
        process.send_signal(signal.SIGTERM)
        assert idle.recv(1) == b"", "a connection that asks nothing is closed"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=30)
        asking.sendall(body[5:])
        answer = b""
        while part := asking.recv(65536):
            answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"id":"honeybee"' in answer
        out, log = process.communicate(timeout=30)
    finally:
        process.kill()
        client.close()
    assert process.returncode == 0, log
    assert out == ""
    assert TOKEN not in log
    assert "secretbees" not in log
    assert [words.split()[2:5] for words in log.splitlines() if " /v1/search " in words] == [
        ["POST", "/v1/search", "401"], ["POST", "/v1/search", "200"], ["POST", "/v1/search", "200"],
    ]  # fmt: skip


def test_what_cannot_be_served_is_refused_in_one_line(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo.load(workspace)
    assert "gives no embeddings" in refusal("serve", "bm25")
    assert "No preset" in refusal("serve", "no-such!")
    assert "no-such" in refusal("serve", "bm25", "--corpus", "no-such")
    assert "a token is needed" in refusal("serve", "bm25", "--corpus", "demo", "--host", "0.0.0.0")
    for more in ("--host", "::"), ("--allowed-hosts", "search.example"):
        assert "a token is needed" in refusal("serve", "bm25", "--corpus", "demo", *more)
    monkeypatch.setenv(VARIABLE, "too-short")
    said = refusal("serve", "bm25", "--corpus", "demo")
    assert "at least 16 characters" in said
    assert "too-short" not in said
    assert VARIABLE not in os.environ
    assert "cannot be read" in refusal("serve", "bm25", "--corpus", "demo", "--token-file", str(tmp_path))
    (tmp_path / "empty").touch()
    assert "no token" in refusal("serve", "bm25", "--corpus", "demo", "--token-file", str(tmp_path / "empty"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refusal("serve", "bm25", "--corpus", "demo", "--port", str(taken.getsockname()[1]))
    assert "Cannot listen" in said
