"""The submitter's side of a job whose node has no file system in common with it.

It sends what the job needs, and then has two threads: one carries the signs of life and what says how the job goes,
the other takes into the workspace what the node has made, each list of files whole before the next. ``node.json`` is
written here as the node would, and says that the worker has ended only when all that it made is here.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from cdp.base.errors import CdpError, ClusterError, WorkspaceError
from cdp.base.workspace import Workspace, read_json_or_none, write_json
from cdp.jobs import handover
from cdp.jobs.attending import outcome_of
from cdp.jobs.handover import FILES as KEYS
from cdp.jobs.lease import LEASE, NODE, silence_s
from cdp.jobs.records import read_record
from cdp.jobs.spec import JobSpec
from cdp.jobs.store import letters
from cdp.jobs.store.bucket import Bucket, shown
from cdp.jobs.store.letters import TOUCH_S, Letters, entries_in
from cdp.jobs.store.needs import GROWING, RECORD, is_carried, is_news, needed
from cdp.jobs.store.pieces import Entry, GoneError, Pieces, Stamp, stamp_of

FILES_AT_ONCE = 4

TAKE_AGAIN_S = 60.0
"""For how long a store may fail while files are taken from it, before the job counts as failed."""


class Here:
    """One attempt of a job. To be closed."""

    def __init__(self, folder: Path, spec: JobSpec, address: str, attempt: int) -> None:
        self.folder, self.spec, self.attempt = folder, spec, attempt
        self.workspace = Workspace(folder.parent.parent)
        self.own = f"jobs/{spec.id}"
        record = read_json_or_none(folder / RECORD)
        self.record: dict[str, Any] = record if isinstance(record, dict) and record.get("address") == address else {}
        if not re.fullmatch(rf"jobs/{re.escape(spec.id)}-[0-9a-f]{{8}}", str(self.record.get("job"))):
            self.record = {"job": f"jobs/{spec.id}-{secrets.token_hex(4)}"}
        self.record["address"] = address
        self.bucket = Bucket(address)
        self.job = str(self.record["job"])
        self.pieces = Pieces(self.bucket, self.job)
        self.letters = Letters(self.bucket, self.job, attempt)
        self.files: dict[str, tuple[Entry, Stamp | None]] = {
            name: (Entry.from_list(entry), tuple(stamp) if stamp else None)
            for name, (entry, stamp) in self.record.get("files", {}).items()
        }
        self.error: CdpError | None = None
        self._pulse: dict[str, Any] = {}
        self._taking = self._taken = int(self.record.get("taken", 0)) if self.record.get("attempt") == attempt else 0
        self._news: dict[str, Entry] = {}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._keep, args=(step, patience), name=step.__name__)
            for step, patience in ((self._touch, silence_s()), (self._take, TAKE_AGAIN_S))
        ]

    def close(self) -> None:
        """Say the last word, and leave nothing in the store that nobody needs."""
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        with suppress(ClusterError):
            self._put_lease()
            self._leave()
        self.pieces.close()

    @property
    def busy(self) -> bool:
        """Whether the node has said more than what is here already."""
        return int(self._pulse.get("files", 0)) > self._taken

    def send(self, wanted: Callable[[], bool]) -> str:
        """Send what the job needs. How much that was, in words."""
        made = {name for name in self.files if not self._is_own(name)}
        names = needed(self.workspace, self.spec, made)

        def one(name: str) -> tuple[str, Entry, Stamp] | None:
            path = self.workspace.root / name
            if not wanted():
                return None
            try:
                stamp = stamp_of(path)
                before, then = self.files.get(name, (None, None))
                if before is not None and then == stamp and self.pieces.has_all(before):
                    return name, before, stamp
                own, growing = self._is_own(name), name.endswith(GROWING)
                return name, self.pieces.send(path, own=own, growing=growing), stamp
            except FileNotFoundError:  # it was deleted here just now
                return None
            except OSError as error:
                raise WorkspaceError.refused(path, "read", error) from error

        with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
            sent = [done for done in pool.map(one, names) if done is not None]
        self.files = {name: (entry, stamp) for name, entry, stamp in sent}
        inputs = {name: entry for name, entry, _ in sent}
        self.letters.write(
            letters.INPUTS,
            {"root": str(self.workspace.root), "spec": self.spec.id, "files": letters.listed(inputs)},
        )
        size = sum(entry.size for entry in inputs.values())
        self._remember(attempt=self.attempt, taken=0, sent=self.pieces.sent, sent_bytes=self.pieces.sent_bytes)
        return (
            f"The job needs {len(inputs)} files, {size / 1e6:.1f} MB; {self.pieces.sent} pieces, "
            f"{self.pieces.sent_bytes / 1e6:.1f} MB, were not in the store yet."
        )

    def start(self) -> None:
        """Begin to carry words and files."""
        self._put_lease()
        for thread in self._threads:
            thread.start()

    def put_keys(self) -> None:
        """Send the covered keys that lie in the job's folder; nothing else is to be done with them here."""
        for path in self.folder.glob(f"{KEYS}*"):
            self.bucket.put(f"{self.letters.folder}/{path.name}", path.read_bytes())
        handover.drop(self.folder)

    def catch_up(self) -> None:
        """Take what an attempt that nobody waits for any more has left in the store."""
        self._read_pulse()
        while (before := self._taken) >= 0 and self.busy:
            self._take()
            if self._taken == before:
                break
        self.bucket.clear(self.letters.folder)

    def _keep(self, step: Callable[[], None], patience: float) -> None:
        """Do it again and again; what goes wrong for too long is the error of the job."""
        failing: float | None = None
        while not self._over.wait(TOUCH_S / 2 if failing is None else TOUCH_S):
            try:
                step()
                failing = None
            except ClusterError as error:
                failing = failing or time.monotonic()
                print(error, flush=True)
                if time.monotonic() - failing > patience:
                    self.error = error
            except CdpError as error:  # a full disk here
                self.error = error
                return
            except Exception as error:  # nobody else would hear of it: it would pass for the silence of the node
                traceback.print_exc()
                self.error = ClusterError(f"The job's files could not be carried ({type(error).__name__}: {error}).")
                return

    def _touch(self) -> None:
        self._put_lease()
        self._read_pulse()
        self._show_node()

    def _put_lease(self) -> None:
        facts = {"lease": read_record(self.folder / LEASE) or {}, "beat": self._pulse.get("beat", 0)}
        self.letters.write(letters.LEASE, {**facts, "files": self._taking})

    def _read_pulse(self) -> None:
        self._pulse = self.letters.read(letters.PULSE) or self._pulse
        for name, entry in entries_in(self._pulse.get("news")).items():
            if self._news.get(name) != entry and is_carried(name, self.own):
                with suppress(GoneError):  # it has grown meanwhile: the next word has it
                    self.pieces.fetch(entry, self.workspace.root / name, self._news.get(name))
                    self._news[name] = entry

    def _show_node(self) -> None:
        """What the node says, as its own file would. Its end is shown when there is nothing left to take."""
        node = dict(self._pulse.get("node") or {})
        if not node:
            return
        node["beat"] = self._pulse.get("beat", 0)
        if node.get("phase") == "ended" and self.busy:
            node["phase"] = "running"
            node["beat"] = time.monotonic()  # it lives on as long as something comes in
        if node != read_record(self.folder / NODE):
            write_json(self.folder / NODE, node)

    def _take(self) -> None:
        """Take the newest list of files into the workspace, if it is not here yet."""
        if not self.busy:
            return
        listing = self.letters.read(letters.FILES)
        number = int(listing.get("number", 0))
        if number <= self._taken:
            return
        self._taking = number
        wanted = {n: e for n, e in entries_in(listing.get("files")).items() if is_carried(n, self.own)}
        try:
            self._bring(wanted)
        except GoneError:
            newest = int(self.letters.read(letters.FILES).get("number", 0))
            if newest == number:
                raise
            return
        self._taken = number
        self._remember(taken=number)

    def _bring(self, wanted: dict[str, Entry]) -> None:
        """Fetch what is new beside the workspace, then put all of it in its place, what lists other files last; then
        remove what the job has removed."""
        new = [name for name, entry in wanted.items() if name not in self.files or self.files[name][0] != entry]
        incoming = self.folder / ".incoming"
        staged = {name: incoming / str(number) for number, name in enumerate(new)}
        try:
            self.pieces.fetch_all({staged[name]: wanted[name] for name in new})
            for name in sorted(new, key=lambda name: (name.count("/") == 2, name)):
                self._place(name, staged[name], wanted[name])
        finally:
            for path in staged.values():
                path.unlink(missing_ok=True)
            with suppress(OSError):
                incoming.rmdir()
        for name in [name for name in self.files if self._is_own(name) and name not in wanted]:
            if is_carried(name, self.own) and not is_news(name, self.own):
                path = self.workspace.root / name
                path.unlink(missing_ok=True)
                with suppress(OSError):
                    path.parent.rmdir()
                del self.files[name]

    def _place(self, name: str, path: Path, entry: Entry) -> None:
        target = self.workspace.root / name
        before = self.files.get(name, (entry, None))[1]
        if not self._is_own(name) and target.exists() and stamp_of(target) != before:
            print(f"{name} is there already, or was changed here meanwhile: it stays as it is.", flush=True)
            self.files[name] = entry, before
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
        self.files[name] = entry, stamp_of(target)

    def _is_own(self, name: str) -> bool:
        return name.startswith(f"{self.own}/")

    def _remember(self, **facts: Any) -> None:
        files = {name: [entry.to_list(), stamp] for name, (entry, stamp) in self.files.items()}
        self.record.update(facts, files=files)
        write_json(self.folder / RECORD, self.record)

    def _leave(self) -> None:
        """What the store holds of a job that has finished is not needed any more. Of any other a resume goes on."""
        ended = (self._pulse.get("node") or {}).get("phase") == "ended"
        finished = outcome_of(self.folder, self.attempt) == "finished"
        if ended and finished and not self.busy:
            self.bucket.clear(self.job)


def catch_up(folder: Path, spec: JobSpec, address: str, attempt: int) -> None:
    """Take what the node of an earlier attempt has left in the store, where that was not taken yet."""
    record = read_json_or_none(folder / RECORD)
    if not address or not isinstance(record, dict) or record.get("address") != address:
        return
    if record.get("attempt") != attempt:
        return
    print(f"Looking in {shown(address)} for what attempt {attempt} has left.", flush=True)
    side = Here(folder, spec, address, attempt)
    try:
        side.catch_up()
    finally:
        side.pieces.close()
