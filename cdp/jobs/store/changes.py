"""What a worker has changed in its node's workspace since it was made: looked for every second, sent when it is whole.

Here everything is written under a hidden name and renamed, or only ever grows. So what is visible is whole, and a look
at all of it at one moment is what a resume can go on from. The files are kept by a second name (a hard link) while they
are sent: a training that removes its last checkpoint for the next takes nothing away.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from cdp.jobs.store.needs import GROWING, SHARED_TOPS, files_below, is_carried, is_news
from cdp.jobs.store.pieces import Entry, Pieces

REWRITTEN = (".json", ".jsonl", ".log", ".md")
LARGEST_REWRITTEN = 16 << 20
"""Bytes of a text of the job in which the node's folder is replaced by the workspace's."""

TRIES = 5

Stamp = tuple[int, int, int]
"""Inode, size and time of change."""


class Changes:
    """The files of one job on this node, as they were last sent."""

    def __init__(self, root: Path, own: str, pieces: Pieces, change: tuple[bytes, bytes], links: Path) -> None:
        self.root, self.own, self.pieces, self.change, self.links = root, own, pieces, change, links
        self._stamps: dict[str, Stamp] = {}
        self._entries: dict[str, Entry] = {}
        self._given: set[str] = set()

    def given(self, entries: dict[str, Entry]) -> None:
        """What the workspace was made from: it need not be sent."""
        for name, entry in entries.items():
            with suppress(OSError):
                self._stamps[name] = self._stamp(name)
                self._entries[name] = entry
        self._given = {name for name in self._entries if not name.startswith(f"{self.own}/")}

    def news(self) -> dict[str, Entry]:
        """The files that say how it goes, as they are now."""
        names = [name for name in files_below(self.root, self.own) if is_news(name, self.own)]
        return self._sent(names, {name: self.root / name for name in names})

    def whole(self) -> dict[str, Entry] | None:
        """All other files as they are at one moment; None where nothing has changed, or no quiet moment was found."""
        for _ in range(TRIES):
            seen = self._look()
            changed = [name for name, stamp in seen.items() if self._stamps.get(name) != stamp]
            gone = {name for name in list(self._entries) if is_followed(name, self.own)} - set(seen)
            if not changed and not gone:
                return None
            try:
                kept = self._kept(changed)
                again = self._look()
                if any(again.get(name) != stamp and not name.endswith(GROWING) for name, stamp in seen.items()):
                    continue
                self._sent(changed, kept)
                for name in gone:
                    del self._entries[name], self._stamps[name]
                    self._given.discard(name)
                return {name: self._entries[name] for name in seen if name not in self._given and name in self._entries}
            except FileNotFoundError:
                continue
            finally:
                shutil.rmtree(self.links, ignore_errors=True)
        return None

    def _sent(self, names: Iterable[str], files: dict[str, Path]) -> dict[str, Entry]:
        entries = {}
        for name in names:
            stamp = _stamp_of(files[name])
            if self._stamps.get(name) != stamp:
                own = name.startswith(f"{self.own}/")
                rewritten = own and name.endswith(REWRITTEN) and stamp[1] <= LARGEST_REWRITTEN
                change = self.change if rewritten else None
                self._entries[name] = self.pieces.send(
                    files[name], own=own, growing=name.endswith(GROWING), change=change
                )
                self._stamps[name] = stamp
                self._given.discard(name)
            entries[name] = self._entries[name]
        return entries

    def _kept(self, names: list[str]) -> dict[str, Path]:
        self.links.mkdir(exist_ok=True)
        kept = {name: self.links / str(number) for number, name in enumerate(names)}
        for name, link in kept.items():
            os.link(self.root / name, link)
        return kept

    def _look(self) -> dict[str, Stamp]:
        seen = {}
        for folder in (*SHARED_TOPS, self.own):
            for name in files_below(self.root, folder):
                if is_followed(name, self.own):
                    with suppress(FileNotFoundError):
                        seen[name] = self._stamp(name)
        return seen

    def _stamp(self, name: str) -> Stamp:
        return _stamp_of(self.root / name)


def is_followed(name: str, own: str) -> bool:
    """Whether a file is one of those that are sent together."""
    return is_carried(name, own) and not is_news(name, own)


def _stamp_of(path: Path) -> Stamp:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
