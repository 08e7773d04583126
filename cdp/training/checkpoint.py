"""Checkpoints of a training: everything from which it continues as if it had never stopped.

``checkpoints/step-<n>/state.pt`` holds weights, optimiser, gradient scaler, the random states of every process and the
counters; which pairs come next follows from the step and the seed. A checkpoint appears whole (temporary name, then
rename), and the one before is removed only after that. ``checkpoints/best/`` holds the weights with the best NDCG@10.
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cdp.base.errors import WorkspaceError

STATE = "state.pt"


def random_states() -> dict[str, Any]:
    """The random states of this process."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore_random_states(states: dict[str, Any]) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if states["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def save(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write the checkpoint of a step and remove older ones. OSError (a full disk …) leaves the older one in place."""
    target = folder / f"step-{step:09d}"
    write_folder(target, lambda temporary: write_state(temporary, state))
    for other in folder.glob("step-*"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)
    return target


def write_state(folder: Path, state: dict[str, Any]) -> None:
    """Write a state into a folder. Through a file of Python's: torch's own does not say that the disk is full."""
    with open(folder / STATE, "wb") as file:
        torch.save(state, file)


def latest(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    folders = [p for p in folder.glob("step-*") if re.fullmatch(r"step-\d+", p.name) and (p / STATE).is_file()]
    return max(folders, default=None)


def load(checkpoint: Path) -> dict[str, Any]:
    """The state in a checkpoint, on the CPU. WorkspaceError if it is damaged."""
    try:
        # Our own file; it holds random states of Python and NumPy, which the weights-only reader refuses.
        state: dict[str, Any] = torch.load(checkpoint / STATE, map_location="cpu", weights_only=False)
        return state
    except Exception as error:
        raise WorkspaceError(
            f"The checkpoint {checkpoint.name} cannot be read: {error}.", hint="Remove it and start the job anew."
        ) from error


def write_folder(target: Path, write: Any) -> None:
    """Fill a folder under a temporary name and rename it to ``target``, replacing what was there."""
    temporary = target.with_name(f".{target.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        write(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    temporary.rename(target)
    shutil.rmtree(old, ignore_errors=True)
