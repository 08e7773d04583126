"""A retriever that was trained here: the folder of its model, its card, and the record of its training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cdp.base.workspace import read_json_or_none

CARD = "README.md"


def model_folder(job_folder: Path) -> Path:
    """Where a training leaves its model, in sentence-transformers' layout."""
    return job_folder / "model"


def has_model(job_folder: Path) -> bool:
    """Whether a training has left its model, whole: the folder appears by a rename."""
    return (model_folder(job_folder) / "modules.json").is_file()


def card_file(model: Path) -> Path:
    """The model card in a model's folder."""
    return model / CARD


def training_result(job_folder: Path) -> dict[str, Any] | None:
    """What a training wrote of itself (``results/training.json``); None where it did not come so far."""
    value = read_json_or_none(job_folder / "results" / "training.json")
    return value if isinstance(value, dict) else None
