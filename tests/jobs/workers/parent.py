"""Starts a process in a session of its own that knows nothing of jobs, and waits for a stop."""

from __future__ import annotations

import subprocess
import time

from cdp.base.worker import Job, run
from cdp.base.workspace import write_json


def main(job: Job) -> None:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    write_json(job.folder / "child.json", {"pid": child.pid, "attempt": job.attempt})
    while not job.stop_requested():
        job.progress("waiting", 0, 0, "")
        time.sleep(0.05)


if __name__ == "__main__":
    run(main)
