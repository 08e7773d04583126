"""A job's side on a node that does not see the workspace:
``python -m cdp.jobs.store.there <store> <job's name in it> <attempt>``, started by Ray.

It makes a workspace of its own in a scratch folder, from what the store holds of the job, and has ``cdp.jobs.node`` run
the job there. What the worker writes goes back through the store while it runs, and all of it before the end is told.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, ClusterError
from cdp.base.locks import locked, try_lock, wait_for_lock
from cdp.base.output import survives_a_full_disk
from cdp.base.workspace import private_files, write_bytes, write_json
from cdp.jobs.handover import FILES as KEYS
from cdp.jobs.lease import LEASE, NODE, RENEW_S, SHOWN_WITHIN_S, UNWANTED_AFTER_S, about_this_node
from cdp.jobs.node import LOG_PREFIX, Node
from cdp.jobs.records import read_record
from cdp.jobs.store import letters
from cdp.jobs.store.bucket import Bucket
from cdp.jobs.store.changes import Changes
from cdp.jobs.store.letters import Letters, entries_in, listed
from cdp.jobs.store.needs import SPEC
from cdp.jobs.store.pieces import Pieces

SCRATCH_VARIABLE = "CDP_SCRATCH"
"""Where a node keeps the workspaces of its jobs; the system's folder for temporary files otherwise."""

LAST_S = 600.0
"""How long the store may fail, at the end, before what was not sent is given up."""

SWEEP_S = 20.0


class There:
    """One attempt of one job on this node."""

    def __init__(self, scratch: Path, address: str, job: str, attempt: int) -> None:
        self.attempt = attempt
        self.bucket = Bucket(address)
        self.pieces = Pieces(self.bucket, job)
        self.letters = Letters(self.bucket, job, attempt)
        self.inputs = self._inputs()
        self.root = scratch / "workspace"
        self.own = f"jobs/{self.inputs['spec']}"
        self.folder = self.root / self.own
        change = (str(self.root).encode(), str(self.inputs["root"]).encode())
        self.changes = Changes(self.root, self.own, self.pieces, change, scratch / "links")
        self.lease: dict[str, Any] = {}
        self.node: Node | None = None
        self._heard = time.monotonic()
        self._beat = self._number = 0
        self._read = {"news": 0, "files": 0}
        self._used: dict[str, set[str]] = {"news": set(), "files": set()}
        self._unused: dict[str, list[tuple[int, set[str]]]] = {"news": [], "files": []}
        self._swept = dict.fromkeys(self._used, time.monotonic())
        self._over = threading.Event()

    def run(self) -> None:
        """Make the workspace, run the job, send what it made."""
        self._hear()
        touching = threading.Thread(target=self._keep, args=(self._touch,), name="touch")
        sending = threading.Thread(target=self._keep, args=(self._send,), name="send")
        touching.start()
        try:
            self._make()
            self.node = Node(self.folder, self.attempt)
            sending.start()
            self.node.run()
        finally:
            self._over.set()
            touching.join()
            if sending.ident is not None:
                sending.join()
        self._end()
        self.pieces.close()

    def _inputs(self) -> dict[str, Any]:
        deadline = time.monotonic() + SHOWN_WITHIN_S
        while not (inputs := self.letters.read(letters.INPUTS)):
            if time.monotonic() > deadline:
                raise ClusterError(f"Attempt {self.attempt} of the job is not wanted any more.")
            time.sleep(0.5)
        return inputs

    def _make(self) -> None:
        """The workspace of this node, with the paths of the submitter's turned into its own."""
        files = entries_in(self.inputs.get("files"))
        self.pieces.fetch_all(
            {self.root / name: entry for name, entry in files.items() if _is_below(name)}, self._wanted
        )
        if not self._wanted():
            raise ClusterError(f"Attempt {self.attempt} of the job is not wanted any more.")
        spec = self.folder / SPEC
        write_bytes(spec, spec.read_bytes().replace(self.changes.change[1], self.changes.change[0]))
        for name in self.bucket.names(self.letters.folder):
            if name.startswith(KEYS) and (data := self.bucket.get(f"{self.letters.folder}/{name}")) is not None:
                write_bytes(self.folder / name, data)
                self.bucket.delete(f"{self.letters.folder}/{name}")
        write_json(self.folder / LEASE, self.lease)
        self.changes.given(files)

    def _wanted(self) -> bool:
        gone = time.monotonic() - self._heard > UNWANTED_AFTER_S
        return not (gone or self.lease.get("over") or self.lease.get("stop"))

    def _hear(self) -> None:
        """The submitter's lease, where ``cdp.jobs.node`` looks for it."""
        word = self.letters.read(letters.LEASE)
        lease = word.get("lease")
        if isinstance(lease, dict) and lease != self.lease:
            self.lease, self._heard = lease, time.monotonic()
            if self.node is not None:
                write_json(self.folder / LEASE, lease)
        self._read = {"news": int(word.get("beat", 0)), "files": int(word.get("files", 0))}

    def _touch(self) -> None:
        self._hear()
        record = read_record(self.folder / NODE) or {}
        if record.get("attempt") != self.attempt:
            return
        if record.get("phase") == "ended":  # nobody hears of that before all is sent
            record = {**record, "phase": "running"}
        self._tell(record)

    def _tell(self, record: dict[str, Any]) -> None:
        news = self.changes.news()
        self._beat += 1
        self.letters.write(
            letters.PULSE, {"node": record, "beat": self._beat, "files": self._number, "news": listed(news)}
        )
        self._use("news", self._beat, {piece for entry in news.values() for piece in entry.pieces})

    def _send(self) -> None:
        entries = self.changes.whole()
        if entries is None:
            return
        self.letters.write(letters.FILES, {"number": self._number + 1, "files": listed(entries)})
        self._number += 1
        self._use("files", self._number, {p for entry in entries.values() if entry.own for p in entry.pieces})

    def _use(self, what: str, number: int, pieces: set[str]) -> None:
        """From this number on these pieces are in use, and no longer those before, which are deleted once the submitter
        has begun to read this number."""
        self._unused[what].append((number, self._used[what] - pieces))
        self._used[what] = pieces
        if time.monotonic() - self._swept[what] < SWEEP_S:
            return
        self._swept[what] = time.monotonic()
        left = [(since, unused) for since, unused in self._unused[what] if since > self._read[what]]
        over = set().union(*(unused for since, unused in self._unused[what] if since <= self._read[what]))
        self._unused[what] = left
        self.pieces.delete(over.difference(*self._used.values(), *(unused for _, unused in left)))

    def _keep(self, step: Callable[[], None]) -> None:
        while not self._over.wait(RENEW_S):
            self._try(step)

    def _try(self, step: Callable[[], None]) -> bool:
        """A store that fails for a while is tried again; one that fails for long is silence for the submitter."""
        try:
            step()
            return True
        except Exception as error:
            print(f"{LOG_PREFIX} {about_this_node()['host']}: {error}", file=sys.stderr, flush=True)
            return False

    def _end(self) -> None:
        """All that is left, and then how it ended."""
        deadline = time.monotonic() + LAST_S
        ended = read_record(self.folder / NODE) or {}
        alive = threading.Event()
        touching = threading.Thread(target=self._until, args=(alive,), name="touch")
        touching.start()
        try:
            while not self._try(self._send) or not self._try(self._send):
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"{about_this_node()['host']} could not send what the job has made.", hint="Resume the job."
                    )
                time.sleep(RENEW_S)
        finally:
            alive.set()
            touching.join()
        while not self._try(lambda: self._tell(ended)) and time.monotonic() < deadline:
            time.sleep(RENEW_S)

    def _until(self, over: threading.Event) -> None:
        while not over.wait(RENEW_S):
            self._try(self._touch)


def _is_below(name: str) -> bool:
    parts = name.split("/")
    return bool(name) and not any(part in ("", ".", "..") for part in parts)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of this node for one job, deleted with all that is in it; so are those that killed jobs have left."""
    base = Path(os.environ.get(SCRATCH_VARIABLE, "").strip() or tempfile.gettempdir()) / f"cdp-scratch-{os.getuid()}"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise ClusterError(f"{base} belongs to somebody else.", hint=f"Name another folder in {SCRATCH_VARIABLE}.")
    with locked(base / "lock", "The folder of scratch folders"):
        for left in base.glob("job-*"):
            if (lock := try_lock(left / "lock")) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
        folder = Path(tempfile.mkdtemp(prefix="job-", dir=base))
        lock = wait_for_lock(folder / "lock", "The job's scratch folder", wait_s=5.0)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def main(arguments: list[str]) -> None:
    """Run one attempt. Exit code 3 and a line on stderr where it cannot begin."""
    private_files()
    survives_a_full_disk()
    try:
        with scratch() as folder:
            There(folder, arguments[0], arguments[1], int(arguments[2])).run()
    except CdpError as error:
        print(f"{LOG_PREFIX} The cluster's node {about_this_node()['host']}: {error}", file=sys.stderr, flush=True)
        raise SystemExit(3) from None


if __name__ == "__main__":
    main(sys.argv[1:])
