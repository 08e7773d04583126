"""A run on Trackio, written by `cdp.training.tracking` as trainings do, and read back from Trackio's own database."""

from __future__ import annotations

from tests.support import REPOSITORY

# Run by a Python with Trackio and accelerate alone; our package is read from the repository.
WRITES_TRACKIO = f"""
import json, os, pathlib, shutil, sqlite3, sys
sys.path.insert(0, {str(REPOSITORY)!r})
folder = pathlib.Path("trackio-run").resolve()
shutil.rmtree(folder, ignore_errors=True)
os.environ |= {{"TRACKIO_DIR": str(folder), "WANDB_API_KEY": "planted-key-0123456789"}}

from cdp.training.tracking import Tracker
tracker = Tracker("trackio", "a run", folder, {{"learning_rate": 0.1, "layers": (1, 2), "empty": None}})
tracker.log(1, {{"loss": 2.5, "note": "left out"}}, "arm × 1")
tracker.log(2, {{"ndcg_at_10": 60.0}}, "arm × 1/final")
tracker.finish()

with sqlite3.connect(folder / "cdp-studio.db") as database:
    rows = database.execute("select step, metrics from metrics order by id")
    found = [(step, json.loads(values)) for step, values in rows]
    (name, settings), = database.execute("select run_name, config from configs")
settings = {{k: v for k, v in json.loads(settings).items() if k in ("learning_rate", "layers", "empty")}}
print(name, found, settings)
assert name == "a run"
assert found == [(1, {{"arm x 1/loss": 2.5}}), (2, {{"arm x 1/final/ndcg_at_10": 60.0}})]
assert settings == {{"learning_rate": 0.1, "layers": "(1, 2)"}}
assert not any(b"planted-key" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
"""
