"""Takes long to be imported, as a worker with torch does, until the file that CDP_TEST_GO names appears."""

from __future__ import annotations

import os
import time
from pathlib import Path

from cdp.base.worker import Job, run

while not Path(os.environ["CDP_TEST_GO"]).exists():
    time.sleep(0.02)


def main(job: Job) -> None:
    job.result("slow_start", {"id": job.id})


if __name__ == "__main__":
    run(main)
