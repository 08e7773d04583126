"""GPUs that only one of nvidia-smi and torch shows: they are used, or the job says why not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace, read_json, write_json
from cdp.jobs import devices
from tests.cli.support import answer
from tests.support import work
from tests.support_models import tiny_static
from tests.training import test_from_the_command_line as fixtures

pytestmark = pytest.mark.slow

ask = fixtures.ask
Smi = Callable[[str], None]

TORCH = """
class Properties:
    uuid, name, total_memory = "1111-2222", "Fake MIG 1g.10gb", 10 * 2**30
class cuda:
    device_count = staticmethod(lambda: {n})
    get_device_properties = staticmethod(lambda index: Properties)
"""


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Smi]:
    """Put a program called nvidia-smi on the path that prints this."""

    def put(rows: str) -> None:
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho '{rows}'\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices._from_torch.cache_clear()
    yield put
    devices._from_torch.cache_clear()


def doctors_word() -> tuple[bool, str]:
    checks = answer("doctor", code=int(bool(devices.gpu_trouble())))
    (check,) = [check for check in checks if check["name"] == "devices"]
    return check["ok"], check["text"]


@pytest.fixture
def torch_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let child processes import a torch that sees so many GPUs: the real one takes seconds to load."""

    def put(n: int) -> None:
        (tmp_path / "torch.py").write_text(TORCH.replace("{n}", str(n)), encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    return put


def test_a_gpu_of_unknown_memory_is_listed_and_the_doctor_says_that_torch_cannot_use_it(
    smi: Smi, torch_sees: Callable[[int], None], workspace: Workspace
) -> None:
    smi("GPU-aaaa, Fake, [N/A], 0\nGPU-bbbb, Fake, [Not Supported], 1")
    torch_sees(0)
    ok, text = doctors_word()
    assert not ok
    assert "Fake, memory unknown (GPU-aaaa)" in text
    assert "Fake, memory unknown (GPU-bbbb)" in text
    assert "nvidia-smi lists 2 GPUs, but torch can use none" in text


def test_a_mig_instance_is_found_by_asking_torch(
    smi: Smi, torch_sees: Callable[[int], None], workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi("GPU-aaaa, Fake, 81920, 0")
    torch_sees(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-5fd4f087")
    ok, text = doctors_word()
    assert ok
    assert "Fake MIG 1g.10gb, 10 GiB (MIG-5fd4f087)" in text


def test_a_training_does_not_run_on_the_cpu_in_place_of_a_gpu_that_torch_cannot_use(
    smi: Smi, ask: fixtures.Ask, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workspace.job("training-1")
    config = {"query_set": ask(12), "retriever": str(tiny_static(tmp_path / "tiny")), "learning_rate": 1e-3}
    write_json(folder / "spec.json", {"id": "training-1", "config": config})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aaaa")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    from accelerate import PartialState

    PartialState._reset_state()
    assert work("cdp.workers.training", folder) == 1
    assert "This training was given a GPU, and torch cannot use it." in read_json(folder / "failure.json")["message"]
