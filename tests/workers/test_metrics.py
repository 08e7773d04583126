"""The metrics job: values against the plain functions, stopped and resumed, sampled, as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cdp.base.errors import NotFoundError
from cdp.base.worker import Job
from cdp.base.workspace import REPOSITORY, Workspace, read_json
from cdp.metrics import dist_sim, paraphrase_ratio
from cdp.metrics.scorers import load_encoder, load_scorer
from cdp.workers.metrics import main
from tests import support
from tests.metrics.models import DOCUMENTS, HUMAN, tiny_cross_encoder, write_job, write_query_set
from tests.support_models import tiny_retriever

pytestmark = pytest.mark.slow


def work(folder: Path) -> None:
    """Do the job in this process."""
    main(Job(folder))


def run_process(folder: Path) -> None:
    """Do the job as the supervisor would, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cdp.workers.metrics", str(folder)], cwd=REPOSITORY, text=True, timeout=240,
        capture_output=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def value(result: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [v for v in result["measures"] if v["name"] == name]
    return found


@pytest.fixture
def query_sets(workspace: Workspace) -> Workspace:
    write_query_set(workspace, "synthetic", DOCUMENTS)
    write_query_set(workspace, "human", HUMAN)
    return workspace


def test_values_equal_those_of_the_single_functions(query_sets: Workspace, tmp_path: Path) -> None:
    cross_encoder = str(tiny_cross_encoder(tmp_path / "ce"))
    encoder = str(tiny_retriever(tmp_path / "tiny"))
    scores = load_scorer(cross_encoder, query_sets)
    threshold = float(np.median(scores.score([(a, b) for a in DOCUMENTS["d1"] for b in DOCUMENTS["d5"]])))
    folder = write_job(
        query_sets, "m1", query_set="synthetic", human="human", scorer=cross_encoder, encoder=encoder,
        threshold=threshold, batch_size=2,
    )  # fmt: skip
    work(folder)
    result = read_json(folder / "results" / "metrics.json")
    expected = paraphrase_ratio(list(DOCUMENTS.values()), lambda p: scores.score(p), threshold)
    assert value(result, "paraphrase_ratio")["value"] == pytest.approx(expected)
    assert value(result, "paraphrase_ratio")["per_doc"] == 4
    both = [d for d in DOCUMENTS if d in HUMAN]
    expected = dist_sim([DOCUMENTS[d] for d in both], [HUMAN[d] for d in both], load_encoder(encoder, query_sets))
    assert value(result, "dist_sim")["value"] == pytest.approx(expected, abs=1e-6)
    assert value(result, "dist_sim")["n_documents"] == len(both)
    assert [m["name"] for m in result["measures"]] == ["paraphrase_ratio", "dist_sim", "embedding_diversity"]
    assert result["measures"][0]["model"] == cross_encoder
    assert result["measures"][0]["threshold"] == threshold


@pytest.mark.soak
def test_a_stopped_job_goes_on_where_it_was(query_sets: Workspace, tmp_path: Path) -> None:
    cross_encoder = str(tiny_cross_encoder(tmp_path / "ce"))
    whole = write_job(query_sets, "whole", query_set="synthetic", scorer=cross_encoder, batch_size=2)
    work(whole)
    scored = (whole / "checkpoints" / "pairs.f32").read_bytes()

    folder = write_job(query_sets, "m1", query_set="synthetic", scorer=cross_encoder, batch_size=2)
    (folder / "stop.request").touch()
    assert support.work("cdp.workers.metrics", folder) == 0
    assert read_json(folder / "outcome.json")["outcome"] == "stopped"
    assert not (folder / "results" / "metrics.json").exists()
    (folder / "stop.request").unlink()

    shutil.copytree(whole / "checkpoints", folder / "checkpoints", dirs_exist_ok=True)
    kept = folder / "checkpoints" / "pairs.f32"
    marked = np.full(1, 0.25, dtype="<f4").tobytes()  # the first document's value
    kept.write_bytes(marked + b"tor")
    run_process(folder)
    assert read_json(folder / "outcome.json")["outcome"] == "finished"
    assert kept.read_bytes()[:4] == marked
    np.testing.assert_allclose(np.frombuffer(kept.read_bytes()[4:], "<f4"), np.frombuffer(scored[4:], "<f4"), atol=1e-6)

    write_job(query_sets, "m1", query_set="synthetic", scorer=str(tiny_cross_encoder(tmp_path / "other")))
    work(folder)
    assert len(kept.read_bytes()) == len(scored)
    assert kept.read_bytes()[:4] != marked


def test_the_stand_in_is_recorded_under_its_own_name(query_sets: Workspace) -> None:
    folder = write_job(query_sets, "m1", query_set="synthetic", scorer="bi-encoder", per_doc=2)
    work(folder)
    result = read_json(folder / "results" / "metrics.json")
    found = value(result, "paraphrase_ratio_bi_encoder")
    assert found["model"] == "minilm"
    assert found["per_doc"] == 2


def test_a_sample_says_what_it_is_a_sample_of(workspace: Workspace, tmp_path: Path) -> None:
    documents = {f"d{i}": [f"query {i} about rust", f"question {i} on iron"] for i in range(60)}
    write_query_set(workspace, "large", documents)
    cross_encoder = str(tiny_cross_encoder(tmp_path / "ce"))
    folder = write_job(workspace, "m1", query_set="large", scorer=cross_encoder, max_documents=20, seed=3)
    work(folder)
    result = read_json(folder / "results" / "metrics.json")
    assert result["sampled_from"] == 60
    assert result["n_documents"] == 20
    assert value(result, "paraphrase_ratio")["sampled_from"] == 60


@pytest.mark.parametrize("documents", [{}, {"d1": []}, {"d1": ["only one"]}])
def test_a_set_without_pairs_has_a_defined_answer(
    workspace: Workspace, tmp_path: Path, documents: dict[str, list[str]]
) -> None:
    write_query_set(workspace, "small", documents)
    write_query_set(workspace, "human", {"d9": ["of another document"]})
    folder = write_job(
        workspace, "m1", query_set="small", human="human", scorer=str(tiny_cross_encoder(tmp_path / "ce")),
        encoder=str(tiny_retriever(tmp_path / "tiny")),
    )  # fmt: skip
    work(folder)
    result = read_json(folder / "results" / "metrics.json")
    assert all(m["value"] is None and m["reason"] for m in result["measures"])
    assert json.loads((folder / "heartbeat.json").read_text())["phase"] == "done"


def test_failures_are_named(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    write_query_set(workspace, "synthetic", DOCUMENTS)
    folder = write_job(workspace, "m1", query_set="synthetic", scorer="nobody/nothing")
    assert support.work("cdp.workers.metrics", folder) == 1
    failure = read_json(folder / "failure.json")
    assert failure["kind"] == "configuration"
    assert "cannot be reached" in failure["message"]
    with pytest.raises(NotFoundError, match="missing"):
        work(write_job(workspace, "m2", query_set="missing"))
