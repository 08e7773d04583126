"""GPUs that only one of nvidia-smi and torch shows: they are used, or the job says why not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from cdp.jobs import devices
from tests.cli.support import answer, run
from tests.support_models import tiny_static
from tests.training import test_from_the_command_line as fixtures

pytestmark = pytest.mark.slow

ask = fixtures.ask
Smi = Callable[[str], None]

TORCH = """
class Properties:
    uuid, name, total_memory = "1111-2222", "Fake MIG 1g.10gb", 10 * 2**30
class cuda:
    device_count = staticmethod(lambda: 1)
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


@pytest.mark.parametrize("memory", ["[N/A]", "[Not Supported]"])
def test_a_gpu_of_unknown_memory_is_listed_and_the_doctor_says_that_torch_cannot_use_it(
    smi: Smi, workspace: Workspace, memory: str
) -> None:
    smi(f"GPU-aaaa, Fake, {memory}, 0")
    ok, text = doctors_word()
    assert not ok
    assert "Fake, memory unknown (GPU-aaaa)" in text
    assert "nvidia-smi lists 1 GPU, but torch can use none" in text


def test_a_mig_instance_is_found_by_asking_torch(
    smi: Smi, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi("GPU-aaaa, Fake, 81920, 0")
    (tmp_path / "torch.py").write_text(TORCH, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-5fd4f087")
    ok, text = doctors_word()
    assert ok
    assert "Fake MIG 1g.10gb, 10 GiB (MIG-5fd4f087)" in text


def test_a_training_does_not_run_on_the_cpu_in_place_of_a_gpu_that_torch_cannot_use(
    smi: Smi, ask: fixtures.Ask, tmp_path: Path
) -> None:
    smi("GPU-aaaa, Fake, [N/A], 0")
    settings = ("--retriever", str(tiny_static(tmp_path / "tiny")), "--set", "learning_rate=1e-3")
    done = run("train", ask(12), *settings, "--wait", code=1)
    assert "This training was given a GPU, and torch cannot use it." in done.stdout
