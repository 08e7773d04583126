"""A local server that speaks S3: moto, in an environment of its own (``make cluster``): it needs other versions.

``CDP_MOTO`` names its ``moto_server`` where that lies elsewhere.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support import REPOSITORY

SERVER = Path(os.environ.get("CDP_MOTO", "") or REPOSITORY / "build" / "moto" / "bin" / "moto_server")

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def s3(*, bucket: str = "bucket", asks: bool = False) -> Iterator[str]:
    """The address of a server with one bucket; one that ``asks`` accepts nobody's keys."""
    if not SERVER.is_file():
        pytest.skip("needs moto: make cluster")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, **({"INITIAL_NO_AUTH_ACTION_COUNT": "0"} if asks else {})}
    process = subprocess.Popen(
        [str(SERVER), "-H", "127.0.0.1", "-p", str(port)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                httpx.put(f"{address}/{bucket}", timeout=10)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(30)
