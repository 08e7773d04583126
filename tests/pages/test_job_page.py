"""The Jobs page: each state in words, what a person can do in it, and long metrics that stay light."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from cdp.base.config import SynthesisConfig
from cdp.base.locks import wait_for_lock
from cdp.base.workspace import Workspace, append_jsonl, now, read_json, write_json
from cdp.cli.declare import find
from cdp.jobs import JobSpec, submit
from cdp.jobs.records import Status, load_spec
from cdp.services import jobs, queries
from cdp.ui import jobs as job_views
from cdp.ui.shell.tables import md
from tests.jobs.support import declare
from tests.pages.conftest import Open
from tests.pages.support import ended_job, trained


def shown(at: AppTest) -> str:
    return "\n".join(str(e.value) for group in (at.markdown, at.caption, at.error) for e in group)


def with_status(workspace: Workspace, job_id: str, **status: object) -> None:
    path = workspace.job(job_id) / "status.json"
    write_json(path, {**read_json(path), **status})


@pytest.mark.parametrize("kind", ["synthesis", "judging"])
def test_what_a_person_should_know_of_the_answers_stands_with_the_job(
    open_page: Open, workspace: Workspace, kind: str
) -> None:
    """A judge of one grade, prompts that a server cuts, answers that were cut off."""
    config = {"corpus": "c", "generator": "openai", "model": "m"} | ({"queries": "q.txt"} if kind == "judging" else {})
    folder = ended_job(workspace, f"{kind}-1", kind, config, outcome="finished")
    note = "3 prompts: the endpoint counted far fewer tokens than were sent."
    write_json(folder / "results" / f"{kind}.json", {"id": "x", "benchmark": "x", "query_set": "x", "notes": [note]})
    at = open_page("jobs", job=f"{kind}-1")
    assert not at.exception
    assert md(note) in shown(at)


def test_an_answer_leads_to_where_it_stands_and_draws_no_line_through_its_trainings(
    open_page: Open, workspace: Workspace
) -> None:
    """One number per training was drawn as a curve over steps."""
    folder = ended_job(workspace, "answer-1", "answer", {"corpus": "c", "benchmark": "b"}, outcome="finished")
    for training in range(1, 4):
        append_jsonl(folder / "metrics.jsonl", {"step": training, "ndcg_at_10": 50.0 + training})
    at = open_page("jobs", job="answer-1")
    assert at.button(key="next_answer-1").label == "See what it decides"
    assert not at.metric
    assert not at.get("plotly_chart")


@pytest.mark.parametrize("outcome", ["finished", "failed"])
@pytest.mark.parametrize("kind", ["synthesis", "evaluation", "mining"])
def test_what_a_server_does_not_take_stands_with_the_job(
    open_page: Open, workspace: Workspace, kind: str, outcome: str
) -> None:
    config = {"retriever": "bm25", "benchmark": "b"} if kind == "evaluation" else {"corpus": "c"}
    folder = ended_job(workspace, f"{kind}-1", kind, config, outcome=outcome)
    write_json(folder / "endpoints.json", {"m at http://h/v1": {"refused": [], "texts": 10}})
    at = open_page("jobs", job=f"{kind}-1")
    assert not at.exception
    assert "takes at most 10 texts a request" in shown(at)


@pytest.mark.parametrize(
    ("outcome", "message", "said"),
    [
        ("finished", "", "Finished after 12 s."),
        ("stopped", "It was stopped; what it had is saved.", "what it had is saved. Its model is kept. Resume it"),
        ("failed", "", "It failed after 12 s (out of GPU memory)."),
    ],
)
def test_an_ended_job_says_how_it_ended(
    open_page: Open, workspace: Workspace, outcome: str, message: str, said: str
) -> None:
    failure = {"kind": "cuda_out_of_memory", "message": "CUDA out of memory.", "hint": "Less.", "log_tail": ["a", "b"]}
    folder = ended_job(
        workspace,
        "training-1",
        "training",
        {"query_set": "q", "retriever": "minilm"},
        outcome=outcome,
        failure=failure if outcome == "failed" else None,
    )
    with_status(workspace, "training-1", message=message)
    if outcome == "stopped":
        (folder / "model").mkdir()
    at = open_page("jobs", job="training-1")
    view = jobs.show(workspace, "training-1")
    assert said in jobs.sentence(view)
    assert md(jobs.sentence(view)) in shown(at)
    assert (f"resume_{view.id}" in {b.key for b in at.button}) == (outcome != "finished")
    assert not any("Queue position" in d.value.columns for d in at.dataframe)  # nobody waits


def test_a_waiting_job_shows_its_place(open_page: Open, workspace: Workspace) -> None:
    ended_job(workspace, "training-1", "training", {})
    ended_job(workspace, "training-2", "training", {})
    locks = []
    for number, job_id in enumerate(("training-1", "training-2"), 1):
        write_json(workspace.job(job_id) / "status.json", {"phase": "queued", "attempt": 1})
        write_json(workspace.root / "queue" / f"{number:020d}.waiting.cpu.{job_id}.json", {})
        locks.append(wait_for_lock(workspace.job(job_id) / "alive.lock", "it", wait_s=1))
    try:
        at = open_page("jobs", job="training-2")
        assert "1 job is before it" in shown(at)
        table = next(d.value for d in at.dataframe if "Queue position" in d.value.columns)
        assert sorted(table["Queue position"]) == [1, 2]
        assert [view.position for view in jobs.list_active(workspace)] == [2, 1]
    finally:
        for lock in locks:
            os.close(lock)
    assert jobs.list_active(workspace) == []


def test_a_job_with_a_key_asks_for_it_again(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CDP_API_KEY", raising=False)
    folder = ended_job(workspace, "synthesis-1", "synthesis", {"corpus": "c"}, outcome="stopped")
    write_json(
        folder / "spec.json",
        {**read_json(folder / "spec.json"), "secrets": ["CDP_API_KEY"], "module": "tests.jobs.workers.secret"},
    )
    declare(monkeypatch, "synthesis", "tests.jobs.workers.secret", SynthesisConfig)
    assert jobs.missing_secrets(workspace, "synthesis-1") == ["CDP_API_KEY"]
    at = open_page("jobs", job="synthesis-1")
    assert at.button(key="resume_synthesis-1").disabled
    at.text_input(key="secret_CDP_API_KEY_synthesis-1").set_value("hush").run()
    at.button(key="resume_synthesis-1").click().run()
    assert not at.exception
    assert not at.error, at.error[0].proto
    view = jobs.wait(workspace, "synthesis-1")
    assert view.attempt == 2
    assert load_spec(workspace, "synthesis-1").secrets == ("CDP_API_KEY",)
    for file in (p for p in folder.rglob("*") if p.is_file()):
        assert b"hush" not in file.read_bytes(), file


def beginning(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, str]]:
    """Jobs that begin are written down, by the environment that their workers would get, and end at once."""
    begun: list[Mapping[str, str]] = []

    def begin(
        workspace: Workspace, folder: Path, spec: JobSpec, lock: int, secrets: Mapping[str, str], **_: Any
    ) -> None:
        begun.append(secrets)
        Status.load(folder).ended("stopped")

    monkeypatch.setattr("cdp.jobs._start_supervisor", begin)
    return begun


def test_a_job_of_this_account_goes_on_with_its_folder_its_address_and_its_key(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A dashboard may not name any folder; one that the command line started a job with it may go on with."""
    begun = beginning(monkeypatch)
    private = str(tmp_path_factory.mktemp("private"))
    settings = {"corpus": "c", "generator": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    started = [
        submit(workspace, kind=kind, name=kind, module=jobs.kinds()[kind].module, config=config, env_secrets=secrets)
        for kind, config, secrets in (
            ("evaluation", {"retriever": "bm25", "benchmark": private}, {}),
            ("synthesis", settings, {"CDP_API_KEY": "typed-before"}),
        )
    ]
    assert len(begun) == 2
    for job_id, key in zip(started, ("", "typed-again"), strict=True):
        at = open_page("jobs", job=job_id)
        assert [box.key for box in at.text_input if "secret" in str(box.key)] == [
            f"secret_CDP_API_KEY_{job_id}"
        ] * bool(key)
        if key:
            at.text_input(key=f"secret_CDP_API_KEY_{job_id}").set_value(key).run()
        at.button(key=f"resume_{job_id}").click().run()
        assert not at.error
        assert begun[-1].get("CDP_API_KEY", "") == key
    assert len(begun) == 4

    # A shared dashboard's visitors gain nothing by it.
    monkeypatch.setenv("CDP_SHARED", "1")
    for job_id in started:
        at = open_page("jobs", job=job_id)
        if job_id == started[1]:
            at.text_input(key=f"secret_CDP_API_KEY_{job_id}").set_value("typed").run()
        at.button(key=f"resume_{job_id}").click().run()
        assert md("CDP_ALLOWED_") in shown_errors(at)
    assert len(begun) == 4


def shown_errors(at: AppTest) -> str:
    return "\n".join(f"{error.proto.title} {error.proto.body}" for error in at.error)


@pytest.mark.parametrize("mode", ["local", "shared", "read-only"])
def test_a_strangers_job_shows_what_it_names_and_asks(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory,
    mode: str,
) -> None:  # fmt: skip
    begun = beginning(monkeypatch)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    if mode != "local":
        monkeypatch.setenv("CDP_SHARED" if mode == "shared" else "CDP_READ_ONLY", "1")
    folder = ended_job(
        workspace, "study-1", "study", outcome="stopped",
        config={"query_sets": "q", "benchmarks": f"{home}/a, {home}/b", "methods": "diverse", "corpus": "c",
                "generator": "openai", "model": "m", "base_url": "http://evil.example/v1"},
    )  # fmt: skip
    spec = read_json(folder / "spec.json")
    write_json(folder / "spec.json", {**spec, "secrets": ["CDP_API_KEY", "HTTP_PROXY", "LD_PRELOAD", "GITHUB_TOKEN"]})
    at = open_page("jobs", job="study-1")
    if mode != "local":
        assert md("outside this workspace. The operator can allow it: ") in shown(at)
        assert md("jobs resume study-1 --allow") in shown(at)
        assert "resume_study-1" not in {b.key for b in at.button}
        return

    for name, value in (
        ("Benchmarks", f"{home}/a"),
        ("Benchmarks", f"{home}/b"),
        ("Base url", "http://evil.example/v1"),
    ):
        assert f"- {name}: {md(repr(value))}\n" in f"{shown(at)}\n"
    assert md("--allow") not in shown(at), "a page has no such field"
    assert [box.label for box in at.text_input if "secret" in str(box.key)] == ["API key"]
    button = at.button(key="resume_study-1")
    assert (button.label, button.disabled) == ("Allow and resume", True)
    at.text_input(key="secret_CDP_API_KEY_study-1").set_value("for-evil").run()
    assert not begun
    at.button(key="resume_study-1").click().run()
    assert not at.error, shown_errors(at)
    assert [set(given) - {"CDP_BASE_URL", "CDP_API_KEY", "OPENAI_API_KEY"} for given in begun] == [set()]
    assert begun[0]["CDP_API_KEY"] == "for-evil"


def test_a_strangers_job_that_this_dashboard_may_not_allow_says_why(open_page: Open, workspace: Workspace) -> None:
    folder = ended_job(
        workspace, "evaluation-1", "evaluation", {"retriever": "bm25", "benchmark": "/srv/private"}, outcome="stopped"
    )
    for change, words in (
        ({}, "CDP_ALLOWED_FOLDERS"),
        ({"module": "torch.distributed.run"}, "not submitted by this program"),
    ):
        write_json(folder / "spec.json", {**read_json(folder / "spec.json"), **change})
        at = open_page("jobs", job="evaluation-1")
        assert md(words) in shown(at)
        assert "resume_evaluation-1" not in {b.key for b in at.button}
    assert not (folder / "supervisor.log").exists()


def test_the_table_of_jobs_has_no_empty_columns(open_page: Open, workspace: Workspace) -> None:
    ended_job(workspace, "training-1", "training", {})
    at = open_page("jobs")
    assert list(at.dataframe[-1].value.columns) == ["State", "Job", "Kind", "Duration", "Created"]
    failure = {"kind": "data", "message": "No pairs are left.", "hint": "Write more.", "log_tail": []}
    ended_job(workspace, "training-2", "training", {}, outcome="failed", failure=failure)
    assert list(at.run().dataframe[-1].value["Error"]) == ["No pairs are left.", ""]


def test_deleting_shows_how_much_goes(open_page: Open, workspace: Workspace) -> None:
    folder = ended_job(workspace, "training-1", "training", {})
    (folder / "model").mkdir()
    (folder / "model" / "weights").write_bytes(bytes(2_500_000))
    at = open_page("jobs", job="training-1")
    assert "Delete this job and everything it created (2.5 MB)?" in shown(at)
    at.button(key="delete_training-1").click().run()
    assert not folder.exists()


def test_the_command_that_runs_it_again_is_shown(open_page: Open, filled: Workspace) -> None:
    query_set = queries.list_query_sets(filled)[1].id
    trained(filled, "training-1", query_set, name="first", epochs=7, weighting="cw")
    assert jobs.again(jobs.show(filled, "training-1")) == [
        f"python -m cdp train {query_set} --weighting cw --epochs 7 --wait"
    ]
    ended_job(filled, "synthesis-1", "synthesis", {"corpus": "c", "per_doc": 3})
    at = open_page("jobs", job="synthesis-1")
    at.session_state["command-jobs-show"] = True
    at.run()
    assert "cdp queries generate --corpus c --per-doc 3 --wait" in "".join(code.value for code in at.code)


def test_the_commands_of_a_model_are_those_of_the_command_line(open_page: Open, filled: Workspace) -> None:
    trained(filled, "training-1", queries.list_query_sets(filled)[0].id, name="first")
    folder = filled.job("training-1")
    (folder / "model" / "modules.json").touch()
    file = folder / "results" / "training.json"
    write_json(file, {**read_json(file), "corpus": "bees"})
    at = open_page("jobs", job="training-1")
    at.session_state["command-jobs-show"] = True
    at.run()
    shown = [line for code in at.code for line in code.value.splitlines() if line.startswith("python -m cdp ")]
    assert "python -m cdp serve training-1 --corpus bees" in shown

    for line in shown:  # each is one that the command line takes
        found = find(shlex.split(line)[3:])
        assert not isinstance(found, int)
        command, words = found
        command.read(words)


@pytest.fixture
def trained_job(workspace: Workspace) -> str:
    ended_job(workspace, "training-1", "training", {})
    return "training-1"


def write_metrics(workspace: Workspace, n: int) -> Path:
    path = workspace.job("training-1") / "metrics.jsonl"
    lines = ({"step": s, "attempt": 1, "loss": 5.0 if s == n // 2 else 1.0 / s, "lr": "x"} for s in range(1, n + 1))
    append_jsonl(path, lines)
    return path


def test_a_resume_replaces_what_came_after_its_checkpoint(workspace: Workspace, trained_job: str) -> None:
    path = write_metrics(workspace, 10)
    assert jobs.latest(workspace, trained_job) == {"loss": 0.1}
    with open(path, "ab") as file:
        file.write(b'{"step": 11, "attempt": 1, "lo')
    assert jobs.latest(workspace, trained_job) == {"loss": 0.1}, "a torn line is no news"
    append_jsonl(path, [{"step": 6, "attempt": 2, "loss": 9.0}, {"step": 7, "attempt": 2, "loss": 8.0}])
    points = jobs.curve(workspace, trained_job, "loss")
    assert list(points) == [1, 2, 3, 4, 5, 6, 7]
    assert list(points.values())[-2:] == [9.0, 8.0]
    path.unlink()
    write_metrics(workspace, 3)
    assert len(jobs.curve(workspace, trained_job, "loss")) == 3, "another file of the same name is read anew"


def test_the_tab_tells_of_jobs_that_ended_until_the_person_does_something(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing told of a finished job: the title of a tab in the background never changed."""
    titles: list[str] = []
    monkeypatch.setattr(st, "set_page_config", lambda **config: titles.append(config["page_title"]))
    locks: dict[str, int] = {}

    def ticket(job: str) -> Path:
        return workspace.root / "queue" / f"{int(job[-1]):020d}.waiting.cpu.{job}.json"

    def at_work(job: str) -> None:
        ended_job(workspace, job, "training", {})
        write_json(workspace.job(job) / "status.json", {"phase": "queued", "attempt": 1})
        write_json(ticket(job), {})
        locks[job] = wait_for_lock(workspace.job(job) / "alive.lock", "it", wait_s=1)

    def ends(job: str, outcome: str) -> None:
        ended_job(workspace, job, "training", {}, outcome=outcome)
        os.close(locks.pop(job))
        ticket(job).unlink()

    for name in ("training-1", "training-2", "training-3"):
        at_work(name)
    at = open_page("home")
    assert titles[-1] == "CDP Studio"
    ends("training-1", outcome="finished")
    at.session_state[job_views.BY_ITSELF] = True
    at.run()
    assert titles[-1] == "✓ 1 finished · CDP Studio"
    ends("training-2", outcome="finished")
    at.session_state[job_views.BY_ITSELF] = True
    at.run()
    assert titles[-1] == "✓ 2 finished · CDP Studio"
    ends("training-3", outcome="failed")
    at.session_state[job_views.BY_ITSELF] = True
    at.run()
    assert titles[-1] == "✗ 1 failed · CDP Studio"
    at.run()
    assert titles[-1] == "CDP Studio", "the person came back"


def test_a_tab_that_began_in_silence_notices_what_others_start_end_and_delete(
    open_page: Open, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second tab had to be reloaded, and its title told of nothing that was not at work when it was opened."""
    titles: list[str] = []
    monkeypatch.setattr(st, "set_page_config", lambda **config: titles.append(config["page_title"]))
    at = open_page("jobs")
    assert "Nothing has run yet" in shown(at)
    seen = job_views._state(workspace, [])

    folder = ended_job(workspace, "evaluation-1", "evaluation", {"retriever": "bm25"}, name="as short as this")
    with_status(workspace, folder.name, ended=now())
    assert job_views._state(workspace, []) != seen, "it began and ended between two looks"

    with monkeypatch.context() as look:
        look.setattr(job_views, "draw_again", lambda: titles.append("drawn again"))
        job_views._strip(workspace, seen)
    assert "drawn again" in titles

    at.session_state[job_views.BY_ITSELF] = True
    at.run()
    assert "as short as this" in shown(at)
    assert titles[-1] == "✓ 1 finished · CDP Studio"

    seen = job_views._state(workspace, [])
    jobs.delete(workspace, "evaluation-1")
    assert job_views._state(workspace, []) != seen
    at.session_state[job_views.BY_ITSELF] = True
    at.run()
    assert "Nothing has run yet" in shown(at)
    assert not at.exception


def test_choosing_a_prompt_and_mining_hard_negatives_start_from_the_page(
    filled: Workspace, open_page: Open, in_process: Callable[[], list[str]]
) -> None:
    at = open_page("jobs")
    assert {"Tuning prompts", "Mining hard negatives"} <= set(at.selectbox(key="start_kind").options)
    at.selectbox(key="start_kind").select("mining").run(timeout=60)
    assert at.button(key="start_mining_button")
    assert not at.exception
    at.selectbox(key="start_kind").select("prompts").run(timeout=60)
    assert not at.exception
    at.button(key="start_prompts_button").click().run(timeout=60)
    assert not at.exception
    assert {view.kind for view in jobs.list_jobs(filled)} >= {"prompts", "synthesis"}


def test_nothing_is_offered_whose_inputs_are_not_there(workspace: Workspace, open_page: Open) -> None:
    at = open_page("jobs")
    assert not at.error
    assert not [box for box in at.selectbox if box.key == "start_kind"]
