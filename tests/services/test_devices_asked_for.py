"""The devices that a job asks for: a number of GPUs, GPUs by their UUIDs, or a CPU slot."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from cdp import jobs
from cdp.base.config import EvaluationConfig, TrainingConfig
from cdp.base.job_kind import LIGHT, Device
from cdp.base.workspace import Workspace
from cdp.jobs import place
from cdp.services import jobs as service
from cdp.services import queries, training

pytestmark = pytest.mark.slow

SMI = """#!/bin/sh
echo "GPU-aaaa, Fast One, 81920, 0"
echo "GPU-bbbb, Fast Two, 81920, 1"
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two GPUs, as far as its nvidia-smi says."""
    program = tmp_path / "nvidia-smi"
    program.write_text(SMI, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_a_number_of_gpus_or_one(workspace: Workspace) -> None:
    assert place.request(workspace, Device(None)).count == 1
    assert place.request(workspace, Device(2)).count == 2
    assert place.request(workspace, Device(2, at_most=1)).count == 1
    assert place.request(workspace, Device(0)).lane == "cpu"
    assert place.request(workspace, LIGHT).lane == "light"


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(("asked", "count"), [({}, 1), ({"gpus": 0}, 0), ({"retriever": "bm25"}, 0)])
@pytest.mark.usefixtures("with_demo")
def test_an_evaluation_takes_one_gpu_or_none(workspace: Workspace, asked: dict[str, object], count: int) -> None:
    config = {"retriever": "static-minilm", "benchmark": "demo", **asked}
    job_id = service.start(workspace, "evaluation", EvaluationConfig.from_dict(config))
    spec = jobs.load_spec(workspace, job_id)
    assert (spec.launcher, spec.device.count) == ("python", count)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(("gpus", "count"), [(0, 0), (2, 2)])
@pytest.mark.usefixtures("with_demo")
def test_a_training_starts_through_accelerate_on_whatever_it_runs(
    workspace: Workspace, gpus: int | None, count: int
) -> None:
    query_set = queries.list_query_sets(workspace)[0].id
    started = training.start(workspace, TrainingConfig(query_set=query_set, retriever="static-minilm", gpus=gpus))
    spec = jobs.load_spec(workspace, started.job_id)
    assert (spec.launcher, spec.device.count) == ("accelerate", count)
