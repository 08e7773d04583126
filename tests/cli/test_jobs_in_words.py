"""The terminal tells of jobs in the words of the page; jobs are cloned and deleted from it as well."""

from __future__ import annotations

import dataclasses
import io

import pytest

from cdp import cli
from cdp.base.text import size
from cdp.base.workspace import Workspace, append_jsonl, write_json
from cdp.cli import answers
from cdp.jobs import JobView, State
from cdp.services import jobs
from tests.pages.support import ended_job


@pytest.fixture
def failed(workspace: Workspace) -> JobView:
    failure = {"kind": "disk", "message": "The disk is full.", "hint": "Free some space.", "log_tail": ["step 3"]}
    ended_job(workspace, "training-1", "training", {}, outcome="failed", failure=failure)
    return jobs.show(workspace, "training-1")


def running(view: JobView, **values: object) -> JobView:
    whole = {"state": State.RUNNING, "phase": "training", "done": 250, "total": 1000, "unit": "steps", "eta_s": 90.0}
    return dataclasses.replace(view, **{**whole, "failure": None, "message": "", **values})  # type: ignore[arg-type]


def test_a_job_ends_in_the_words_of_the_page(failed: JobView, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["jobs", "wait", "training-1"]) == 1
    said = capsys.readouterr().out
    assert jobs.sentence(failed) in said
    message, hint, lines = jobs.failure(failed)
    assert all(part in said for part in (message, hint, *lines))
    assert cli.main(["jobs", "show", "training-1"]) == 0
    assert jobs.sentence(failed) in capsys.readouterr().out
    (failed.folder / "worker.log").write_text("step 1\nstep 2\n", encoding="utf-8")
    assert cli.main(["jobs", "logs", "training-1"]) == 0
    assert capsys.readouterr().out == "step 1\nstep 2\n"


def test_progress_has_the_time_left_and_the_newest_figures(failed: JobView) -> None:
    line = answers.progress_line(running(failed), {"loss": 0.5, "learning_rate": 0.005, "ndcg_at_10": 41.5})
    assert jobs.doing(running(failed)) in line
    assert "250 of 1,000 steps · 25% · about 1 min 30 s left" in line
    assert line.endswith("loss 0.5000 · learning rate 5.00e-03 · dev NDCG@10 41.50%")
    waiting = running(failed, state=State.QUEUED, position=3, total=0)
    assert answers.progress_line(waiting) == "queued · place 3 · It waits for its turn: 2 jobs are before it."


def test_what_answers_warn_of_is_said_while_the_job_runs(failed: JobView) -> None:
    judging = running(
        failed, phase="judging", message="50 of 50 grades are 3: this judge hardly tells documents apart."
    )
    for said in (jobs.sentence(judging), answers.job(judging), answers.progress_line(judging)):
        assert said.count(judging.message) == 1
    assert "step" not in jobs.sentence(running(failed, message="step 3"))


def test_what_a_server_does_not_take_is_a_line_of_its_job(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ended_job(workspace, "evaluation-1", "evaluation", {"retriever": "api:m"}, outcome="failed")
    write_json(folder / "endpoints.json", {"m at http://h/v1": {"refused": [], "texts": 10}})
    line = "m at http://h/v1 takes at most 10 texts a request: requests are sent accordingly."
    assert cli.main(["jobs", "show", "evaluation-1"]) == 0
    assert f"note: {line}" in capsys.readouterr().out
    assert cli.main(["jobs", "wait", "evaluation-1"]) == 1
    assert f"note: {line}" in capsys.readouterr().out


def test_the_figures_come_from_the_live_metrics(
    failed: JobView, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    append_jsonl(workspace.job(failed.id) / "metrics.jsonl", [{"step": 1, "attempt": 1, "loss": 1.25}])
    answers.ProgressLine(lambda: jobs.latest(workspace, failed.id))(running(failed))
    assert "loss 1.2500" in capsys.readouterr().err


@pytest.mark.slow
def test_deleting_asks_first(
    failed: JobView, workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert cli.main(["jobs", "delete", failed.id]) == 2
    assert "--yes" in capsys.readouterr().err
    assert failed.folder.exists()
    assert cli.main(["jobs", "delete", failed.id, "--yes"]) == 0
    assert not failed.folder.exists()


def test_a_size_keeps_three_digits_up_to_exabytes() -> None:
    assert [size(n) for n in (812, 12.4e6, 3.4e12, 2.0434e19)] == ["812 B", "12.4 MB", "3.4 TB", "20.4 EB"]


def test_tables_and_figures_say_what_they_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["principle", "threshold"]) == 0
    assert "points per content word: +2.85 (95% +1.32 to +4.38)" in capsys.readouterr().out
    assert cli.main(["principle", "correlation"]) == 0
    said = capsys.readouterr().out
    assert "diverse minus paraphrase, at the same Q/Doc" in said
    assert "_" not in said
