"""A workspace that came from somebody else: its jobs run no foreign code, read no other files, ask no other address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cdp import jobs as room
from cdp import projects
from cdp.base import permission
from cdp.base.errors import ConfigError, InputError, WorkspaceError
from cdp.base.permission import NotAllowedError
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.benchmarks import judged, manifests
from cdp.benchmarks.manifests import Manifest, Subset
from cdp.jobs import devices, place
from cdp.jobs.queue import Queue
from cdp.jobs.ray import RayLauncher
from cdp.jobs.records import Status
from cdp.llm import address
from cdp.results import differences
from cdp.services import clusters, commands, jobs
from cdp.studies import records
from tests.catalog.support import add_evaluation
from tests.cli.support import run
from tests.jobs.support import until
from tests.services.test_endpoints_of_visitors import Listener, listening
from tests.support import REPOSITORY

SECRET = "the content of a private file"
KEY = "sk-operators-own-0123456789"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as found:
        yield found


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A benchmark's folder, or a file in it, that is the person's own and no part of the workspace."""
    folder = tmp_path / "private"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": SECRET}) + "\n")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": SECRET}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t1\t1\n")
    return folder


def job(workspace: Workspace, kind: str, config: dict[str, Any], **spec: Any) -> str:
    """A job that was stopped, as a stranger may have written it; its id."""
    module = spec.pop("module", {"study": "cdp.workers.study", "import": "cdp.workers.importing",
                                 "filter": "cdp.workers.filtering"}.get(kind, f"cdp.workers.{kind}"))  # fmt: skip
    folder = workspace.jobs / f"{kind}-1"
    about = {"schema": 1, "id": folder.name, "kind": kind, "name": "a gift", "created": "2026-01-01T00:00:00+00:00",
             "sequence": 1, "module": module, "config": config, "inputs": {"sources": []}}  # fmt: skip
    write_json(folder / "spec.json", {**about, **spec})
    times = dict.fromkeys(("queued", "ended"), "2026-01-01T00:00:00+00:00")
    write_json(folder / "status.json", {"schema": 1, "phase": "ended", "attempt": 1, "outcome": "stopped", **times})
    return folder.name


def refused(workspace: Workspace, job_id: str, setting: str, named: str) -> None:
    """A resume on the command line ends with one sentence that names the setting, and nothing has started."""
    told = run("jobs", "resume", job_id, code=2).stderr
    assert setting in told
    assert named in told
    assert told.count("\n") == 1
    left_alone(workspace, job_id)


def left_alone(workspace: Workspace, job_id: str) -> None:
    folder = workspace.job(job_id)
    assert read_json(folder / "status.json")["attempt"] == 1
    assert not (folder / "supervisor.log").exists()
    assert [path.name for path in workspace.jobs.glob("[!.]*")] == [job_id]


@pytest.mark.parametrize(
    "module",
    ["torch.distributed.run", "own.evil", "cdp.workers.__init__", "cdp.workers.tr\u0430ining", "cdp.workers.search",
     "cdp.workers.evaluation", "cdp.jobs.supervisor", "cdp.workers.training.evil", ""],
)  # fmt: skip
def test_a_job_runs_the_worker_of_its_kind_and_nothing_else(workspace: Workspace, module: str) -> None:
    """``python -m torch.distributed.run FOLDER`` would run the ``__main__.py`` that lies there."""
    job_id = job(workspace, "training", {"query_set": "q", "retriever": "minilm"}, module=module)
    (workspace.job(job_id) / "__main__.py").write_text("print('here')")
    refused(workspace, job_id, "kind 'training'", repr(module))


def test_an_unknown_kind_is_refused(workspace: Workspace) -> None:
    job_id = job(workspace, "gift", {}, module="")
    told = run("jobs", "resume", job_id, code=2).stderr
    assert "kind 'gift'" in told
    left_alone(workspace, job_id)


TRAINING = {"query_set": "q", "retriever": "minilm"}
STUDY = {"query_sets": "q", "benchmarks": "b"}
OUTSIDE: dict[str, tuple[str, dict[str, str], str]] = {
    "a benchmark's folder": ("evaluation", {"retriever": "bm25", "benchmark": "PRIVATE"}, "benchmark"),
    "a benchmark while training": ("training", {**TRAINING, "benchmark": "PRIVATE"}, "benchmark"),
    "a system file as weights": ("training", {**TRAINING, "weights": "/etc/passwd"}, "weights"),
    "a process's environment": ("training", {**TRAINING, "weights": "/proc/self/environ"}, "weights"),
    "a file of the home folder": ("training", {**TRAINING, "weights": "~/.netrc"}, "weights"),
    "a path through it": ("training", {**TRAINING, "weights": "WORKSPACE/../private/queries.jsonl"}, "weights"),
    "a model's folder": ("index", {"retriever": "PRIVATE", "corpus": "c"}, "retriever"),
    "an import's file": ("import", {"path": "PRIVATE/queries.jsonl", "retriever": "x", "benchmark": "b"}, "path"),
    "a downloaded copy": ("download", {"benchmark": "scifact", "folder": "PRIVATE"}, "folder"),
    "one of a study's benchmarks": ("study", {**STUDY, "benchmarks": "b, PRIVATE:test"}, "benchmarks"),
    "a study's dev benchmark": ("study", {**STUDY, "dev": "PRIVATE:test"}, "dev"),
    "a study's retriever": ("study", {**STUDY, "retrievers": "minilm, PRIVATE"}, "retrievers"),
}


@pytest.mark.parametrize("attack", OUTSIDE)
def test_no_setting_leads_out_of_the_workspace(workspace: Workspace, private: Path, attack: str) -> None:
    kind, settings, setting = OUTSIDE[attack]
    texts = {"PRIVATE": str(private), "WORKSPACE": str(workspace.root)}
    config = dict(settings)
    for name, value in config.items():
        for word, text in texts.items():
            value = value.replace(word, text)
        config[name] = value
    job_id = job(workspace, kind, config)
    told = run("jobs", "resume", job_id, code=2).stderr
    assert f"setting {setting!r} names" in told
    assert told.count("\n") == 1
    left_alone(workspace, job_id)


def test_a_relative_path_is_read_from_where_the_job_says_it_was_submitted(workspace: Workspace, private: Path) -> None:
    config = {"retriever": "bm25", "benchmark": private.name}
    refused(workspace, job(workspace, "evaluation", config, cwd=str(private.parent)), "benchmark", private.name)


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
def test_who_names_the_folder_again_may_use_it(
    workspace: Workspace, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"retriever": "bm25", "benchmark": str(private)}
    job_id = job(workspace, "evaluation", config)
    run("jobs", "resume", job_id, "--allow", str(private.parent / "other"), code=2)
    left_alone(workspace, job_id)
    run("jobs", "resume", job_id, "--allow", str(private), "--wait")
    assert jobs.outcome(workspace, job_id)["ndcg@10"] == 100
    stopped = job(workspace, "index", {"retriever": str(private), "corpus": "c"})
    monkeypatch.setenv("CDP_ALLOWED_FOLDERS", str(private.parent))
    assert jobs.resume(workspace, stopped).attempt == 2
    room.wait(workspace, stopped)
    monkeypatch.delenv("CDP_ALLOWED_FOLDERS")
    permission.in_dashboard(shared=True)  # visitors decide nothing about the server's files
    with pytest.raises(NotAllowedError, match="retriever"):
        jobs.resume(workspace, stopped, allow=[str(private)])


def test_documents_and_key_go_to_no_address_of_the_strangers(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("CDP_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    source = tmp_path / "docs.jsonl"
    source.write_text(json.dumps({"_id": "1", "text": SECRET}) + "\n")
    run("corpus", "add", str(source), "--name", "docs")
    config = {"corpus": "docs", "generator": "openai", "model": "m", "base_url": listener.url}
    for kind in ("synthesis", "prompts"):
        own = {**config, "method": "diverse"} if kind == "synthesis" else config
        module = "cdp.workers.synthesis" if kind == "synthesis" else "cdp.workers.prompt_tuning"
        for key in (KEY, ""):  # without a key the documents would still go there
            monkeypatch.setenv("CDP_API_KEY", key)
            job_id = job(workspace, kind, own, module=module)
            told = run("jobs", "resume", job_id, code=2).stderr
            assert "base_url" in told
            assert listener.url in told
            left_alone(workspace, job_id)
        (workspace.jobs / job_id).rename(tmp_path / job_id)
    assert listener.keys == []


@pytest.mark.slow
def test_a_current_folder_that_came_with_the_workspace_is_not_imported_from(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Who looks around in an unpacked folder and starts a job there would run the modules that lie in it."""
    marker, outside = tmp_path / "ran", tmp_path / "beside"  # the second folder of the same archive
    for package in (workspace.root / "cdp", workspace.root / "numpy", outside / "json", outside / "cdp"):
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"open({str(marker)!r}, 'w').write({str(package)!r})")
    config = {"retriever": "bm25", "corpus": "none"}
    job_id = job(workspace, "index", config, cwd=str(outside))
    script = Path(sys.executable).with_name("cdp")
    command = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "cdp"]
    done = subprocess.run(
        [*command, "jobs", "resume", job_id], cwd=workspace.root, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    until(lambda: not room.view(workspace, job_id, with_size=False).active, "the job to end")
    assert not marker.exists(), marker.read_text()


@pytest.mark.slow
def test_neither_the_dashboard_nor_the_look_for_gpus_imports_from_the_current_folder(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = tmp_path / "ran"
    workspace.root.mkdir(exist_ok=True)
    for name in ("torch", "streamlit", "click"):
        (workspace.root / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').write({name!r})")
    monkeypatch.chdir(workspace.root)

    devices._from_torch.cache_clear()
    devices._from_torch()
    assert not marker.exists(), marker.read_text()

    command, environment = commands.dashboard(workspace.root, 8501, browser=False)
    done = subprocess.run([*command[:3], "--version"], env=environment, capture_output=True, text=True, check=True)
    assert "Streamlit" in done.stdout
    assert not marker.exists(), marker.read_text()


def test_the_id_in_a_specification_leads_nowhere_else(workspace: Workspace, tmp_path: Path) -> None:
    """Jobs were deleted, and their results written, where the specification said."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    job_id = job(workspace, "index", {"retriever": "bm25", "corpus": "c"}, id="../../kept")
    for command in (["delete", job_id, "--yes"], ["resume", job_id], ["stop", job_id], ["show", job_id]):
        assert "is not a job's specification" in run("jobs", *command, code=2).stderr
    assert (kept / "file").read_text() == "mine"
    assert [path.name for path in kept.iterdir()] == ["file"]


@pytest.fixture
def own_folder(private: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> str:
    """A job of this account that was stopped, with the folder of a benchmark outside the workspace."""
    monkeypatch.setattr(
        "cdp.jobs._start_supervisor", lambda _, folder, *__, **___: Status.load(folder).ended("stopped")
    )
    config = {"retriever": "bm25", "benchmark": str(private)}
    return room.submit(workspace, kind="evaluation", name="own", module="cdp.workers.evaluation", config=config)


def test_a_job_of_this_account_needs_no_permission_again(workspace: Workspace, own_folder: str) -> None:
    run("jobs", "resume", own_folder)
    assert jobs.show(workspace, own_folder).attempt == 2
    # Nor after the workspace was moved.
    moved = Workspace(workspace.root.rename(workspace.root.with_name("moved")))
    assert jobs.resume(moved, own_folder).attempt == 3


@pytest.mark.parametrize("change", ["config", "cwd", "secrets", "signature", "unsigned", "another job's"])
def test_an_edited_specification_is_a_strangers(
    workspace: Workspace, private: Path, own_folder: str, change: str
) -> None:
    path = workspace.job(own_folder) / "spec.json"
    spec = read_json(path)
    changes: dict[str, Any] = {
        "config": {**spec["config"], "top_k": 50}, "cwd": "/tmp", "secrets": ["CDP_API_KEY"],
        "signature": spec["signature"][::-1],
    }  # fmt: skip
    if change == "unsigned":
        del spec["signature"]
    elif change == "another job's":
        (workspace.job(own_folder)).rename(workspace.jobs / "evaluation-1")
        own_folder, path = "evaluation-1", workspace.jobs / "evaluation-1" / "spec.json"
        spec["id"] = own_folder
    else:
        spec[change] = changes[change]
    write_json(path, spec)
    refused(workspace, own_folder, "benchmark", f"--allow {private}")


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "5"])
def test_a_specification_of_another_shape_is_nobodys(workspace: Workspace, text: str) -> None:
    job_id = job(workspace, "training", TRAINING)
    (workspace.job(job_id) / "spec.json").write_text(text)
    assert not room.is_own(workspace.job(job_id))
    with pytest.raises(WorkspaceError, match="not a job's specification"):
        jobs.resume(workspace, job_id)


def test_every_place_to_allow_is_named_at_once(workspace: Workspace, private: Path) -> None:
    job_id = job(workspace, "study", {**STUDY, "benchmarks": f"b, {private}, {private.parent}/more"})
    refused(workspace, job_id, "benchmarks", f"--allow {private} --allow {private.parent}/more")
    job_id = job(workspace, "study", {**STUDY, "training": f"weights={private}/weights.csv"})
    assert "'weights' is not a setting" in run("jobs", "resume", job_id, code=2).stderr


def test_a_job_asks_for_keys_that_we_know_and_for_no_other_variable(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun: list[Mapping[str, str]] = []

    def begin(_: Workspace, folder: Path, __: object, ___: int, secrets: Mapping[str, str], **____: Any) -> None:
        begun.append(secrets)
        Status.load(folder).ended("stopped")

    monkeypatch.setattr("cdp.jobs._start_supervisor", begin)
    for name in (*address.KEYS, *address.URL_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    names = ["CDP_API_KEY", "HTTP_PROXY", "LD_PRELOAD", "GITHUB_TOKEN", "PYTHONPATH"]
    config = {
        "corpus": "c",
        "method": "diverse",
        "generator": "openai",
        "model": "m",
        "base_url": "http://127.0.0.1:9/v1",
    }
    job_id = job(workspace, "synthesis", config, secrets=names)
    assert jobs.missing_secrets(workspace, job_id) == ["CDP_API_KEY"]
    told = run("jobs", "resume", job_id, "--allow", config["base_url"], code=2).stderr
    assert "needs CDP_API_KEY, which is not set" in told
    jobs.resume(workspace, job_id, env_secrets=dict.fromkeys(names, "typed"), allow=[config["base_url"]])
    assert begun[0]["CDP_API_KEY"] == "typed"
    assert not set(names[1:]) & set(begun[0])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"device": {"processes": 100_000}}, "100000 processes"), ({"device": {"processes": -1}}, "-1 processes"),
     ({"device": {"count": 10**12}}, "GPUs"), ({"device": {"count": 10**30}}, "number of 31 digits"),
     ({"device": {"processes": float("inf")}}, "OverflowError"),
     ({"device": [1]}, "AttributeError"), ({"grace_s": float("nan")}, "grace_s is nan"),
     ({"grace_s": 1e9}, "grace_s is 1e+09"), ({"grace_s": -1}, "grace_s is -1"),
     ({"launcher": "sh"}, "launcher is 'sh'"),
     ({"after": ["../../../etc"]}, "it names '../../../etc'"), ({"after": [["x"]]}, "it names"),
     ({"secrets": ["A=B"]}, "it names 'A=B'"), ({"inputs": 3}, "TypeError")],
)  # fmt: skip
def test_a_specification_out_of_range_is_one_failed_job(workspace: Workspace, wrong: dict[str, Any], told: str) -> None:
    good = job(workspace, "index", {"retriever": "bm25", "corpus": "c"})
    (workspace.job(good)).rename(workspace.jobs / "index-0")
    path = workspace.jobs / "index-0" / "spec.json"
    write_json(path, {**read_json(path), "id": "index-0"})
    bad = job(workspace, "index", {"retriever": "bm25", "corpus": "c"}, **wrong)
    listed = {view.id: view for view in jobs.list_jobs(workspace)}
    assert (str(listed["index-0"].state), str(listed[bad].state)) == ("stopped", "failed")
    assert told in (listed[bad].failure or {})["message"]
    assert told in run("jobs", "resume", bad, code=2).stderr
    assert not (workspace.job(bad) / "supervisor.log").exists()


@pytest.mark.parametrize("kind", ["../../x", "a/b", "", {"a": {"a": 1}}, "x" * 400])
def test_a_jobs_kind_is_no_path(workspace: Workspace, kind: Any) -> None:
    """Its results lie in a file of that name."""
    bad = job(workspace, "index", {"retriever": "bm25", "corpus": "c"})
    path = workspace.job(bad) / "spec.json"
    write_json(path, {**read_json(path), "kind": kind})
    (listed,) = jobs.list_jobs(workspace)
    assert str(listed.state) == "failed"
    assert "its kind is" in (listed.failure or {})["message"]
    assert "its kind is" in run("jobs", "show", bad, code=2).stderr


def test_a_job_starts_no_more_processes_than_the_machine_is_good_for(workspace: Workspace) -> None:
    config = {"query_set": "q", "retriever": "minilm"}
    job_id = job(workspace, "training", config, launcher="accelerate", device={"processes": 4000})
    refused(workspace, job_id, "4,000 processes", "this machine is good for")


def test_a_strangers_ticket_keeps_no_device(workspace: Workspace) -> None:
    """A job that a cluster "has yet to start" counts as alive, and would hold the only place for ever."""
    held = job(workspace, "index", {"retriever": "bm25", "corpus": "c"})
    status = workspace.job(held) / "status.json"
    write_json(status, {**read_json(status), "phase": "submitted", "cluster": "http://127.0.0.1:9"})
    queue = Queue(workspace)
    ticket = queue.folder / f"{1:020d}.running.cpu.{held}.json"
    write_json(ticket, {"request": {"processes": "many"}, "granted": ["cpu"]})
    queue.add(2, "index-2", room.DeviceRequest())
    assert queue.try_take("index-2", slots=1, gpus=[]) == ("cpu",)
    assert not ticket.exists()


@pytest.mark.usefixtures("jobs_here")
def test_no_request_goes_to_a_cluster_that_only_the_workspace_names(
    workspace: Workspace, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither for a new job or a resumed one, nor to look at one that the cluster is said to have."""
    asked: list[str] = []
    monkeypatch.setattr(RayLauncher, "__init__", lambda _, address: asked.append(address))
    monkeypatch.setattr(RayLauncher, "end_of", lambda *_: "")
    monkeypatch.setattr(RayLauncher, "stop", lambda *_: None)
    strange = listener.url.removesuffix("/v1")
    job_id = job(workspace, "index", {"retriever": "bm25", "corpus": "none"})
    status = workspace.job(job_id) / "status.json"
    ended = read_json(status)
    signed = place.signature("http://own:8265")
    for signature in ("", signed, None, 3):
        write_json(workspace.root / place.FILE, {"address": strange, "signature": signature})
        for words in (["jobs", "resume", job_id], ["cluster", "show"]):
            told = run(*words, code=2).stderr
            assert strange in told
            assert "cluster use" in told
        with pytest.raises(ConfigError, match="not confirmed by this account"):
            room.submit(workspace, kind="index", name="new", module="cdp.workers.index", config={})
        left_alone(workspace, job_id)
        assert not clusters.trouble(workspace)[0]
        assert strange in clusters.trouble(workspace)[1]

        write_json(status, {**ended, "phase": "submitted", "cluster": strange, "signature": signature})
        for mode in ("", "CDP_READ_ONLY"):
            if mode:
                permission.in_dashboard()
                monkeypatch.setenv(mode, "1")
            monkeypatch.setitem(room._asked, job_id, -1000.0)
            assert str(jobs.show(workspace, job_id).state) == "queued"
            monkeypatch.setattr(permission, "_declared", None)
        monkeypatch.delenv("CDP_READ_ONLY")
        assert str(jobs.stop(workspace, job_id).state) == "stopped"
        assert asked == []
        write_json(status, ended)
        (workspace.job(job_id) / "stop.request").unlink()
    assert listener.keys == []

    # A person here decides: for it, or for this machine.
    place.choose(workspace, strange)
    assert clusters.setting(workspace) == strange
    clusters.use(workspace, "here")
    jobs.resume(workspace, job_id)
    assert asked == []


def test_a_cluster_is_chosen_only_where_a_secret_can_be_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(ConfigError, match="keep a secret"):
        place.choose(workspace, "http://own:8265")
    place.choose(workspace, "")
    assert clusters.setting(workspace) == ""


def evaluated_on(workspace: Workspace, benchmark: str, **more: Any) -> list[str]:
    """Evaluations of two retrievers that say that they are on this benchmark."""
    for number, retriever in enumerate(("one", "two")):
        content = add_evaluation(workspace, f"evaluate-{number}", retriever, values={"q": number / 2, "1": 0.5})
        content["benchmark"] |= {"name": benchmark, "folder": benchmark}
        write_json(workspace.job(f"evaluate-{number}") / "results" / "evaluation.json", {**content, **more})
    return ["one", "two"]


@pytest.mark.slow
def test_results_lead_to_no_folder_that_who_looks_may_not_read(
    workspace: Workspace, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated_on(workspace, str(private), settings={"study": "s", "key": f"../../../../{private.name}/key"})
    with pytest.raises(InputError, match="cannot be a name"):
        records.load(workspace.job("evaluate-0"), f"../../../../{private.name}/key")
    permission.in_dashboard(shared=True)

    def texts() -> set[str]:
        found = differences.compare(workspace, "one")
        assert differences.unjudged(workspace, found) == []
        return {query.text for query in differences.per_query(workspace, found, found.rows[1])}

    assert texts() == {""}
    monkeypatch.setenv("CDP_READ_ONLY", "1")
    assert texts() == {""}
    monkeypatch.delenv("CDP_READ_ONLY")
    monkeypatch.setenv("CDP_ALLOWED_FOLDERS", str(private))
    assert SECRET in texts()


def test_labels_are_written_into_the_workspace_alone(workspace: Workspace, private: Path) -> None:
    """A subset has the labels of the benchmark that its manifest names, and a name is no path."""
    folder = workspace.benchmarks / "subset"
    shutil.copytree(private, folder)
    about = {"of_hash": "", "split": "test", "queries": 1, "documents": 1, "seed": 0}
    for of in ("../../private", str(private), "..", "a\x00b", ""):
        manifests.write(folder, Manifest(subset=Subset(of=of, **about)))
        assert judged.whole(folder) == folder
    manifests.write(folder, Manifest(subset=Subset(of="whole", **about)))
    assert judged.whole(folder) == workspace.benchmarks / "whole"


@pytest.mark.parametrize("member", ["PRIVATE", "../private", "~", "..", "~root", "a/b"])
def test_a_project_fills_in_no_folder(workspace: Workspace, private: Path, member: str) -> None:
    """Commands take a project's only benchmark where none is named."""
    member = member.replace("PRIVATE", str(private))
    about = {"id": "p", "name": "p", "created": "2026-01-01T00:00:00+00:00", "corpora": [], "benchmarks": [member]}
    write_json(workspace.project("p") / "project.json", {"schema": 1, **about})
    write_json(workspace.projects / "default.json", {"project": "p"})
    run("evaluate", "bm25", "--project", "p", code=2)
    assert not list(workspace.jobs.glob("[!.]*"))
    assert "no id" in projects.damaged(workspace)[0]
