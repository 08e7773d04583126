"""Whether a cluster's nodes can do a job of a workspace: asked of one of them, by a job of a second or two.

``python -m cdp.jobs.probe <workspace> <name>`` is its side on the node. It looks for the file ``.<name>`` in the
workspace, whose lock whoever asks holds, and writes another beside it. With a third word, the address of a store, it
does the same there, and looks at no file.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cdp import __version__
from cdp.base.errors import CdpError, ClusterError
from cdp.base.locks import is_held, wait_for_lock
from cdp.base.workspace import Workspace, private_files
from cdp.jobs.lease import SHOWN_WITHIN_S, about_this_node
from cdp.jobs.place import Place
from cdp.jobs.ray_cluster import Connection, cannot_begin
from cdp.jobs.remote import ENDED, LIGHT_CPUS, on_node
from cdp.jobs.store.bucket import EXAMPLE, Bucket, shown

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
    fault: str = ""
    """What is in the way of its reading and writing the store."""

    def check(self, workspace: Workspace, store: str = "") -> None:
        """ClusterError, with what to do next, unless jobs of the workspace can run there."""
        if self.fault:
            raise ClusterError(f"The cluster's node {self.host}: {self.fault}")
        if store and not self.seen:
            raise ClusterError(
                f"The cluster's node {self.host} does not see in {shown(store)} what is written to it from here.",
                hint="Is it the same store there? A folder (file:///…) has to be one that every machine sees.",
            )
        if not self.seen:
            raise ClusterError(
                f"The cluster's node {self.host} does not see the workspace {workspace.root}.",
                hint="It has to lie on a file system that every node has under the same path: move it to one. "
                f"Or name an object store that every node reaches: --store {EXAMPLE}",
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


def probe(workspace: Workspace, address: str, store: str = "") -> Probe:
    """Ask one node. ClusterError where the cluster cannot be asked, or where Python cannot begin there; or where the
    store cannot be read and written from here."""
    if store:
        return _through(store, workspace, address)
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


def _through(store: str, workspace: Workspace, address: str) -> Probe:
    bucket = Bucket(store)
    name = f"probe-{secrets.token_hex(8)}"
    bucket.put(f"{name}/asked", name.encode())
    try:
        if bucket.get(f"{name}/asked") != name.encode() or bucket.names(name) != ["asked"]:
            raise ClusterError(f"The store {shown(store)} does not show what was written to it.", hint="Is it one?")
        connection = Connection(address)
        command = on_node("cdp.jobs.probe", str(workspace.root), name, store)
        connection.submit(f"cdp-{name}", command, Place(address), cpus=LIGHT_CPUS, gpus=0, env={}, about={})
        answer = _answer(connection, f"cdp-{name}")
        return answer if bucket.get(f"{name}/answer") is not None else replace(answer, seen=False)
    finally:
        bucket.clear(name)


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
    if len(arguments) > 2:
        answer = _in_store(arguments[1], arguments[2])
        print(f"{ANSWER_PREFIX}{json.dumps(asdict(answer))}", flush=True)
        return
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


def _in_store(name: str, store: str) -> Probe:
    fault, seen = "", False
    try:
        bucket = Bucket(store)
        seen = bucket.get(f"{name}/asked") == name.encode()
        bucket.put(f"{name}/answer", b"ok")
        bucket.delete(f"{name}/asked")
    except CdpError as error:
        fault = str(error)
    return Probe(**about_this_node(), seen=seen, writable=not fault, locks=True, fault=fault)


if __name__ == "__main__":
    main(sys.argv[1:])
