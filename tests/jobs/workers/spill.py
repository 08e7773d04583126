"""Workers that strain the machine, as config["how"] says: floods its output, or fills the disk with checkpoints."""

from __future__ import annotations

import os
import resource
import sys

from cdp.base.worker import Job, run
from cdp.base.workspace import read_json_or_none, write_bytes, write_json


def flood(job: Job) -> None:
    """Write config["megabytes"] to the output as fast as it goes, half of it to each stream."""
    line = ("x" * 1023 + "\n") * 64
    for _ in range(job.config["megabytes"] * 8):
        sys.stdout.write(line)
        sys.stdout.flush()
        sys.stderr.write(line)
    print("flood is over", flush=True)


def fill(job: Job) -> None:
    """Save checkpoints of config["bytes"] under new names until config["steps"] are there, or the disk is full."""
    folder = job.folder / "checkpoints"
    done = int((read_json_or_none(folder / "last.json") or {}).get("step", 0))
    while done < job.config["steps"]:
        job.progress("saving", done, job.config["steps"], "checkpoints")
        write_bytes(folder / f"{done + 1}.bin", os.urandom(job.config["bytes"]))
        done += 1
        write_json(folder / "last.json", {"step": done})
    job.result("fill", {"step": done})


def allocate(job: Job) -> None:
    """Ask for more memory than this process may have."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
    hoard = []
    while True:
        hoard.append(bytearray(64 << 20))
        job.progress("hoarding", len(hoard), 0, "blocks")


def main(job: Job) -> None:
    {"flood": flood, "fill": fill, "allocate": allocate}[job.config["how"]](job)


if __name__ == "__main__":
    run(main)
