"""``python -m reproduction.demo [--workspace DIR]``: run the demo's test and keep what it left; ``cdp demo`` loads it.

Minutes on two cores. Run it when the format of a study's records changes: the tests say so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from cdp.base.workspace import Workspace
from cdp.services import demo, jobs, trial


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
        size = demo.record(view.folder)

    print(f"written: {demo.RESULTS}, {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
