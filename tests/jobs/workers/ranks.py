"""Every rank writes its own file; rank 1 fails where config["fail"] asks for it. Needs no torch."""

from __future__ import annotations

import os
import time

from cdp.base.errors import InputError
from cdp.base.worker import Job, run
from cdp.base.workspace import write_json


def main(job: Job) -> None:
    rank = int(os.environ.get("RANK", "0"))
    write_json(job.folder / f"rank-{rank}.json", {"main": job.is_main, "world": os.environ.get("WORLD_SIZE", "1")})
    job.progress("working", 1, 1, "steps")
    if job.config.get("fail") and rank == 1:
        while not (job.folder / "rank-0.json").exists():  # the launcher kills rank 0 once rank 1 has failed
            time.sleep(0.1)
        raise InputError("rank 1 met a bad line")
    while job.config.get("wait") and not job.stop_requested():
        time.sleep(0.1)


if __name__ == "__main__":
    run(main)
