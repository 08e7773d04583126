"""A fault of our own in one document of fifty: the rest is done, all failures are listed, and the command says so."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cdp.base.workspace import Workspace, read_jsonl
from cdp.cli import main
from cdp.metrics import query_set as measures
from cdp.services import completeness
from cdp.synthesis.generators.template import TemplateGenerator

# Thing0, Thing50, Thing100 … are the fiftieth documents of the corpus below.
BROKEN = re.compile(r"\bThing\d*[05]0\b|\bThing0\b")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]

DOCUMENTS, BAD = 150, ["d0", "d50", "d100"]


def run(*words: str, code: int = 0) -> tuple[str, str]:
    """What a command says on stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended = main(words)
    assert ended == code, f"{words}: exit {ended}\n{out.getvalue()}\n{err.getvalue()}"
    return out.getvalue(), err.getvalue()


def answer(*words: str) -> Any:
    return json.loads(run(*words, "--json")[0])


def broken(text: object) -> bool:
    return BROKEN.search(str(text)) is not None


def with_fault(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    """Let each fiftieth document raise in this stage."""
    generate, tokens = TemplateGenerator.generate, measures.tokens

    def no_opening(self: Any, prompt: str, document: Any, *more: Any, **named: Any) -> Any:
        if broken(document.title):
            return ["no opening"][len(document.text)]  # IndexError, as where a sentence began with a comma
        return generate(self, prompt, document, *more, **named)

    if stage == "generation":
        monkeypatch.setattr(TemplateGenerator, "generate", no_opening)
    else:
        monkeypatch.setattr(measures, "tokens", lambda query: {}[query] if broken(query) else tokens(query))


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
    out, err = run(*words, "--wait", "--json", code=code)
    warnings = [line for line in err.splitlines() if line.startswith("warning: ")]
    return json.loads(out), warnings[0] if warnings else ""


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
    shown, _ = run("queries", "show", made["query_set"])
    assert "IndexError" in shown
    assert "3 items failed and can be looked at" in run("jobs", "show", made["id"])[0]
    completeness.require(workspace, [made["query_set"]], allow_incomplete=False)  # it counts as finished


@pytest.mark.soak
def test_measuring(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_fault(monkeypatch, "measures")
    made, warning = waited("queries", "generate", "--corpus", corpus(tmp_path), "--per-doc", "2")
    assert (made["state"], made["n_documents"]) == ("finished", 150)
    assert warning.startswith("warning: 3 documents failed; the first, d0: KeyError")
    lines = list(read_jsonl(workspace.job(made["id"]) / "failures.jsonl"))
    assert [line["id"] for line in lines] == BAD
    measured = answer("metrics", made["query_set"], "--quick")
    assert (measured["n_failed"], [one["id"] for one in measured["failed"]]) == (3, BAD)
    assert {value["n_documents"] for value in measured["measures"]} == {147}


def test_twenty_in_a_row_stop_it_and_the_set_is_trained_on_only_after_a_yes(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.jsonl"
    rows = [{"_id": f"g{i}", "title": f"Good{i}", "text": f"A wheel turns the mill {i}."} for i in range(5)]
    rows += [{"_id": f"b{i}", "title": f"Thing{100 * i}", "text": f"A wheel turns mill {i}."} for i in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus_id = answer("corpus", "add", str(path))["id"]
    with_fault(monkeypatch, "generation")
    out, _ = run("queries", "generate", "--corpus", corpus_id, "--wait", code=1)
    assert "20 documents in a row failed; the last was document b19: IndexError: list index out of range" in out

    (made,) = answer("queries", "list")
    assert (made["complete"], made["n_documents"], made["n_failures"]) == (False, 5, 20)
    job = made["job_id"]
    assert (made["state"], made["unfinished_job"]) == ("incomplete", f"{job} (failed)")
    told = f"is incomplete: its job failed ({job}), 5 documents with queries."
    for words in (("queries", "show", made["id"]), ("queries", "list")):
        assert job in run(*words)[0]
    assert told in run("queries", "show", made["id"])[0]
    assert told in run("metrics", made["id"], "--quick")[1]
    assert told in run("queries", "export", made["id"], "--format", "beir", "--out", str(tmp_path / "beir"))[1]
    train = ("train", made["id"], "--retriever", "static-minilm", "--set", "epochs=1")
    assert told in run(*train, "--plan")[1]
    _, refused = run(*train, code=2)
    assert told in refused
    assert "--allow-incomplete" in refused
    assert answer("jobs", "list")[0]["id"] == job, "nothing was started"
