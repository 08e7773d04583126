"""The download worker: stopped it keeps what it has and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.worker import Job, Stopped
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import library
from cdp.workers import download as download_worker
from tests.benchmarks import published
from tests.benchmarks.hub_server import Hub, Server
from tests.benchmarks.published import put


def job(workspace: Workspace, **config: str) -> Job:
    folder = workspace.jobs / "download-1"
    write_json(folder / "spec.json", {"id": "download-1", "kind": "download", "config": config})
    return Job(folder)


@pytest.mark.slow
def test_a_stop_keeps_the_place_and_a_second_attempt_goes_on(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    with Server(hub):
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        hub.commit("zeta-alpha-ai/NanoSciFact", published.nano())
        at_work = job(workspace, benchmark="nanoscifact")
        (at_work.folder / "stop.request").touch()
        with pytest.raises(Stopped):
            download_worker.main(at_work)
        assert library.list_names(workspace) == []
        assert not (at_work.results / "download.json").exists()
        (at_work.folder / "stop.request").unlink()
        download_worker.main(Job(at_work.folder))
    assert library.list_names(workspace) == ["nanoscifact"]
    result = read_json(at_work.results / "download.json")
    assert (result["benchmark"], result["documents"]) == ("nanoscifact", 3)


def test_a_second_download_finds_it_there(workspace: Workspace, tmp_path: Path) -> None:
    put(tmp_path / "NanoSciFact", published.nano())
    at_work = job(workspace, benchmark="nanoscifact", folder=str(tmp_path))
    download_worker.main(at_work)
    assert not read_json(at_work.results / "download.json")["existed"]
    download_worker.main(job(workspace, benchmark="nanoscifact"))
    assert read_json(at_work.results / "download.json")["existed"]
