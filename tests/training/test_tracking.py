"""Tracking: what a training logs also goes to another program's files, and no tracker can hurt the training."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, read_json, read_jsonl
from cdp.retrievers import resolve
from cdp.training import tracking
from cdp.training.plan import complete
from cdp.training.tracking import LIBRARIES, Library, Tracking
from tests.support import work
from tests.support_models import tiny_static
from tests.training.conftest import write_job


def test_a_missing_library_is_said_before_anything_starts(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {*TrainingConfig.settings()["track"].choices} == {"", *LIBRARIES}
    monkeypatch.setitem(tracking.LIBRARIES, "wandb", Library("Weights & Biases", ("no_such_module",), "wandb"))
    config = TrainingConfig(query_set="q", track="wandb")
    with pytest.raises(ConfigError, match="'track' wandb needs the library of Weights & Biases") as refused:
        complete(config, resolve("static-minilm", workspace))
    assert refused.value.hint == "pip install wandb"
    assert complete(config.replace(track=""), resolve("static-minilm", workspace)).track == ""


def records(path: Path) -> Iterator[bytes]:
    """The records of a TensorBoard file: length, its checksum, data, its checksum."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + length]
        data = data[16 + length :]


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """{name: {step: value}} of what TensorBoard would draw."""
    from tensorboardX.proto.event_pb2 import Event

    drawn: dict[str, dict[int, float]] = {}
    for path in folder.glob("events.out.tfevents.*"):
        for record in records(path):
            event = Event.FromString(record)
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    drawn.setdefault(value.tag, {})[event.step] = value.simple_value
    return drawn


@pytest.mark.slow
def test_tensorboard_gets_what_the_job_logs(workspace: Workspace, query_set: str, tmp_path: Path) -> None:
    folder = write_job(
        workspace, "t", query_set=query_set, retriever=str(tiny_static(tmp_path / "tiny")), epochs=2, batch_size=13,
        learning_rate=0.01, track="tensorboard", gpus=0,
    )  # fmt: skip
    assert work("cdp.workers.training", folder) == 0
    drawn = scalars(folder / "tracking")
    logged = list(read_jsonl(folder / "metrics.jsonl"))
    losses = {line["step"]: line["loss"] for line in logged if "loss" in line}
    assert len(losses) == 6
    assert drawn["loss"] == pytest.approx(losses)
    assert {"learning_rate", "gradient_norm", "pairs_per_second"} <= drawn.keys()
    assert read_json(folder / "results" / "training.json")["settings"]["track"] == "tensorboard"


FAKE = """
import json, os, pathlib
class Config:
    def update(self, values, **_): write("config", values)
config = Config()
def write(name, value): (pathlib.Path(os.environ["SEEN"]) / name).write_text(json.dumps(value))
class Run:
    def log(self, values, step=None, **_):
        write(f"step-{step}", values)
        if step == 2: raise OSError("the network is gone")
    def finish(self): write("finished", True)
def init(project, name, dir): write("init", [project, name, dir, os.environ["WANDB_MODE"]]); return Run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "online"])
def test_wandb_is_offline_unless_asked_and_its_failure_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    from accelerate import PartialState

    PartialState(cpu=True)
    seen = tmp_path / "seen"
    seen.mkdir()
    (tmp_path / "wandb.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setenv("SEEN", str(seen))
    monkeypatch.setenv("WANDB_MODE", mode)
    if not mode:
        monkeypatch.delenv("WANDB_MODE")
    tracked = Tracking("wandb", tmp_path / "tracking", "my run", {"epochs": 2, "name": "", "patience": None})
    tracked.log(1, {"loss": 0.5, "gpu_memory_mib": None})
    tracked.log(2, {"loss": 0.4})
    tracked.log(3, {"loss": 0.3})
    tracked.finish()
    os.environ.pop("WANDB_MODE", None)
    told = {path.name: json.loads(path.read_text()) for path in seen.iterdir()}
    assert told["init"] == ["cdp-studio", "my run", str(tmp_path / "tracking"), mode or "offline"]
    assert (told["config"], told["step-1"]) == ({"epochs": 2}, {"loss": 0.5})
    assert "step-3" not in told
    assert capsys.readouterr().out == "Tracking with wandb ended: the network is gone. The training goes on.\n"
