"""Results that grow on disk while a job works, so that a resumed job goes on where the last one ended."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cdp.base.workspace import read_json_or_none, write_json


class Ledger:
    """Rows of ``width`` float32 numbers in an append-only file, tied to what they are results of.

    ``fingerprint`` names the work: the items in their order and the model. A file made for other work is begun anew;
    a row torn by a crash is dropped.
    """

    def __init__(self, path: Path, fingerprint: str, width: int = 1) -> None:
        self._path = path
        self.width = width
        header = path.with_suffix(".json")
        identity = {"fingerprint": fingerprint, "width": width}
        if read_json_or_none(header) != identity:
            path.unlink(missing_ok=True)
            write_json(header, identity)
        row = 4 * width
        size = path.stat().st_size if path.exists() else 0
        if size % row:
            os.truncate(path, size - size % row)
        self.done = size // row

    def append(self, rows: ArrayLike) -> None:
        """Add rows of shape (n, width), or (n,) if the width is 1; they are on disk when this returns."""
        values = np.asarray(rows, dtype="<f4").reshape(-1, self.width)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "ab") as file:
            file.write(values.tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.done += len(values)

    def read(self) -> NDArray[np.float64]:
        """All rows so far: shape (done, width)."""
        if not self.done:
            return np.zeros((0, self.width))
        return np.fromfile(self._path, dtype="<f4").astype(np.float64).reshape(-1, self.width)[: self.done]
