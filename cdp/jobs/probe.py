"""Whether a cluster's nodes can do a job of a workspace: asked of one of them, by a job of a second or two.

``python -m cdp.jobs.probe <workspace> <name>`` is its side on the node. It looks for the file ``.<name>`` in the
workspace, whose lock whoever asks holds, and writes another beside it.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from cdp import __version__
from cdp.base.errors import CdpError, ClusterError
from cdp.base.locks import is_held, wait_for_lock
from cdp.base.workspace import Workspace, private_files
from cdp.jobs.lease import SHOWN_WITHIN_S, about_this_node
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import Connection, cannot_begin
from cdp.jobs.remote import ENDED, LIGHT_CPUS, on_node

ANSWER_PREFIX = "cdp probe:"

PATIENCE_S = 120.0
"""How long a node may take: a cluster that has no room for a tenth of a CPU is full."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What a node says: its name, its versions, and whether it sees the workspace, may write it, and sees its locks."""

    host: str
    version: str
    python: str
    seen: bool
    writable: bool
    locks: bool

    def check(self, workspace: Workspace) -> None:
        """ClusterError, with what to do next, unless jobs of the workspace can run there."""
        if not self.seen:
            raise ClusterError(
                f"The cluster's node {self.host} does not see the workspace {workspace.root}.",
                hint="It has to lie on a file system that every node has under the same path: move it to one.",
            )
        if not self.writable:
            raise ClusterError(
                f"The cluster's node {self.host} may not write the workspace {workspace.root}.",
                hint="Have Ray run under an account that may.",
            )
        if self.version != __version__:
            raise ClusterError(
                f"The cluster has CDP Studio {self.version}, and here is {__version__}.",
                hint="Install the same version in both places.",
            )


def probe(workspace: Workspace, address: str) -> Probe:
    """Ask one node. ClusterError where the cluster cannot be asked, or where Python cannot begin there."""
    workspace.root.mkdir(parents=True, exist_ok=True)
    name = f"probe-{secrets.token_hex(8)}"
    path = workspace.root / f".{name}"
    connection = Connection(address)
    lock = wait_for_lock(path, "The probe's file", wait_s=5.0)
    try:
        command = on_node("cdp.jobs.probe", str(workspace.root), name)
        connection.submit(f"cdp-{name}", command, Place(address), cpus=LIGHT_CPUS, gpus=0, env={}, about={})
        return _answer(connection, f"cdp-{name}")
    finally:
        os.close(lock)
        for left in (path, _answered(path)):
            left.unlink(missing_ok=True)


def _answer(connection: Connection, submission: str) -> Probe:
    poll = connection.poll(submission)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while poll.info is None or str(poll.info.status.value) not in ENDED:
            if time.monotonic() > deadline:
                connection.stop(submission)
                raise ClusterError(f"No node of the cluster took a job in {PATIENCE_S:g} seconds.",
                                   hint="Is it full? ray status tells on its head.")  # fmt: skip
            time.sleep(0.1)
    finally:
        poll.close()
    text = f"{poll.info.message or ''}\n{connection.log(submission)}"
    said = [line.removeprefix(ANSWER_PREFIX) for line in text.splitlines() if line.startswith(ANSWER_PREFIX)]
    if not said:
        raise cannot_begin(text)
    return Probe(**json.loads(said[-1]))


def _answered(path: Path) -> Path:
    return path.with_name(f"{path.name}.answer")


def main(arguments: list[str]) -> None:
    """The node's side."""
    private_files()
    path = Path(arguments[0]) / f".{arguments[1]}"
    seen = writable = locks = False
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while not (seen := path.is_file()) and time.monotonic() < deadline:
        time.sleep(0.2)
    if seen:
        try:
            _answered(path).write_text("ok", encoding="ascii")
            writable = True
        except OSError:
            pass
        try:
            locks = is_held(path)
        except (CdpError, OSError):
            pass
    answer = Probe(**about_this_node(), seen=seen, writable=writable, locks=locks)
    print(f"{ANSWER_PREFIX}{json.dumps(asdict(answer))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
