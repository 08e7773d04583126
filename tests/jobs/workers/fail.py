"""Fails in the way config["how"] says, after the file config["wait_for"] appeared in its folder, if it names one."""

from __future__ import annotations

import os
import sys
import time

from cdp.base.errors import ConfigError, InputError, ProviderError
from cdp.base.worker import Job, run


class OutOfMemoryError(RuntimeError):
    """Stands where torch.OutOfMemoryError would: the same name and words."""


def main(job: Job) -> None:
    how = job.config["how"]
    if "wait_for" in job.config:
        print("waits", flush=True)
        while not (job.folder / job.config["wait_for"]).exists():
            time.sleep(0.02)
    print(f"about to fail: {how}", flush=True)
    if how == "data":
        raise InputError("The text is empty.", file="corpus.jsonl", line=7, hint="Remove the line.")
    if how == "configuration":
        raise ConfigError("'epochs' must be at least 1.")
    if how == "network":
        raise ProviderError("The endpoint refused the request (401).", hint="Check the key.")
    if how == "library network":
        raise ConnectionRefusedError("nobody listens")
    if how == "cuda":
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")
    if how == "host memory":
        raise MemoryError
    if how == "disk":
        raise OSError(28, "No space left on device")
    if how == "bug":
        raise KeyError("nonsense")
    if how == "exit code":
        print("something went wrong over there", file=sys.stderr)
        os._exit(3)
    raise ValueError(f"no such way to fail: {how}")


if __name__ == "__main__":
    run(main)
