"""What a training writes down as it goes on, also for TensorBoard, Weights & Biases, MLflow or Trackio.

Off unless asked for; accelerate's trackers do the work. Everything is kept in the job's folder ``tracking/``. Nothing
is sent unless the environment asks for that: Weights & Biases stays offline without ``WANDB_MODE``, MLflow writes to a
file without ``MLFLOW_TRACKING_URI``, Trackio to one without ``TRACKIO_DIR``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError


@dataclass(frozen=True)
class Library:
    """A tracker's title, the modules of which it needs one, and what pip installs it."""

    title: str
    modules: tuple[str, ...]
    package: str


LIBRARIES = {
    "tensorboard": Library("TensorBoard", ("tensorboard", "tensorboardX"), "tensorboard"),
    "wandb": Library("Weights & Biases", ("wandb",), "wandb"),
    "mlflow": Library("MLflow", ("mlflow",), "mlflow"),
    "trackio": Library("Trackio", ("trackio",), "trackio"),
}

PROJECT = "cdp-studio"


def check(name: str) -> None:
    """ConfigError where the tracker's library is not installed; nothing is imported."""
    library = LIBRARIES.get(name)
    if library is not None and not any(find_spec(module) for module in library.modules):
        raise ConfigError(
            f"'track' {name} needs the library of {library.title}, which is not installed.",
            hint=f"pip install {library.package}",
        )


class Tracking:
    """The tracker of one run; nothing at all for an empty ``name``. A tracker that fails ends, the training goes on."""

    def __init__(self, name: str, folder: Path, run: str, settings: Mapping[str, Any]) -> None:
        self.name, self._tracker = name, None
        if not name:
            return
        check(name)
        folder.mkdir(parents=True, exist_ok=True)
        values = {key: value for key, value in settings.items() if isinstance(value, str | int | float) and value != ""}
        self._try(lambda: self._start(folder, run, values))

    def _start(self, folder: Path, run: str, values: dict[str, Any]) -> None:
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        tracker_class = LOGGER_TYPE_TO_CLASS[self.name]
        if self.name == "tensorboard":  # TensorBoard calls a run by its folder
            tracker = tracker_class(".", logging_dir=str(folder))
        elif self.name == "mlflow":
            os.environ.setdefault("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
            tracker = tracker_class(PROJECT, logging_dir=(folder / "artifacts").as_uri(), run_name=run)
        elif self.name == "wandb":
            os.environ.setdefault("WANDB_MODE", "offline")
            tracker = tracker_class(PROJECT, name=run, dir=str(folder))
        else:
            os.environ.setdefault("TRACKIO_DIR", str(folder))
            tracker = tracker_class(PROJECT, name=run)
        tracker.start()
        self._tracker = tracker
        tracker.store_init_configuration(values)

    def log(self, step: int, values: Mapping[str, float | int | None]) -> None:
        """A line of metrics; None is left out."""
        if self._tracker is not None:
            present = {name: value for name, value in values.items() if value is not None}
            self._try(lambda: self._tracker.log(present, step=step))

    def finish(self) -> None:
        if self._tracker is not None:
            self._try(self._tracker.finish)

    def _try(self, act: Any) -> None:
        try:
            act()
        except Exception as error:
            self._tracker = None
            reason = " ".join(str(error).split()) or type(error).__name__
            print(f"Tracking with {self.name} ended: {reason}. The training goes on.", flush=True)
