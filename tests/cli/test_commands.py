"""The commands as such: help, exit codes, JSON, and each of the five steps on the demo collection."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdp import cli
from cdp.base.workspace import Workspace
from cdp.cli.declare import all_commands
from tests.cli.support import answer, run
from tests.jobs.support import start, until_state
from tests.support import REPOSITORY, in_background
from tests.support_models import tiny_static


@pytest.mark.slow
def test_every_command_has_a_help_and_takes_json(capsys: pytest.CaptureFixture[str]) -> None:
    for name in all_commands():
        with pytest.raises(SystemExit) as ended:
            cli.main([*name.split(), "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out, name


def test_no_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "corpus" in capsys.readouterr().out
    assert cli.main(["corpus"]) == 2
    assert "add" in capsys.readouterr().out


@pytest.mark.slow
def test_empty_workspace(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["corpus", "list"],
        ["queries", "list"],
        ["jobs", "list"],
        ["results", "list"],
    ):
        assert cli.main(words) == 0
        assert capsys.readouterr().out.strip().lower().startswith("no "), words
        assert cli.main([*words, "--json"]) == 0
        assert capsys.readouterr().out.strip() == "[]", words
    assert not workspace.corpora.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("jobs_here")
def test_the_five_steps_on_the_demo(workspace: Workspace, tmp_path: Path) -> None:
    assert len(answer("demo")["loaded"]) == 6
    assert answer("demo")["loaded"] == []

    preview = answer("queries", "preview", "--corpus", "demo", "--generator", "recorded", "--per-doc", "8")
    assert {name: len(m["queries"]) for name, m in preview["methods"].items()} == {"diverse": 8, "paraphrase": 8}
    assert preview["methods"]["diverse"]["self_bleu"] < preview["methods"]["paraphrase"]["self_bleu"]

    generated = answer("queries", "generate", "--corpus", "demo", "--per-doc", "3", "--limit", "12", "--wait")
    assert generated["state"] == "finished"
    made = next(q for q in answer("queries", "list") if q["generator"] == "template")
    assert made["n_documents"] == 12
    assert 30 <= made["n_queries"] <= 36  # a document that gives little gets fewer

    quick = answer("metrics", "demo diverse", "--human", "demo paraphrase", "--quick")
    assert {"self_bleu", "len_sim", "cw"} <= {value["name"] for value in quick["measures"]}

    advice = answer("cw", "recommend", "--benchmark", "demo")
    assert advice["level"] == "test"
    assert advice["interval"][0] < advice["mean_cw"] < advice["interval"][1]

    start = str(tiny_static(tmp_path / "tiny"))
    trained = answer("train", "demo diverse", "--retriever", start, "--weighting", "cw", "--wait")
    assert trained["state"] == "finished"
    for retriever, least in (("bm25", 50), (trained["id"], 5)):
        evaluated = answer("evaluate", retriever, "--benchmark", "demo", "--wait")
        assert evaluated["state"] == "finished"
        assert least < evaluated["ndcg@10"] < 100
    rows = answer("results", "compare", "--baseline", "bm25")["rows"]
    assert {"bm25", trained["id"]} <= {row["retriever_id"] for row in rows}
    table = run("results", "compare", "--baseline", "bm25", "--format", "csv").stdout.splitlines()
    assert len(table) == 1 + len(rows)
    assert table[0].startswith("benchmark,split,protocol,retriever,")


@pytest.mark.slow
def test_ctrl_c_leaves_the_job_running_says_so_and_ends_with_130(workspace: Workspace) -> None:
    """So does SIGTERM, which alone ends a command in the background of a script."""
    job = start(workspace, steps=60, hold_at=5)
    until_state(workspace, job, "running")
    command = [sys.executable, "-m", "cdp", "jobs", "wait", job]
    for words, number in ((command, signal.SIGINT), (in_background(*command), signal.SIGTERM)):
        waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY)
        try:
            assert waiting.stderr is not None
            assert waiting.stderr.read(1), "it shows the progress of the job that it waits for"
            waiting.send_signal(number)
            _, said = waiting.communicate(timeout=60)
        finally:
            waiting.kill()
        assert waiting.returncode == 130, "in a shell, a --wait && b does not go on to b"
        assert f"{job} goes on in the background. Follow: jobs wait {job} · stop: jobs stop {job}" in said
    assert answer("jobs", "show", job)["state"] in ("running", "queued")
    run("jobs", "stop", job)
    run("jobs", "wait", job, code=1)
    assert answer("jobs", "show", job)["state"] == "stopped"
