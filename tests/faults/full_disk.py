"""A disk that is full at each write of a job in turn: how much space there is, what the job then does, what is kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdp import jobs
from cdp.base.errors import WorkspaceError
from tests.faults.chaos.kinds import SUBMIT, Ground, differences, outputs
from tests.jobs.support import until_state

BLOCK = 4096
TOLD = ("space", "full")


@contextmanager
def disk(mount: Path, size: str) -> Iterator[Path]:
    """A disk of its own; an OSError or CalledProcessError where this user may not mount one."""
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)], check=True, capture_output=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)


def fill_up(path: Path, *, but: int = 0) -> None:
    """Write zeros until there is no space left but so many blocks of 4 KiB."""
    with suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(bytes(64 * BLOCK))
    with suppress(OSError), open(path, "ab", buffering=0) as file:
        while True:
            file.write(bytes(BLOCK))
    assert shutil.disk_usage(path).free == 0
    os.truncate(path, path.stat().st_size // BLOCK * BLOCK - BLOCK * but)


@dataclass
class FullDisk:
    """One kind of job, again and again, each time on a disk with another number of free blocks."""

    ground: Ground
    kind: str
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    number: int = 0
    expected: dict[str, Any] = field(default_factory=dict)
    blocks: int = 0
    """What an unbroken job of this kind takes and keeps."""

    def __post_init__(self) -> None:
        root = self.ground.workspace.root
        before = shutil.disk_usage(root).free
        job_id = self._submit()
        job = until_state(self.ground.workspace, job_id, "finished", "failed", "lost", patience_s=300)
        assert job.state == "finished", job.failure
        self.blocks = (before - shutil.disk_usage(root).free) // BLOCK
        self.expected = outputs(self.ground.workspace, job_id)
        self._discard(job_id)

    def attack(self, blocks: Sequence[int]) -> None:
        """A job with each of these numbers of free blocks, and its resume with space again."""
        for free in blocks:
            self._one(free)

    def _one(self, free: int) -> None:
        workspace = self.ground.workspace
        kept = contents(workspace.root)
        ballast = workspace.root / "ballast"
        fill_up(ballast, but=free)
        try:
            job_id = self._submit()
        except WorkspaceError as error:
            ballast.unlink()
            self.ends["not begun"] += 1
            if not any(word in str(error) for word in TOLD):
                self._wrong(free, f"the submit says {error}")
            self._compare(free, kept, contents(workspace.root), "a refused submit")
            return
        job = until_state(workspace, job_id, "finished", "failed", "stopped", "lost", patience_s=300)
        ballast.unlink()
        self.ends[str(job.state)] += 1
        own = workspace.job(job_id)
        if job.state == "failed":
            kind = (job.failure or {}).get("kind")
            if kind != "disk":
                self._wrong(free, f"failed as {kind}: {job.failure} {jobs.read_log(workspace, job_id)[-1500:]}")
            half = [str(path) for path in own.rglob(".*") if path.is_file() and path.stat().st_size > 0]
            if half:
                self._wrong(free, f"half-written files are left: {half}")
        elif job.state != "finished":
            self._wrong(free, f"it ended as {job.state}: {job.failure} {jobs.read_log(workspace, job_id)[-1500:]}")
        after = contents(workspace.root)
        self._compare(free, kept, {name: after[name] for name in kept if name in after}, "the full disk")
        if job.state != "finished":
            jobs.resume(workspace, job_id)
            job = until_state(workspace, job_id, "finished", "failed", "stopped", "lost", patience_s=300)
            if job.state != "finished":
                self._wrong(free, f"resumed it ended as {job.state}: {job.failure}")
        if job.state == "finished":
            for difference in differences(self.expected, outputs(workspace, job_id)):
                self._wrong(free, f"in the end there is something else: {difference}")
        self._discard(job_id)

    def _compare(self, free: int, one: dict[str, str], other: dict[str, str], after: str) -> None:
        changed = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        if changed:
            self._wrong(free, f"{after} changed {changed}")

    def _submit(self) -> str:
        self.number += 1
        return SUBMIT[self.kind](self.ground, self.number)

    def _discard(self, job_id: str) -> None:
        """The job and all that it made, so that the next one finds what this one found."""
        workspace = self.ground.workspace
        jobs.delete(workspace, job_id)
        shutil.rmtree(workspace.embeddings, ignore_errors=True)
        shutil.rmtree(workspace.llm_cache, ignore_errors=True)
        for folder in (workspace.queries, workspace.benchmarks):
            for path in folder.iterdir():
                if path.is_dir() and path.name not in (self.ground.query_set, self.ground.benchmark, ".info"):
                    shutil.rmtree(path)

    def _wrong(self, free: int, what: str) -> None:
        self.wrong.append(f"{self.kind}, {free} blocks free: {what}")


def contents(root: Path) -> dict[str, str]:
    """The hash of each file that holds what somebody made: no locks, no catalogue, no measures kept to save time."""
    found: dict[str, str] = {}
    for folder in ("corpora", "queries", "benchmarks", "jobs"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix != ".lock" and not {"measures", ".info"} & set(path.parts):
                found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
