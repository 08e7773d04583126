"""Keys on their way to a cluster's node: through two channels, neither of which alone tells anything.

A job needs the keys of whoever submits it, and Ray shows what a job was submitted with to everybody who can open its
dashboard. So the keys are covered with random bytes as long as themselves (a one-time pad): the pad goes with the
submission, the covered keys through a file of the job's folder that is its owner's alone and that the node deletes when
it has read it.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cdp.base.errors import WorkspaceError
from cdp.base.workspace import write_bytes

FILES = "handover-"
"""How their names begin. Each name is used once: a file server may go on for a while to show that a file is gone."""


def put(folder: Path, values: Mapping[str, str]) -> str:
    """Leave the values for the node; the file's name with the pad to submit with. Empty where there are none."""
    if not values:
        return ""
    plain = json.dumps(dict(values)).encode()
    pad = secrets.token_bytes(len(plain))
    path = folder / f"{FILES}{secrets.token_hex(4)}"
    write_bytes(path, _covered(plain, pad))
    os.chmod(path, 0o600)
    return f"{path.name}:{base64.b64encode(pad).decode()}"


def take(folder: Path, given: str) -> dict[str, str]:
    """The values, whose file is deleted; WorkspaceError where they are not to be had."""
    if not given:
        return {}
    try:
        return look(folder, given)
    finally:
        drop(folder)


def look(folder: Path, given: str) -> dict[str, str]:
    """The values, whose file stays for others who were given the same."""
    if not given:
        return {}
    name, _, pad = given.partition(":")
    try:
        values = json.loads(_covered((folder / Path(name).name).read_bytes(), base64.b64decode(pad)))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"The keys of the job could not be handed over to its node ({error}).",
                             hint="Resume the job.") from error  # fmt: skip
    return {str(name): str(value) for name, value in values.items()}


def drop(folder: Path) -> None:
    """Delete what was left for a node."""
    with suppress(OSError):
        for path in folder.glob(f"{FILES}*"):
            path.unlink(missing_ok=True)


def _covered(data: bytes, pad: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, pad, strict=True))
