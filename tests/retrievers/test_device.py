"""Models are loaded on a CUDA GPU or on the CPU: other devices that a library would choose were never tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from cdp.base.workspace import Workspace
from cdp.metrics.scorers import load_cross_encoder
from cdp.retrievers import load, resolve
from cdp.retrievers.load import device_or_best
from tests.metrics.models import tiny_cross_encoder
from tests.support_models import tiny_multi_vector, tiny_retriever, tiny_sparse, tiny_static

pytestmark = pytest.mark.slow


@pytest.fixture
def on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)


@pytest.mark.parametrize("made", [tiny_retriever, tiny_static, tiny_multi_vector, tiny_sparse])
def test_a_mac_loads_each_kind_of_retriever_on_its_cpu(
    made: Callable[[Path], Path], workspace: Workspace, tmp_path: Path, on_a_mac: None
) -> None:
    model = load(resolve(str(made(tmp_path / "model")), workspace))
    assert model.device.type == "cpu"
    assert len(model.encode_query(["a fox"])) == 1


def test_a_preset_is_loaded_there_too(workspace: Workspace, on_a_mac: None) -> None:
    assert load(resolve("minilm", workspace)).device.type == "cpu"


def test_a_cross_encoder_is_loaded_there_too(workspace: Workspace, tmp_path: Path, on_a_mac: None) -> None:
    folder: Any = tiny_cross_encoder(tmp_path / "scorer")
    scorer = load_cross_encoder(str(folder), workspace)
    assert len(scorer([("a fox", "a dog")])) == 1


def test_a_named_device_is_taken_and_a_gpu_before_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert device_or_best("cpu") == "cpu"
    assert device_or_best(None) == "cuda"
