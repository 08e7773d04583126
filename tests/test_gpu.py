"""Every path of perf/gpu.py: on a card where there is one (``make gpu``), and in a tiny form on the processor."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from perf import gpu
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not gpu.has_card(), reason=gpu.NO_CARD)]),
]
# A processor has no fp16 training; the path beside it is the same.
ON_CPU: dict[str, Any] = {"fp16": {"precision": "fp32"}}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", ["BERT-base", "Qwen3-0.6B"])
def test_every_way_of_training_runs(shape: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = gpu.shaped(shape, tmp_path / "model", gpu.TINY)
    if device == "cpu":
        for case, settings in ON_CPU.items():
            monkeypatch.setitem(gpu.CASES, case, settings)
    # On a processor the shapes differ by their layers alone, whatever the way.
    every = device == "cuda" or shape == "BERT-base"
    for case in gpu.CASES if every else ("bf16", "GradCache", "LoRA"):
        trained = gpu.train(folder, case, gpu.TINY, device)
        assert trained["rate"] > 0, case
        assert trained["losses"], case
        assert all(math.isfinite(loss) for loss in trained["losses"]), case


@pytest.mark.parametrize("device", DEVICES)
def test_the_trainer_runs_as_a_peer(device: str, tmp_path: Path) -> None:
    folder = gpu.shaped("BERT-base", tmp_path / "model", gpu.TINY)
    assert gpu.train_peer(folder, "GradCache", gpu.TINY, device)["rate"] > 0


@pytest.mark.parametrize("device", DEVICES)
def test_search_encoding_and_generation_give_rows(device: str, tmp_path: Path) -> None:
    folder = gpu.shaped("BERT-base", tmp_path / "model", gpu.TINY)
    rows = gpu.search_rows(gpu.TINY, device)
    rows.append(gpu.encoding_row(folder, "BERT-base", gpu.TINY, device))
    rows.append(gpu.generation_row(tmp_path / "writer", gpu.TINY, device))
    assert len(rows) == 4
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)


@pytest.mark.soak
def test_a_training_in_a_process_of_its_own(tmp_path: Path) -> None:
    folder = gpu.shaped("BERT-base", tmp_path / "model", gpu.TINY)
    assert gpu.in_a_process("ours", folder, "bf16", gpu.TINY, "cpu")["rate"] > 0


@pytest.mark.skipif(gpu.has_card(), reason="there is a card")
def test_without_a_card_it_says_so_and_measures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.run() == []
    assert capsys.readouterr().out.strip() == gpu.NO_CARD


def test_make_gpu_is_these_tests_and_that_benchmark() -> None:
    target = (REPOSITORY / "Makefile").read_text("utf-8").partition("\ngpu: ")[2].partition("\n\n")[0]
    assert "pytest -n 0 -m gpu" in target
    assert "python -m perf gpu" in target
