"""Checkpoints of a training: what they hold so that it goes on as if never stopped; reading and writing them.

``checkpoints/step-<n>/state.safetensors`` holds weights, the optimiser's moments and the random states of every
process; ``state.json`` the counters. Neither format can run code, so a checkpoint from another machine is safe to
resume. A checkpoint appears whole (temporary name, then rename), and the previous one is removed only after that.
``checkpoints/best/`` holds the weights with the best NDCG@10.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from cdp.base.errors import WorkspaceError

TENSORS, FACTS = "state.safetensors", "state.json"


def random_state() -> dict[str, Tensor]:
    """Return torch's random states of this process, which dropout draws from, as tensors on the CPU."""
    states = {"torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random_state(states: Mapping[str, Tensor]) -> None:
    """Set the random states of this process to those that ``random_state`` returned."""
    # torch reads a generator's state from the beginning of the memory, so a row of several processes' is copied.
    torch.set_rng_state(states["torch"].clone())
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"].clone())


def save(folder: Path, step: int, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Path:
    """Write the checkpoint of a step and remove older ones. If writing fails (a full disk), the older one stays."""
    target = folder / f"step-{step:09d}"

    def write(temporary: Path) -> None:
        write_tensors(temporary, tensors)
        (temporary / FACTS).write_text(json.dumps(facts), encoding="utf-8")

    write_folder(target, write)
    for other in folder.glob("step-*"):
        if other != target:
            shutil.rmtree(other, ignore_errors=True)
    return target


def write_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors into a folder, by name. Tied weights are written once under each of their names."""
    plain, written = {}, set()
    for name, tensor in tensors.items():
        value = tensor.detach().cpu().contiguous()
        # safetensors refuses tensors that share memory.
        plain[name] = value.clone() if value.data_ptr() in written else value
        written.add(value.data_ptr())
    save_file(plain, folder / TENSORS)


def latest(folder: Path) -> Path | None:
    """Return the newest whole checkpoint, or None."""
    folders = [p for p in folder.glob("step-*") if re.fullmatch(r"step-\d+", p.name) and (p / FACTS).is_file()]
    return max(folders, default=None)


def load(checkpoint: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return (tensors by name on the CPU, facts) of a checkpoint. WorkspaceError if it is damaged."""
    try:
        facts: dict[str, Any] = json.loads((checkpoint / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise damaged(checkpoint, error) from error
    return load_tensors(checkpoint), facts


def load_tensors(checkpoint: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint by name, on the CPU. WorkspaceError if they cannot be read."""
    try:
        return load_file(checkpoint / TENSORS)
    except (OSError, SafetensorError) as error:
        raise damaged(checkpoint, error) from error


def damaged(checkpoint: Path, error: Exception) -> WorkspaceError:
    return WorkspaceError(
        f"The checkpoint {checkpoint.name} cannot be read: {error}.", hint="Remove it and start the job again."
    )


def named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with ``prefix`` and a dot before each name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with ``prefix`` and a dot, without it."""
    return {name[len(prefix) + 1 :]: t for name, t in tensors.items() if name.startswith(f"{prefix}.")}


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
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
