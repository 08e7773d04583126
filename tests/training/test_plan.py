"""What a training would do, said before it starts, against what it then does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdp.base.config import TrainingConfig
from cdp.base.errors import CdpError
from cdp.base.workspace import REPOSITORY, Workspace, read_json, write_json
from cdp.training import measure
from cdp.training.plan import Measured, estimate, measured_from, plan
from tests.support_models import tiny_retriever, tiny_static
from tests.training.conftest import write_queries

pytestmark = pytest.mark.slow  # to load torch takes longer than all of them


def test_pairs_and_steps_are_said_exactly(workspace: Workspace, query_set: str) -> None:
    found = plan(TrainingConfig(query_set=query_set, batch_size=8), workspace)
    assert (found.pairs, found.documents, found.steps_per_epoch, found.steps) == (39, 12, 4, 12)
    assert found.settings["learning_rate"] == 5e-3
    assert found.left_out_per_epoch == 7
    assert any("leaves out 7 pairs" in note for note in found.notes)
    assert json.dumps(found.to_dict())
    larger = plan(TrainingConfig(query_set=query_set, batch_size=1000), workspace)
    assert (larger.batch_size, larger.steps) == (39, 3)
    assert any("larger than the data" in note for note in larger.notes)


def test_what_is_wrong_is_found_without_a_model(workspace: Workspace, query_set: str) -> None:
    with pytest.raises(CdpError, match="none-such"):
        plan(TrainingConfig(query_set="none-such"), workspace)
    with pytest.raises(CdpError, match="needs 'reasoning'"):
        plan(TrainingConfig(query_set=query_set, weighting="ri"), workspace)


def test_the_terms_of_everything_that_a_training_uses_are_named(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    manifest = read_json(workspace.query_set(query_set) / "manifest.json")
    asked = {f"d{i}": ["one", "two", "three"] for i in range(12)}
    write_queries(workspace, "thought", manifest["corpus_id"], asked)
    file = workspace.query_set("thought") / "manifest.json"
    write_json(file, {**read_json(file), "generator": "openai", "model": "some-model"})
    settings = {"query_set": query_set, "retriever": "static-minilm", "reasoning": "thought"}
    found = plan(TrainingConfig(**settings, weighting="ri"), workspace).licences
    assert found["model"] == "Apache 2.0."
    assert found["documents"].startswith("not recorded")
    assert found["reasoned queries"].startswith("written by some-model: its licence, or the terms")
    assert "reasoned queries" not in plan(TrainingConfig(**settings), workspace).licences


def test_weights_that_are_zero_are_told(workspace: Workspace, query_set: str, tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    ids = [f"d{i}-{j}" for i in range(12) for j in (1, 2, 3)] + ["twin-1", "twin-2", "twin-3"]
    for zeros, words in ((39, "Every weight is zero"), (5, "5 pairs have weight zero")):
        lines = [f"{query_id},{0 if i < zeros else 2}\n" for i, query_id in enumerate(ids)]
        file.write_text("query_id,weight\n" + "".join(lines), encoding="utf-8")
        found = plan(TrainingConfig(query_set=query_set, weighting="column", weights=str(file)), workspace)
        assert found.zero_weights == zeros
        assert any(words in note for note in found.notes)


def test_an_estimate_adds_loading_tokenising_and_steps(workspace: Workspace, query_set: str) -> None:
    found = plan(TrainingConfig(query_set=query_set, batch_size=8), workspace)
    measured = Measured("CPU", 3, 2.0, 0.01, 0.5, 90, 99, 200, 1000)
    assert estimate(found.texts, found.steps, measured) == pytest.approx(2.0 + (39 + 12) * 0.01 + 12 * 0.5)
    assert not measured.fits  # what matters is what is free
    assert Measured("CPU", 3, 2.0, 0.01, 0.5, 50, 99, 200, 1000).fits


def check_measured(record: dict[str, Any], settings: dict[str, Any], workspace: Workspace) -> None:
    whole = plan(TrainingConfig.from_dict(settings), workspace)
    assert record["plan"] == whole.to_dict()
    measured = measured_from(record["measured"])
    assert measured.device == "CPU"
    assert measured.steps == 3
    assert 0 < measured.step_seconds < estimate(whole.texts, whole.steps, measured)
    assert 50 * 2**20 < measured.memory_peak < measured.memory_total
    assert 0 < measured.memory_free <= measured.memory_total
    assert measured.trained_parameters > 1000
    assert not list(workspace.jobs.glob("*"))


@pytest.mark.soak
def test_a_few_real_steps_are_measured_in_a_process_of_their_own(
    workspace: Workspace, query_set: str, tmp_path: Path
) -> None:
    folder = tiny_retriever(tmp_path / "tiny")
    settings = {"query_set": query_set, "retriever": str(folder), "batch_size": 8, "learning_rate": 1e-3, "gpus": 0}
    command = [sys.executable, "-m", "cdp.training.measure"]
    done = subprocess.run([*command, json.dumps(settings)], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    check_measured(json.loads(done.stdout.splitlines()[-1]), settings, workspace)

    wrong = subprocess.run(
        [*command, json.dumps({"query_set": "none"})], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "none" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_few_real_steps_of_a_static_model(
    workspace: Workspace, query_set: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tiny_static(tmp_path / "tiny")
    settings = {"query_set": query_set, "retriever": str(folder), "batch_size": 8, "learning_rate": 1e-3, "gpus": 0}
    assert measure.main([json.dumps(settings)]) == 0
    check_measured(json.loads(capsys.readouterr().out.splitlines()[-1]), settings, workspace)
