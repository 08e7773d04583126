"""``-`` is standard input or output wherever a file is named, as of any Unix tool."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cdp import cli
from cdp.base.workspace import Workspace
from tests.cli.support import answer, refusal, run
from tests.support import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


def test_queries_and_exports_flow_through_pipes(with_demo: Workspace, tmp_path: Path) -> None:
    """In a real shell."""
    cdp = f"{shlex.quote(sys.executable)} -m cdp"
    lines = [
        "set -euo pipefail",
        f"printf '%s\\n' 'document_id,query' 'tides,when is high tide?' | {cdp} queries import - "
        "--corpus demo --name asked >imported",
        f"{cdp} queries export asked --format flagembedding --out - | cat >exported",
    ]
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [line] = (tmp_path / "exported").read_text().splitlines()
    assert json.loads(line)["query"] == "when is high tide?"
    assert not (tmp_path / "-").exists()
    *_, answered = done.stderr.splitlines()  # before it, what trainers miss in a set without negatives
    assert answered.endswith("1 query"), "the answer makes way for the data"


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_every_kind_of_input_is_read(with_demo: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, b"what pulls the sea\nhow do bees dance\n")
    assert answer("cw", "profile", "--file", "-")["n"] == 2
    piped(monkeypatch, (REPOSITORY / "data" / "plans" / "single-query.yaml").read_bytes())
    assert "12 trainings" in run("study", "plan", "-").stdout
    piped(monkeypatch, b'{"_id": "a", "text": "Salt."}\n{"_id": "b", "text": "Tides."}\n')
    assert answer("projects", "add", "-", "--name", "salt")["corpus"]["n_documents"] == 2
    piped(monkeypatch, b"The tide comes in.\n")
    assert answer("corpus", "add", "-", "--format", "text", "--name", "piped")["n_documents"] == 1
    piped(monkeypatch, b"")
    assert "empty" in refusal("corpus", "add", "-", "--format", "jsonl")


def test_a_run_comes_in(
    with_demo: Workspace, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    judged = [line.split("\t") for line in (with_demo.benchmarks / "demo/qrels/test.tsv").read_text().splitlines()[1:]]
    lines = "".join(f"{query} Q0 {document} 1 {1.0} mine\n" for query, document, _ in judged)
    piped(monkeypatch, lines.encode())
    assert cli.main(["results", "import", "-", "--benchmark", "demo", "--retriever", "mine", "--json"]) == 0
    imported = json.loads(capsysbinary.readouterr().out)
    assert imported["state"] == "finished", "a job on standard input is followed: its file ends with the command"
    assert imported["ndcg@10"] == 100.0, "an evaluation says its NDCG@10, also of an imported run"


def test_a_folder_of_files_has_no_place_on_standard_output(with_demo: Workspace) -> None:
    assert "--out" in refusal("queries", "export", "demo diverse", "--format", "beir", "--out", "-")
