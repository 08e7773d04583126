"""``python -m reproduction.demo [--workspace DIR]``: run the demo's test and keep what it left; ``cdp demo`` loads it.

Minutes on two cores. Run it when the format of a study's records changes: the tests say so.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace, read_json, write_bytes
from cdp.services import demo, jobs, trial
from cdp.studies import records


def record(folder: Path, target: Path = demo.RESULTS) -> int:
    """Pack what a finished test left in its job's ``folder``; return the bytes. InputError for one that did not end."""
    status = read_json(folder / "status.json")
    if status.get("outcome") != "finished":
        raise InputError(f"{folder.name} has not finished, so it cannot be the demo's recorded test.")
    spec = read_json(folder / "spec.json")
    spec.pop("signature", None)
    spec |= {"id": demo.TEST, "name": f"Test on {demo.NAME} (recorded)", "sequence": 0, "cwd": "", "after": []}
    spec["inputs"] = {**spec["inputs"], records.RECORDED: True}
    ended = {name: status[name] for name in ("schema", "phase", "outcome", "attempt", "queued", "started", "ended")}

    files: dict[str, Any] = {"spec.json": spec, "status.json": {**ended, "seconds": status["seconds"]}}
    for path in sorted(folder.glob("results/**/*.json")):
        if path.stem != "training":  # of a model that is not here
            files[path.relative_to(folder).as_posix()] = _marked(read_json(path))
    # Its results name their job, in the command of the report.
    text = json.dumps(files, ensure_ascii=False).replace(folder.name, demo.TEST)
    packed = gzip.compress(text.encode(), mtime=0)
    write_bytes(target, packed)
    return len(packed)


def _marked(value: Any) -> Any:
    """Return a record whose evaluations count as recorded, so that every table says so."""
    for of in (value, value.get("fused") or {}):
        for evaluation in (of.get("evaluations") or {}).values():
            evaluation["counts"][records.RECORDED] = 1
    return value


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduction.demo", description=__doc__)
    parser.add_argument("--workspace", type=Path, help="where it runs; a temporary folder if left out")
    given = parser.parse_args(words)

    with ExitStack() as stack:
        folder = given.workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdp-demo-")))
        workspace = Workspace(folder.resolve())
        demo.load(workspace, tested=False)
        job = trial.start(workspace, demo.CONFIG).job_id
        view = jobs.wait(workspace, job, lambda seen: print(f"{seen.done} of {seen.total}", end="\r", flush=True))
        if str(view.state) != "finished":
            print(f"The test {view.state}: {(view.failure or {}).get('message', '')}", file=sys.stderr)
            return 1
        size = record(view.folder)

    print(f"written: {demo.RESULTS}, {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
