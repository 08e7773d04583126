"""A run on Trackio, written by `cdp.training.tracking` as trainings do, and read back from Trackio's own database."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

# Our package is read from the repository: this environment has Trackio and accelerate alone.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from cdp.training.tracking import PROJECT, Tracker

KEY = "planted-key-0123456789"

folder = Path(sys.argv[1]) / "trackio"
shutil.rmtree(folder, ignore_errors=True)
os.environ |= {"TRACKIO_DIR": str(folder), "WANDB_API_KEY": KEY}

tracker = Tracker("trackio", "a run", folder, {"learning_rate": 0.1, "layers": (1, 2), "empty": None})
tracker.log(1, {"loss": 2.5, "note": "left out"}, "arm × 1")
tracker.log(2, {"ndcg_at_10": 60.0}, "arm × 1/final")
tracker.finish()

with sqlite3.connect(folder / f"{PROJECT}.db") as database:
    rows = database.execute("select step, metrics from metrics order by id").fetchall()
    ((name, settings),) = database.execute("select run_name, config from configs")
found = [(step, json.loads(values)) for step, values in rows]
settings = {key: value for key, value in json.loads(settings).items() if key in ("learning_rate", "layers", "empty")}
print(name, found, settings)
assert name == "a run"
assert found == [(1, {"arm x 1/loss": 2.5}), (2, {"arm x 1/final/ndcg_at_10": 60.0})]
assert settings == {"learning_rate": 0.1, "layers": "(1, 2)"}
assert not any(KEY.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())
