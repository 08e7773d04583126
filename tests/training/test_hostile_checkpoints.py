"""A workspace from somebody else: nothing in it runs when its jobs are resumed or its models are used."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs.records import JobSpec
from tests.cli.support import refusal, run
from tests.support import work
from tests.support_models import tiny_static
from tests.training.conftest import write_benchmark

pytestmark = pytest.mark.slow


class Payload:
    """An object that creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> object:
        return Path.touch, (self.marker,)


def foreign_job(workspace: Workspace, query_set: str, retriever: Path) -> Path:
    """The folder of a training that was cut off, as it lies in a copied workspace."""
    config = {"query_set": query_set, "retriever": str(retriever), "epochs": 2, "batch_size": 8, "learning_rate": 1e-3}
    spec = JobSpec(
        id="theirs", kind="training", name="theirs", created="2026-01-01T00:00:00Z", sequence=1,
        module="cdp.workers.training", config={**config, "gpus": 0},
    )  # fmt: skip
    write_json(workspace.job("theirs") / "spec.json", spec.to_dict())
    return workspace.job("theirs")


@pytest.mark.usefixtures("jobs_here")
def test_a_pickle_in_place_of_a_checkpoint_is_not_run_on_resuming(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    marker = tmp_path / "it-ran"
    model = tiny_static(tmp_path / "tiny")
    folder = foreign_job(workspace, query_set, model)
    trusted = ("jobs", "resume", "theirs", "--allow", str(model), "--wait")
    checkpoint = folder / "checkpoints" / "step-000000003"
    checkpoint.mkdir(parents=True)
    for name in ("state.pt", "state.safetensors", "state.json", "optimizer.bin", "random_states_0.pkl", "scaler.pt"):
        (checkpoint / name).write_bytes(pickle.dumps(Payload(marker)))
    done = run(*trusted, code=1)
    assert "The checkpoint step-000000003 cannot be read" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not marker.exists()

    # JSON of another shape is refused with a sentence, too.
    (checkpoint / "state.json").write_text(json.dumps({"order": {"pairs": 1}}), encoding="utf-8")
    shutil.copy(next((tmp_path / "tiny" / "model").glob("*.safetensors")), checkpoint / "state.safetensors")
    assert work("cdp.workers.training", folder) == 1
    assert "The checkpoint step-000000003 cannot be read" in read_json(folder / "failure.json")["message"]
    assert not marker.exists()


def test_a_model_of_the_workspace_with_pickled_weights_is_refused_by_each_command(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    marker = tmp_path / "it-ran"
    write_benchmark(workspace, "judged", test=range(6))
    folder = foreign_job(workspace, query_set, tmp_path)
    shutil.copytree(tiny_static(tmp_path / "tiny"), folder / "model")
    (folder / "model" / "model.safetensors").unlink()
    (folder / "model" / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(marker)))
    for retriever in ("theirs", str(folder / "model")):
        assert "reading could run code" in refusal("evaluate", retriever, "--benchmark", "judged")
        assert "reading could run code" in refusal("train", query_set, "--retriever", retriever)
    assert not marker.exists()
