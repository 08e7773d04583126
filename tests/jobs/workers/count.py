"""Counts to config["steps"], ``step_s`` apart, with a checkpoint at each step; goes on from it when resumed.

``hold_at`` makes its first attempt wait after that step, for a stop or for the file ``go`` in its folder, so that a
test can do what it will to a running job however slow the machine is. ``ignore_stop`` makes it deaf, ``silent_after``
makes it hang after that step, having promised a word within a second.
"""

from __future__ import annotations

import os
import signal
import time

from cdp.base.worker import Job, run
from cdp.base.workspace import append_jsonl, read_json_or_none, write_json


def main(job: Job) -> None:
    config = job.config
    steps, step_s = int(config.get("steps", 3)), float(config.get("step_s", 0.01))
    if config.get("ignore_stop"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    checkpoint = job.folder / "checkpoints" / "last.json"
    done = int((read_json_or_none(checkpoint) or {}).get("step", 0))
    append_jsonl(job.folder / "began.jsonl", [{"attempt": job.attempt, "from": done, "pid": os.getpid()}])
    print(f"attempt {job.attempt} starts after step {done}", flush=True)
    if config.get("secret"):
        print("secret seen" if os.environ.get(config["secret"]) else "secret missing", flush=True)
    while done < steps:
        done += 1
        time.sleep(step_s)
        job.metric(done, loss=1.0 / done)  # before the checkpoint: what is logged twice is shown once, a gap stays
        write_json(checkpoint, {"step": done})
        job.progress("counting", done, steps, "steps")
        if done == config.get("hold_at") and job.attempt == 1:
            hold(job, done, steps)
        if done == config.get("silent_after"):
            job.progress("counting", done, steps, "steps", "about to hang", next_within_s=31.0)
            job.progress("hanging", done, steps, "steps", next_within_s=1.0)
            while True:
                time.sleep(0.5)
        if not config.get("ignore_stop") and job.stop_requested():
            break
    else:
        (job.folder / "model").mkdir(exist_ok=True)
    job.result("count", {"id": job.id, "counted": done})


def hold(job: Job, done: int, steps: int) -> None:
    """Wait, giving signs of life."""
    deaf = bool(job.config.get("ignore_stop"))
    while not (job.folder / "go").exists() and (deaf or not job.stop_requested()):
        job.progress("counting", done, steps, "steps")
        time.sleep(0.05)


if __name__ == "__main__":
    run(main)
