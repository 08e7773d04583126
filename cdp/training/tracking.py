"""Experiment trackers (Trackio, Weights & Biases, TensorBoard, MLflow) through accelerate: settings, loss, dev scores.

Where a run goes, offline modes and keys come from the tracker's own environment variables (``WANDB_MODE=offline``,
``WANDB_API_KEY``, ``TRACKIO_DIR``, ``MLFLOW_TRACKING_URI`` …): no setting of ours holds a key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.redaction import cleaned

PROJECT = "cdp-studio"

# MLflow takes these characters in the name of a metric, and the others any.
_UNNAMED = re.compile(r"[^\w\-./: ]")


class Tracker:
    """One run on a tracker, in one process; an empty ``name`` tracks nothing.

    ConfigError where the tracker cannot be started. One that fails later is reported once, and the training goes on.
    """

    def __init__(self, name: str = "", run: str = "", folder: Path = Path(), settings: Mapping[str, Any] = {}) -> None:
        self._name, self._run = name, None
        if not name:
            return

        from accelerate import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        PartialState()  # its trackers log through accelerate, which asks it
        kind = LOGGER_TYPE_TO_CLASS[name]
        place = (str(folder),) if kind.requires_logging_directory else ()
        called = {"trackio": {"name": run}, "wandb": {"name": run, "dir": str(folder)}, "mlflow": {"run_name": run}}
        try:
            tracker = kind(PROJECT, *place, **called.get(name, {}))
            tracker.start()
        except ImportError as error:
            hint = f"Install it: pip install {name}"
            raise ConfigError(f"The tracker {name} is not installed.", hint=hint) from error
        except Exception as error:  # its own: no key, no server, no folder
            hint = "Its environment variables say where and how it logs: see its own documentation."
            raise ConfigError(f"The tracker {name} cannot be started: {error}", hint=hint) from error
        self._run = tracker

        # They take no list and no None.
        given = {key: value for key, value in settings.items() if value is not None}
        plain = {key: value if isinstance(value, (int, float)) else str(value) for key, value in given.items()}
        self._call("store_init_configuration", cleaned(plain))

    def log(self, step: int, values: Mapping[str, Any], group: str = "") -> None:
        """Log the numbers among the values; of a ``group`` as ``<group>/<name>``."""
        prefix = f"{_UNNAMED.sub('x', group)}/" if group else ""
        numbers = {f"{prefix}{name}": value for name, value in values.items() if isinstance(value, (int, float))}
        self._call("log", numbers, step=step)

    def finish(self) -> None:
        """End the run; what is kept on the way is sent."""
        self._call("finish")

    def _call(self, method: str, *values: Any, **more: Any) -> None:
        if self._run is None:
            return
        try:
            getattr(self._run, method)(*values, **more)
        except Exception as error:  # a library of its own, and perhaps a network
            print(f"warning: the tracker {self._name} failed and is left out: {error}", file=sys.stderr, flush=True)
            self._run = None
