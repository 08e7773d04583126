"""GPUs as nvidia-smi names them, and the command lines that put a worker on them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError
from cdp.jobs.devices import DeviceRequest, list_gpus
from cdp.jobs.launchers import SPINS, command, environment, is_launched
from cdp.jobs.queue import CPU
from cdp.jobs.records import JobSpec

ROWS = "GPU-aaaa, NVIDIA Fake, 81920, 0\nGPU-bbbb, NVIDIA Fake, 81920, 1\n"


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program called nvidia-smi that knows two GPUs."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nprintf '{ROWS}'\n".replace("\n\n", "\n"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("two_gpus")
def test_gpus_are_listed_and_narrowed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(gpu.uuid, gpu.memory_mb) for gpu in list_gpus()] == [("GPU-aaaa", 81920), ("GPU-bbbb", 81920)]
    for visible, expected in (
        ("1", ["GPU-bbbb"]),
        ("GPU-aaaa", ["GPU-aaaa"]),
        ("", []),
        ("0,1", ["GPU-aaaa", "GPU-bbbb"]),
    ):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert [gpu.uuid for gpu in list_gpus()] == expected


@pytest.mark.usefixtures("two_gpus")
def test_requests_are_checked() -> None:
    gpus = list_gpus()
    DeviceRequest.gpus(2).check(gpus)
    DeviceRequest().check([])
    with pytest.raises(ConfigError):
        DeviceRequest.gpus(3).check(gpus)


def test_no_nvidia_smi_means_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert list_gpus() == []


def spec(launcher: str, device: DeviceRequest) -> JobSpec:
    return JobSpec(
        id="j", kind="train", name="j", created="", sequence=1, module="cdp.x", config={},
        launcher=launcher, device=device,
    )  # fmt: skip


def test_command_lines(tmp_path: Path) -> None:
    plain = command(spec("python", DeviceRequest()), tmp_path, (CPU,))
    assert plain == [sys.executable, "-m", "cdp.x", str(tmp_path)]

    assert command(spec("accelerate", DeviceRequest()), tmp_path, (CPU,)) == plain, "nothing to launch"
    assert command(spec("accelerate", DeviceRequest.gpus(1)), tmp_path, ("GPU-a",)) == plain
    for device, granted, launcher, count in (
        (DeviceRequest.gpus(2), ("GPU-a", "GPU-b"), "accelerate.commands.launch", "--num_processes"),
        (DeviceRequest(processes=2), (CPU,), "torch.distributed.run", "--nproc_per_node"),
    ):
        two = command(spec("accelerate", device), tmp_path, granted)
        assert two[2] == launcher
        assert two[two.index(count) + 1] == "2"
        assert two[-3:] == ["-m", "cdp.x", str(tmp_path)]
        assert is_launched(spec("accelerate", device))
    assert "MULTI_GPU" in (tmp_path / "accelerate.yaml").read_text()


def test_the_worker_sees_its_devices_only() -> None:
    gpu = environment(spec("python", DeviceRequest.gpus(1)), ("GPU-b",), 3, {"A": "1", "CUDA_VISIBLE_DEVICES": "0"})
    assert (gpu["CUDA_VISIBLE_DEVICES"], gpu["CDP_ATTEMPT"], gpu["A"]) == ("GPU-b", "3", "1")
    cpu = environment(spec("python", DeviceRequest()), (CPU,), 1, {})
    assert cpu["GOMP_SPINCOUNT"] == SPINS, "threads that wait leave the processor to other jobs"
    own = environment(spec("python", DeviceRequest()), (CPU,), 1, {"GOMP_SPINCOUNT": "7"})
    assert own["GOMP_SPINCOUNT"] == "7"
    assert cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert "ACCELERATE_USE_CPU" not in gpu
