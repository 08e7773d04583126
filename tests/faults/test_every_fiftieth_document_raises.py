"""A fault of our own in one document of fifty: the rest is done, all failures are listed, and the command says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdp.workspace import Workspace, read_jsonl
from tests.cli.support import answer, run
from tests.support import REPOSITORY

BROKEN = Path(__file__).parent / "broken"
DOCUMENTS, BAD = 150, ["d0", "d50", "d100"]


def with_fault(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setenv("PYTHONPATH", str(BROKEN))
    monkeypatch.setenv("CDP_TEST_BREAKS", stage)


def corpus(tmp_path: Path, n: int = DOCUMENTS, name: str = "things") -> str:
    path = tmp_path / f"{name}.jsonl"
    colours = ("red", "green", "blue", "white")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(n):
            text = (
                f"Thing{i} is a {colours[i % 4]} device that was built in {1800 + i}. It works because wheel {i} turns "
                f"the axle of the mill. Nobody in town {i} sells Thing{i} for less than {i + 3} coins."
            )
            file.write(json.dumps({"_id": f"d{i}", "title": f"Thing{i}", "text": text}) + "\n")
    return str(answer("corpus", "add", str(path), "--name", name)["id"])


def waited(*words: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """The answer of a command that waits for its job, and the line on stderr that warns."""
    done = run(*words, "--wait", "--json", code=code)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    return json.loads(done.stdout), warnings[0] if warnings else ""


@pytest.fixture
def generated(workspace: Workspace, tmp_path: Path) -> str:
    made = answer("queries", "generate", "--corpus", corpus(tmp_path), "--per-doc", "2", "--wait")
    return str(made["query_set"])


@pytest.mark.slow
def test_generating(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus_id = corpus(tmp_path)
    with_fault(monkeypatch, "generation")
    made, warning = waited("queries", "generate", "--corpus", corpus_id, "--per-doc", "2")
    assert (made["state"], made["n_documents"], made["failures"]) == ("finished", 147, 3)
    assert warning.startswith("warning: 3 documents failed; the first, d0: IndexError: list index out of range")
    lines = list(read_jsonl(workspace.query_set(made["query_set"]) / "failures.jsonl"))
    assert [line["document_id"] for line in lines] == BAD
    for line in lines:
        assert "Traceback" in line["traceback"]
        assert line["text"].startswith(line["document_id"].replace("d", "Thing"))
    shown = run("queries", "show", made["query_set"]).stdout
    assert "IndexError" in shown
    assert "3 items failed on the way" in run("jobs", "show", made["id"]).stdout
    # it counts as finished: no consent is asked for
    assert answer("train", made["query_set"], "--retriever", "static-minilm", "--plan")["plan"]["pairs"] > 250


@pytest.mark.slow
def test_measuring(workspace: Workspace, generated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_fault(monkeypatch, "measures")
    made, warning = waited("metrics", generated)
    assert (made["state"], made["n_documents"], made["failures"]) == ("finished", 147, 3)
    assert warning.startswith("warning: 3 documents failed; the first, d0: KeyError")
    lines = list(read_jsonl(workspace.job(made["id"]) / "failures.jsonl"))
    assert [line["id"] for line in lines] == BAD
    assert {value["n_documents"] for value in made["measures"]} == {147}


@pytest.mark.slow
def test_tokenising(workspace: Workspace, generated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_fault(monkeypatch, "tokenising")
    settings = ("--set", "epochs=1", "--set", "batch_size=32")
    made, warning = waited("train", generated, "--retriever", "static-minilm", *settings)
    assert made["state"] == "finished"
    assert made["documents"] == 147
    assert made["dropped"]["pairs that could not be tokenised or weighted"] == 6
    assert "failed; the first, " in warning
    lines = list(read_jsonl(workspace.job(made["id"]) / "failures.jsonl"))
    assert {line["id"] for line in lines} >= {"d0", "d50", "d100", "d0-1", "d100-1"}
    assert all("TextEncodeInput" in line["traceback"] for line in lines)


@pytest.mark.slow
def test_twenty_in_a_row_stop_it_with_a_sentence(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.jsonl"
    rows = [{"_id": f"g{i}", "title": f"Good{i}", "text": f"A wheel turns the mill {i}."} for i in range(5)]
    rows += [{"_id": f"b{i}", "title": f"Thing{100 * i}", "text": f"A wheel turns mill {i}."} for i in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus_id = answer("corpus", "add", str(path))["id"]
    with_fault(monkeypatch, "generation")
    done = run("queries", "generate", "--corpus", corpus_id, "--wait", code=1)
    assert "20 documents in a row failed; the last was document b19: IndexError: list index out of range" in done.stdout
    (made,) = answer("queries", "list")
    assert (made["complete"], made["n_documents"], made["n_failures"]) == (False, 5, 20)


def test_the_fault_is_only_in_the_child() -> None:
    """The patch above must not reach a process that does not ask for it."""
    code = "import cdp.synthesis.generators.template as t; print(t.TemplateGenerator.generate.__module__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "cdp.synthesis.generators.template"
