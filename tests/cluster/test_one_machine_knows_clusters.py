"""What is known of clusters without one: addresses, the workspace's choice, and what is told where none answers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from cdp import __version__, jobs
from cdp.base.errors import ClusterError, ConfigError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.cli import main
from cdp.jobs import place
from cdp.jobs.queue import CLUSTER, Queue
from cdp.jobs.ray import RayLauncher, RayNode
from cdp.jobs.records import Status
from tests.jobs.support import start, until_state
from tests.pages.support import ended_job
from tests.support import REPOSITORY

DEAD = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("typed", "read"),
    [("", ""), ("here", ""), (" http://Head:8265/ ", "http://head:8265"), ("http://10.0.0.1", "http://10.0.0.1:80"),
     ("https://ray.example.org", "https://ray.example.org:443"), ("http://[::1]:8265", "http://[::1]:8265")],
)  # fmt: skip
def test_an_address_has_one_spelling(typed: str, read: str) -> None:
    assert place.checked_address(typed) == read


@pytest.mark.parametrize(
    "typed",
    ["head:8265", "ray://head:10001", "http://", "http://head:99999", "http://me:secret@head:8265", "http://head:8265/x",
     "http://head:8265?a=b", "http://he ad:8265", "file:///etc/passwd", "auto"],
)  # fmt: skip
def test_other_addresses_are_refused(typed: str) -> None:
    with pytest.raises(ConfigError, match="is not the address of a Ray cluster"):
        place.checked_address(typed)


def test_the_workspace_remembers_its_cluster(workspace: Workspace) -> None:
    for address in ("", "http://own:8265", ""):
        place.choose(workspace, address)
        assert place.current(workspace) == address


def test_without_ray_a_cluster_says_what_installs_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    assert main(["cluster", "use", DEAD]) == 2
    assert "pip install -r requirements-cluster.txt -c constraints.txt" in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_begins_nothing(workspace: Workspace) -> None:
    place.choose(workspace, DEAD)
    with pytest.raises(ClusterError, match=f"The Ray cluster at {DEAD} does not answer"):
        start(workspace)
    assert not list(workspace.jobs.glob("*"))


@pytest.mark.slow
def test_jobs_on_this_machine_load_no_ray_and_synthesis_no_client_and_no_torch() -> None:
    """Nor does the name of a local model, before it is asked."""
    heavy = {"ray", "httpx", "grpc", "aiohttp", "torch", "transformers", "openai", "pandas"}
    code = (
        "import sys; from cdp import cli, jobs, services, synthesis; import cdp.jobs.supervisor, cdp.services.clusters;"
        "import cdp.synthesis.preview, cdp.synthesis.run; from cdp.base.config import SynthesisConfig;"
        "synthesis.make_generator(SynthesisConfig(corpus='c', generator='transformers'));"
        f"print(sorted({{name.partition('.')[0] for name in sys.modules}} & {heavy}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=REPOSITORY, check=True)
    assert done.stdout.strip() == "[]"


def submitted(workspace: Workspace) -> str:
    """A job as it lies there once a cluster has taken it and before its supervisor begins."""
    folder = ended_job(workspace, "train-1", "training", {}, outcome="failed")
    write_json(folder / "spec.json", {**read_json(folder / "spec.json"), "module": "tests.jobs.workers.count"})
    Status.queued(folder, DEAD, place.signature(DEAD))
    queue = Queue(workspace)
    queue.add(time.time_ns(), folder.name, jobs.DeviceRequest(), cluster=True)
    return folder.name


@pytest.mark.slow
def test_a_job_that_its_cluster_has_not_begun_is_queued_and_can_be_withdrawn(workspace: Workspace) -> None:
    job_id = submitted(workspace)
    for _ in range(2):
        (job,) = jobs.list_active(workspace)
        assert (job.state, job.cluster, job.position) == ("queued", DEAD, None)
    with pytest.raises(ConfigError, match="still active"):
        jobs.resume(workspace, job_id)
    assert jobs.stop(workspace, job_id)
    job = jobs.view(workspace, job_id)
    assert (job.state, job.attempt) == ("stopped", 2)
    assert jobs.resume(workspace, job_id) == 3
    until_state(workspace, job_id, "finished")


def test_a_job_that_its_cluster_cannot_begin_any_more_fails(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = submitted(workspace)
    monkeypatch.setattr(RayLauncher, "end_of", lambda *_: "No module named cdp")
    monkeypatch.setitem(sys.modules["cdp.jobs"]._asked, job_id, -1000.0)
    job = jobs.view(workspace, job_id)
    assert (job.state, job.failure and job.failure["message"]) == ("failed", "No module named cdp")


def test_tickets_of_a_cluster_take_no_turn_here(workspace: Workspace) -> None:
    job_id = "train-1"
    write_json(workspace.jobs / job_id / "status.json", {"phase": "submitted", "attempt": 1})
    queue = Queue(workspace)
    queue.add(time.time_ns(), job_id, jobs.DeviceRequest(), cluster=True)
    assert [path.name.split(".")[2] for path in queue.folder.glob("[0-9]*")] == [CLUSTER]
    queue.clear_dead()
    assert queue.job_ids() == [job_id]
    write_json(workspace.jobs / "train-2" / "status.json", {"phase": "submitted", "attempt": 1})
    queue.add(time.time_ns(), "train-2", jobs.DeviceRequest())
    assert queue.try_take("train-2", slots=1, gpus=[]) == ("cpu",)


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"sees": False}, "does not see the workspace"), ({"writes": False}, "may not write"),
     ({"locks": False}, "this machine's locks"), ({"version": "0.1"}, "has CDP Studio 0.1")],
)  # fmt: skip
def test_a_node_that_cannot_run_jobs_says_why(workspace: Workspace, changed: dict[str, Any], told: str) -> None:
    node = RayNode("n1", version=__version__)
    node.check(workspace)
    with pytest.raises(ClusterError, match=told):
        RayNode(**{"host": "n1", "version": __version__, **changed}).check(workspace)
