"""Make a small workspace with everything in it, as this version writes it: ``python -m tests.upgrades.make NAME``.

Done before the format of the workspace changes, or what its files name: ``tests/upgrades/<NAME>.zip`` holds the files,
``<NAME>.json`` the facts that every later version has to find in them. Needs torch, takes some minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from cdp import jobs
from cdp.base.workspace import REPOSITORY, Workspace

HERE = Path(__file__).resolve().parent
KINDS = ("count", "synthesis", "metrics", "training", "evaluation", "study")
PUBLIC = "/opt/cdp-studio"
"""Stands in the files for where this was made."""


def main(name: str) -> None:
    from tests.faults.chaos.kinds import SUBMIT, small_ground
    from tests.metrics.models import tiny_cross_encoder
    from tests.support_models import tiny_static
    from tests.upgrades.facts import facts_of

    place = Path(tempfile.mkdtemp(prefix="cdp-studio-"))
    os.environ["PYTHONPATH"] = str(REPOSITORY)
    os.chdir(place)
    workspace = Workspace(place / "workspace")
    models = {
        "static": str(tiny_static(place / "static", dimension=4)),
        "bert": str(tiny_static(place / "small", dimension=4)),
        "cross-encoder": str(tiny_cross_encoder(place / "cross-encoder")),
    }
    ground = small_ground(workspace, place / "source", n_documents=30, models=models)
    for kind in KINDS:
        job = jobs.wait(workspace, SUBMIT[kind](ground, 1))
        assert job.state == "finished", job.failure
        print(kind, "done", flush=True)
    os.environ["CDP_WORKSPACE"] = str(workspace.root)
    command("demo")
    trained = next(job.id for job in jobs.list_jobs(workspace) if job.kind == "training")
    stopped = stopped_training(workspace, trained, ground.query_set)
    for folder in workspace.jobs.glob("*/checkpoints"):
        if folder.parent.name != stopped:
            shutil.rmtree(folder)
    found = facts_of(workspace)
    with zipfile.ZipFile(HERE / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(workspace.root.rglob("*")):
            relative = path.relative_to(workspace.root).as_posix()
            if path.is_file() and not relative.endswith((".lock", "sequence")) and "catalog" not in relative:
                archive.writestr(zipfile.ZipInfo(relative), _published(path, place), zipfile.ZIP_DEFLATED)
    (HERE / f"{name}.json").write_text(_named(json.dumps(found, indent=1), place) + "\n", encoding="utf-8")
    shutil.rmtree(place)


def command(*arguments: str) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "cdp", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def stopped_training(workspace: Workspace, retriever: str, query_set: str) -> str:
    """The id of a training that was stopped after some of its steps. It starts from a retriever of the workspace, so
    that it can be resumed wherever the workspace is opened."""
    settings = ("epochs=300", "batch_size=16", "save_steps=50", "learning_rate=0.001", "gpus=0", "max_length=32")
    options = [part for setting in settings for part in ("--set", setting)]
    started = command("train", query_set, "--retriever", retriever, "--set", "name=stopped", *options, "--json")
    job_id = str(json.loads(started)["id"])
    while len(jobs.read_metrics(workspace, job_id)) < 20:
        time.sleep(0.02)
    command("jobs", "stop", job_id)
    job = jobs.wait(workspace, job_id)
    assert job.state == "stopped", job.failure
    return job_id


def _published(path: Path, place: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl", ".log", ".md", ".yaml"):
        return data
    return _named(data.decode("utf-8", "replace"), place).encode("utf-8")


def _named(text: str, place: Path) -> str:
    for private in (str(place), str(REPOSITORY), str(Path(sys.prefix)), str(Path(sys.base_prefix))):
        text = text.replace(private, PUBLIC)
    return text


if __name__ == "__main__":
    main(sys.argv[1])
