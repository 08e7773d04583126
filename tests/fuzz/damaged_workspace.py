"""Attacks on the workspace itself: one of its files is damaged, and whoever lists or shows things goes on.

A workspace with one of each kind of file is made once (``template``); each attempt copies it, damages a file, and runs
one command that reads. A command may refuse in a sentence (exit code 2); a listing must not.
"""

from __future__ import annotations

import io
import json
import random
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, write_json
from cdp.cli import main
from tests.fuzz import files
from tests.fuzz.mutation import damaged
from tests.fuzz.small_files import wrong_types
from tests.services.support import evaluation

LISTINGS = (
    "corpus list", "queries list", "benchmarks list", "results list", "jobs list", "study list",
    "catalog rebuild", "doctor",
)  # fmt: skip
SHOWING = (
    "corpus show docs", "queries show docs", "benchmarks show bench", "jobs show {job}", "jobs logs {job}",
    "results compare --baseline one", "cw profile docs",
    "metrics docs --quick", "queries export docs --format beir --out {out}", "queries estimate --corpus docs",
    "queries preview --corpus docs", "prompts show {prompts}",
    "train docs --retriever {training} --plan", "jobs show {training}", "study report {study}", "jobs resume {job}",
    "evaluate bm25 --benchmark bench",
)  # fmt: skip


def template(root: Path) -> Workspace:
    """A small workspace with a corpus, query sets, a benchmark, measures, and jobs of every kind with their results."""
    workspace = Workspace(root / "template")
    source = root / "source"
    (source / "bench" / "qrels").mkdir(parents=True)
    (source / "docs.jsonl").write_bytes(files.jsonl(files.ROWS))
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        (source / "bench" / name).write_bytes(files.BEIR[name])
    for words in (
        f"corpus add {source / 'docs.jsonl'} --name docs", f"benchmarks add {source / 'bench'}",
        "metrics docs --quick", "benchmarks list",
    ):  # fmt: skip
        code, said = run(workspace, words)
        assert code == 0, said
    scores = {f"q{i}": i / 10 for i in range(8)}
    for name in ("one", "two"):
        evaluation(workspace, name, "bench", scores)
    for kind in ("training", "prompts", "study", "synthesis", "metrics"):
        job = workspace.job(f"{kind}-20260101-000000-abcd-x")
        spec = {"id": job.name, "kind": kind, "name": kind, "created": "2026-01-01T00:00:00+00:00", "module": "none",
                "config": {"query_set": "docs", "corpus": "docs", "retriever": "minilm"}, "inputs": {}}  # fmt: skip
        write_json(job / "spec.json", spec)
        write_json(
            job / "status.json", {"phase": "ended", "outcome": "failed", "attempt": 1, "earlier": [], "pids": {}}
        )
        write_json(job / "failure.json", {"kind": "bug", "message": "m", "hint": "h", "type": "E", "attempt": 1})
        write_json(job / "heartbeat.json", {"phase": "x", "done": 1, "total": 2, "time": 1.0, "next_within_s": 5})
        write_json(
            job / "results" / f"{kind}.json", {"id": job.name, "measures": [], "candidates": [], "query_set": "d"}
        )
        (job / "metrics.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.4}\n', encoding="utf-8")
        (job / "worker.log").write_text("a line\n", encoding="utf-8")
    code, said = run(workspace, "results list")
    assert code == 0, said
    return workspace


def run(workspace: Workspace, words: str) -> tuple[int, str]:
    """Exit code and stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("CDP_WORKSPACE", str(workspace.root))
        try:
            code = main([*words.split(), "--json"])
        except SystemExit as end:
            code = int(str(end.code))
    return code, err.getvalue()


def attempt(made: Workspace, folder: Path, rng: random.Random) -> str:
    """Damage one file and run one command; what was done. AssertionError where a listing does not go on."""
    workspace = Workspace(folder / "workspace")
    shutil.copytree(made.root, workspace.root)
    choices = sorted(p for p in workspace.root.rglob("*") if p.suffix in (".json", ".jsonl"))
    choices.remove(workspace.root / "workspace.json")  # which says who may read the rest: without it nobody goes on
    path = rng.choice(choices)
    if path.suffix == ".json" and rng.random() < 0.7:
        value = json.loads(path.read_bytes())
        for _ in range(rng.choice((1, 1, 2, 4))):
            value = wrong_types(value, rng)
        path.write_text(json.dumps(value), encoding="utf-8")
    elif rng.random() < 0.1:
        path.write_bytes(b"[" * 100_000)
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))
    listing = rng.random() < 0.5
    jobs = {p.name.partition("-")[0]: p.name for p in workspace.jobs.iterdir()}
    words = rng.choice(LISTINGS if listing else SHOWING).format(job=jobs["evaluation"], out=folder / "out", **jobs)
    what = f"{path.relative_to(workspace.root)} damaged: cdp {words}"
    try:
        code, said = run(workspace, words)
    except Exception as error:
        error.add_note(what)
        raise
    assert "Traceback" not in said, f"{what}\n{said}"
    if listing and words != "doctor":
        assert code == 0, f"{what}: exit code {code}\n{said}"
    return what
