"""What cannot work is said in one sentence with the next step: by what answers at an address, and by a node."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cdp import __version__
from cdp.base.errors import CdpError, ClusterError
from cdp.base.locks import try_lock
from cdp.base.workspace import Workspace, write_json
from cdp.jobs import lease, node, probe, ray_cluster
from cdp.jobs.lease import LEASE, NODE
from cdp.jobs.probe import Probe
from tests.jobs.support import start, until_state

Answering = Callable[[int, str], str]


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    """Start a server that answers everything alike; its address. Ray 2.60.0 counts as installed."""
    monkeypatch.setattr(ray_cluster, "require", lambda: None)
    monkeypatch.setattr(ray_cluster, "own_version", lambda: "2.60.0")
    servers: list[ThreadingHTTPServer] = []

    def begin(status: int, body: str) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [(200, "<html>hello</html>", "is no Ray cluster's Jobs API"), (200, "[]", "is no Ray cluster's Jobs API"),
     (200, '{"ray_version": "next"}', "is no Ray cluster's Jobs API"), (404, "", "is no Ray cluster's Jobs API"),
     (401, "", "RAY_AUTH_TOKEN"), (403, "", "RAY_AUTH_TOKEN"),
     (200, '{"ray_version": "3.1.0"}', r"runs Ray 3\.1\.0, and here is 2\.60\.0.*pip install 'ray\[default\]==3")],
)  # fmt: skip
def test_what_answers_is_no_cluster_that_can_be_used(answering: Answering, status: int, body: str, told: str) -> None:
    with pytest.raises(ClusterError) as error:
        ray_cluster.check(answering(status, body))
    assert re.search(told, str(error.value))


def test_another_minor_version_will_do(answering: Answering) -> None:
    assert ray_cluster.check(answering(200, '{"ray_version": "2.48.0"}')) == "2.48.0"


@pytest.mark.parametrize(
    ("change", "told"),
    [({"seen": False}, "does not see the workspace"), ({"writable": False}, "may not write the workspace"),
     ({"version": "0.0.1"}, "The cluster has CDP Studio 0.0.1"), ({"locks": False}, ""), ({}, "")],
)  # fmt: skip
def test_a_node_that_cannot_do_a_job(workspace: Workspace, change: dict[str, object], told: str) -> None:
    fit = {"host": "n1", "version": __version__, "python": "3.11.7", "seen": True, "writable": True, "locks": True}
    answer = Probe(**{**fit, **change})  # type: ignore[arg-type]
    if not told:
        answer.check(workspace)
        return
    with pytest.raises(ClusterError, match=told) as error:
        answer.check(workspace)
    assert error.value.hint


def test_the_nodes_side_of_a_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "SHOWN_WITHIN_S", 0.1)

    def asked(folder: Path) -> Probe:
        probe.main([str(folder), "probe-1"])
        return Probe(**json.loads(capsys.readouterr().out.removeprefix(probe.ANSWER_PREFIX)))

    assert not asked(tmp_path / "elsewhere").seen
    lock = try_lock(tmp_path / ".probe-1")
    assert lock is not None
    answer = asked(tmp_path)
    assert (answer.seen, answer.writable, answer.locks, answer.version) == (True, True, True, __version__)


@pytest.mark.slow
def test_a_node_says_why_it_does_not_begin(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (node, lease):
        monkeypatch.setattr(module, "SHOWN_WITHIN_S", 0.1)
    monkeypatch.setattr(node, "private_files", lambda: None)
    monkeypatch.setattr(node, "survives_a_full_disk", lambda: None)
    job_id = start(workspace, "fail", how="data")
    until_state(workspace, job_id, "failed")
    folder = workspace.job(job_id)

    def told(path: Path) -> str:
        with pytest.raises(SystemExit) as ended:
            node.main([str(path), "2"])
        assert ended.value.code == 3
        return capsys.readouterr().err.strip()

    assert "does not see the job's folder" in told(workspace.jobs / "elsewhere")
    assert "is not wanted any more" in told(folder)
    write_json(folder / LEASE, {"attempt": 2, "beat": 1, "version": __version__, "over": True})
    assert "is not wanted any more" in told(folder)
    write_json(folder / LEASE, {"attempt": 2, "beat": 1, "version": "0.0.1"})
    assert f"submitted by CDP Studio 0.0.1, and the cluster has {__version__}" in told(folder)
    assert told(folder).startswith(node.LOG_PREFIX), "by which the supervisor finds it in Ray's log"
    assert not (folder / NODE).exists()


def test_a_call_that_takes_too_long_or_fails_is_told() -> None:
    over = threading.Event()
    with pytest.raises(ClusterError, match=r"It did not answer \(no answer in 0.05 s\)"):
        ray_cluster._within(0.05, over.wait, "It did not answer")
    over.set()
    with pytest.raises(CdpError, match=r"It failed \(ZeroDivisionError"):
        ray_cluster._within(30.0, lambda: 1 // 0, "It failed")
