"""What the loop tells its surroundings: reports while it runs, and what a run did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch

from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError


class Hooks(Protocol):
    """What the loop tells and asks its surroundings."""

    def log(self, step: int, **values: float | int | None) -> None:
        """A line of metrics."""

    def progress(self, step: int, steps: int, message: str) -> None:
        """How far the run is; called every step."""

    def stop_requested(self) -> bool:
        """Whether to stop after this step."""


@dataclass
class Outcome:
    """What a run did. ``step`` < ``steps`` if it was ``stopped``, or ended ``early`` for want of a better NDCG@10."""

    step: int = 0
    steps: int = 0
    stopped: bool = False
    early: bool = False
    seconds: float = 0.0
    pairs_seen: int = 0
    masked: int = 0
    clipped: int = 0
    skipped: int = 0
    first_losses: list[float] = field(default_factory=list)
    last_losses: list[float] = field(default_factory=list)
    best_score: float | None = None
    best_step: int | None = None
    evaluations: list[dict[str, float]] = field(default_factory=list)


def precision_of(config: TrainingConfig, device: torch.device) -> str:
    """fp32, fp16 or bf16: what ``auto`` means on this device."""
    if config.precision != "auto":
        if device.type == "cpu" and config.precision == "fp16":
            raise ConfigError("'precision' fp16 needs a GPU.", hint="Use auto, fp32 or bf16 on a CPU.")
        return config.precision
    if device.type != "cuda":
        return "fp32"
    return "bf16" if torch.cuda.is_bf16_supported() else "fp16"


def host_memory_mib() -> float | None:
    """Resident memory of this process in MiB, or None where the system does not say."""
    try:
        import psutil

        return float(psutil.Process().memory_info().rss / 2**20)
    except (ImportError, OSError):
        return None
