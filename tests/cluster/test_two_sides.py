"""What supervisor and node tell each other through files: signs of life, clocks of two machines, keys under way."""

from __future__ import annotations

import base64
import os
import threading
import time
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.errors import ClusterError, ConfigError, WorkspaceError
from cdp.base.locks import try_lock
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs import handover, lease
from cdp.jobs.lease import LEASE, LOCK, NODE, Pulse, Watch
from cdp.jobs.state import JobFiles, State, derive
from tests.jobs.support import start, until_state


def test_a_pulse_counts_and_a_watch_sees_it_move(tmp_path: Path) -> None:
    pulse, watch = Pulse(tmp_path / NODE, 2), Watch(tmp_path / NODE)
    assert watch.look() == {}
    pulse.renew(host="n1")
    pulse.renew(host="n2")  # too soon
    assert (watch.look()["attempt"], watch.record["beat"], watch.record["host"]) == (2, 1, "n1")
    before = watch.silent_s
    time.sleep(0.01)
    watch.look()
    assert watch.silent_s > before, "what does not move is silent"
    pulse.renew(at_once=True, host="n3")
    assert watch.look()["host"] == "n3"
    (tmp_path / NODE).write_text("{", encoding="utf-8")
    assert watch.look()["host"] == "n3", "what cannot be read just now is no news"


@pytest.mark.slow
def test_an_earlier_attempts_node_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "OVER_AFTER_S", 0.3)
    lease.wait_until_over(tmp_path, 2, lambda: False, 0.0)  # there was none
    write_json(tmp_path / NODE, {"attempt": 1, "beat": 7, "phase": "ended"})
    lease.wait_until_over(tmp_path, 2, lambda: False, 0.0)
    write_json(tmp_path / NODE, {"attempt": 1, "beat": 7, "phase": "running", "host": "n1"})
    lock = try_lock(tmp_path / LOCK)
    assert lock is not None
    with pytest.raises(ClusterError, match="still at work on n1"):
        lease.wait_until_over(tmp_path, 2, lambda: False, 0.5)
    assert read_json(tmp_path / LEASE)["attempt"] == 2, "it hears that it is not wanted any more"
    threading.Timer(0.2, os.close, [lock]).start()
    lease.wait_until_over(tmp_path, 2, lambda: False, 60.0)


@pytest.mark.slow
def test_an_earlier_node_that_still_counts_is_alive_whatever_its_locks_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are file systems that do not show the locks of one machine to another."""
    monkeypatch.setattr(lease, "OVER_AFTER_S", 0.5)
    pulse = Pulse(tmp_path / NODE, 1)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.05):
            pulse.renew(at_once=True, phase="running", host="n1")

    pulse.renew(at_once=True, phase="running", host="n1")
    thread = threading.Thread(target=beat)
    thread.start()
    try:
        with pytest.raises(ClusterError, match="still at work"):
            lease.wait_until_over(tmp_path, 2, lambda: False, 1.5)
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("offset", [-1e6, 0.0, 1e6])
def test_a_heartbeat_of_another_machine_is_put_on_this_machines_clock(tmp_path: Path, offset: float) -> None:
    here = time.monotonic()
    write_json(tmp_path / "status.json", {"phase": "running", "attempt": 1, "clock_offset": -offset, "host": "n1"})
    write_json(tmp_path / "heartbeat.json", {"attempt": 1, "clock": here + offset, "next_within_s": 30.0})
    files = JobFiles.read(tmp_path)
    assert derive(files, True, here + 20.0).state is State.RUNNING
    assert derive(files, True, here + 40.0).state is State.STALLED


def test_what_a_job_waits_for_on_a_cluster_is_said() -> None:
    files = JobFiles(status={"phase": "queued", "message": "Waits for room on the cluster http://head:8265."})
    assert derive(files, True, 0.0).message == "Waits for room on the cluster http://head:8265."


def test_keys_go_covered_and_are_gone_when_they_were_read(tmp_path: Path) -> None:
    given = handover.put(tmp_path, {"CDP_API_KEY": "sk-very-secret-key", "Ü": "ß"})
    (path,) = tmp_path.iterdir()
    for half in (path.read_bytes(), base64.b64decode(given.partition(":")[2])):
        assert b"secret" not in half
        assert b"CDP_API_KEY" not in half
    assert path.stat().st_mode & 0o077 == 0
    assert handover.take(tmp_path, given) == {"CDP_API_KEY": "sk-very-secret-key", "Ü": "ß"}
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WorkspaceError, match="could not be handed over"):
        handover.take(tmp_path, given)
    assert handover.put(tmp_path, {}) == ""
    assert handover.take(tmp_path, "") == {}


def test_another_pad_reads_nothing(tmp_path: Path) -> None:
    name, _, pad = handover.put(tmp_path, {"CDP_API_KEY": "sk-very-secret-key"}).partition(":")
    other = base64.b64encode(os.urandom(len(base64.b64decode(pad)))).decode()
    with pytest.raises(WorkspaceError):
        handover.take(tmp_path, f"{name}:{other}")


def test_silence_is_a_number_of_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(lease.SILENCE_VARIABLE, raising=False)
    assert lease.silence_s() == 10.0
    monkeypatch.setenv(lease.SILENCE_VARIABLE, "long")
    with pytest.raises(ConfigError, match="must be a number of seconds"):
        lease.silence_s()


@pytest.mark.slow
def test_a_job_here_waits_for_the_node_of_the_attempt_before(workspace: Workspace) -> None:
    """Its resume was told to run on this machine, while the node that was given up may still save."""
    job_id = start(workspace, "fail", how="data")
    until_state(workspace, job_id, "failed")
    folder = workspace.job(job_id)
    write_json(folder / NODE, {"attempt": 1, "beat": 3, "phase": "running", "host": "n1"})
    jobs.resume(workspace, job_id)
    until_state(workspace, job_id, "failed")
    assert read_json(folder / LEASE)["attempt"] == 2
