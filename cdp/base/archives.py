"""A workspace or a part of it as one file, and back: a zip archive with a list of its files and their SHA-256.

The archive is data from somewhere: reading it trusts nothing. Every name is checked before anything is written, every
file is counted and hashed while it is unpacked, beside the workspace, and only when all of them are right do they take
their places. What is there already is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from cdp import __version__
from cdp.base import versions
from cdp.base.errors import InputError, WorkspaceError
from cdp.base.staging import staging
from cdp.base.workspace import Workspace, disk_faults_told, now, sha256_file

LIST = "cdp-workspace.json"
SCHEMA = 1
LARGEST_LIST = 256 << 20
"""Bytes: the list of a workspace of a million files has about half of that."""

BLOCK = 1 << 20

TOP = ("corpora", "queries", "benchmarks", "projects", "jobs", "llm_cache", "embeddings")
"""The folders of a workspace that can be taken along; the rest is made anew or belongs to this machine."""

SINGLE = ("prices.json", "runs.json")

LAST = frozenset(("manifest.json", "spec.json"))
"""Files that make a folder count as a corpus, query set, benchmark or job: these take their places last."""

KEPT = frozenset(("project.json", "runs.json"))
"""Files that may have been changed since they were taken along: the one that is there stays, and the import says so."""

OF_THIS_MACHINE = frozenset(("alive.lock", "worker.lock", "reserve", "stop.request", "store.json"))

Report = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""

Check = Callable[[str, Path], None]
"""Called with each new file's name in the workspace and where it is unpacked; raises what keeps the archive out."""


@dataclass(frozen=True)
class Written:
    """What an export wrote, or an import brought: files, bytes (before packing), what was left out and why."""

    path: str
    files: int
    size: int
    left_out: list[str] = field(default_factory=list)
    unchanged: int = 0
    """Of an import: files that were there already, the same."""
    made_by: str = ""
    created: str = ""


def export(
    workspace: Workspace, target: Path, folders: Sequence[Path], *, left_out: Iterable[str] = (),
    report: Report = lambda done, total: None,
) -> Written:  # fmt: skip
    """Write these folders (and files) of the workspace into one archive; an existing file is not overwritten.

    WorkspaceError where a file cannot be read, or changes while it is being read.
    """
    if target.exists():
        raise InputError(f"{target} is there already.", hint="Name another file, or remove that one.")
    missing = list(left_out)
    names = []
    for name in sorted({name for folder in folders for name in _files(workspace, folder)}, key=_order):
        if is_name(name):
            names.append(name)
        else:
            missing.append(f"{name}: no name that every machine can have")
    total = sum((workspace.root / name).stat().st_size for name in names)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    listed: list[dict[str, Any]] = []
    done = 0
    try:
        with disk_faults_told("The export"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(partial, "x", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
                for name in names:
                    size, digest = _pack(archive, workspace.root / name, name)
                    listed.append({"path": name, "size": size, "sha256": digest})
                    done += size
                    report(done, total)
                head = {
                    "schema": SCHEMA, "workspace_format": versions.format_of(workspace), "made_by": __version__,
                    "created": now(), "left_out": missing, "files": listed,
                }  # fmt: skip
                archive.writestr(LIST, json.dumps(head, ensure_ascii=False, indent=1))
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
            os.link(partial, target)  # unlike a rename it does not replace what came meanwhile
    except FileExistsError as error:
        raise InputError(f"{target} is there already.", hint="Name another file, or remove that one.") from error
    except OSError as error:
        raise WorkspaceError(f"{target} could not be written: {error.strerror or error}.") from error
    finally:
        partial.unlink(missing_ok=True)
    return Written(str(target), len(listed), done, missing, made_by=__version__)


def _files(workspace: Workspace, folder: Path) -> Iterator[str]:
    """The names of the regular files below a folder that are worth taking along. Links are not followed."""
    if folder.is_file() and not folder.is_symlink():
        yield folder.relative_to(workspace.root).as_posix()
    for parent, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and name not in OF_THIS_MACHINE and stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(workspace.root).as_posix()


def _order(name: str) -> tuple[bool, str]:
    return (PurePosixPath(name).name in LAST, name)


def _pack(archive: zipfile.ZipFile, path: Path, name: str) -> tuple[int, str]:
    before = path.stat()
    digest, size = hashlib.sha256(), 0
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    with open(path, "rb") as source, archive.open(entry, "w", force_zip64=True) as packed:
        while block := source.read(BLOCK):
            digest.update(block)
            size += len(block)
            packed.write(block)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns, before.st_ino) != (after.st_size, after.st_mtime_ns, after.st_ino):
        raise WorkspaceError(f"{path} changed while it was being read.", hint="Try again when no job writes it.")
    return size, digest.hexdigest()


@dataclass(frozen=True)
class _Entry:
    path: str
    size: int
    sha256: str


def import_archive(
    workspace: Workspace, source: Path, *, check: Check = lambda name, unpacked: None,
    report: Report = lambda done, total: None,
) -> Written:  # fmt: skip
    """Bring the files of an archive into the workspace: all of them, or none.

    InputError for an archive that is damaged, holds what it does not list, names a path outside the workspace, or has
    other content for a file that is there.
    """
    with _opened(source) as archive, disk_faults_told("The import"):
        head, entries = _listed(archive, source)
        total = sum(entry.size for entry in entries)
        new, kept = _new(workspace, entries, source)
        free = shutil.disk_usage(_existing(workspace.root)).free
        needed = sum(entry.size for entry in new)
        if needed > free:
            raise WorkspaceError(f"{source.name} takes {needed:,} bytes, and {free:,} are free.")
        with staging(workspace.root) as folder:
            done = total - needed
            for number, entry in enumerate(new):
                _unpack(archive, entry, folder / str(number), source)
                check(entry.path, folder / str(number))
                done += entry.size
                report(done, total)
            _move(workspace, folder, new)
    return Written(
        str(source), len(new), needed, [*(str(text) for text in head.get("left_out", [])), *kept],
        unchanged=len(entries) - len(new) - len(kept), made_by=str(head.get("made_by", "")),
        created=str(head.get("created", "")),
    )  # fmt: skip


_DAMAGE = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
           ValueError, struct.error)  # fmt: skip
"""What zipfile raises for an archive that is torn, encrypted, of another method, or no archive."""


@contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(source) as archive:
            yield archive
    except FileNotFoundError as error:
        raise InputError(f"There is no file {source}.") from error
    except _DAMAGE as error:
        raise InputError(f"It is not a whole archive ({error}).", file=source, hint="Copy it anew.") from error
    except OSError as error:
        raise InputError(f"It cannot be read: {error.strerror or error}.", file=source) from error


def _listed(archive: zipfile.ZipFile, source: Path) -> tuple[dict[str, Any], list[_Entry]]:
    """The archive's own list, checked against what it holds."""

    def wrong(what: str) -> InputError:
        return InputError(what, file=source, hint="Make it anew with: workspace export.")

    infos = {info.filename: info for info in archive.infolist()}
    if len(infos) != len(archive.infolist()):
        raise wrong("It has two files of one name.")
    if LIST not in infos:
        raise wrong(f"It is no archive of a workspace: it has no {LIST}.")
    if infos[LIST].file_size > LARGEST_LIST:
        raise wrong("Its list of files is too large.")
    with archive.open(LIST) as file:
        text = file.read(LARGEST_LIST + 1)
    try:
        head = json.loads(text)
        schema, number = head["schema"], head["workspace_format"]
        entries = [_Entry(entry["path"], entry["size"], entry["sha256"]) for entry in head["files"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise wrong(f"Its list of files cannot be read ({type(error).__name__}).") from error
    if type(schema) is not int or type(number) is not int or schema > SCHEMA or number > versions.current():
        raise InputError("It was written by a newer version of CDP Studio.", file=source, hint="Update this one.")
    for entry in entries:
        if not (type(entry.size) is int and entry.size >= 0 and isinstance(entry.sha256, str)):
            raise wrong("Its list of files is damaged.")
        if not is_name(entry.path):
            raise wrong(f"{str(entry.path)[:200]!r} is no path in a workspace.")
    paths = [entry.path for entry in entries]
    if len(set(paths)) != len(paths) or set(paths) != set(infos) - {LIST}:
        raise wrong("What it holds is not what it lists.")
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    if folders & set(paths):
        raise wrong("One name stands for a file and for a folder.")
    for entry in entries:
        info = infos[entry.path]
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.is_dir() or kind not in (0, stat.S_IFREG):
            raise wrong(f"{entry.path!r} is a link or no plain file.")
        if info.file_size != entry.size:
            raise wrong(f"{entry.path!r} has {info.file_size:,} bytes, its list says {entry.size:,}.")
    return head, sorted(entries, key=lambda entry: _order(entry.path))


def is_name(name: object) -> bool:
    """Whether a name is that of a file of a workspace that may be taken along, to any machine."""
    parts = name.split("/") if isinstance(name, str) else []
    plain = all(
        part and not part.startswith(".") and len(part.encode("utf-8", "replace")) <= 255 and part.isprintable()
        and not any(sign in part for sign in '\\:*?"<>|')
        for part in parts
    )  # fmt: skip
    in_workspace = (len(parts) > 1 and parts[0] in TOP) or (len(parts) == 1 and parts[0] in SINGLE)
    return plain and in_workspace and parts[-1] not in OF_THIS_MACHINE and len(parts) <= 40


def _new(workspace: Workspace, entries: Sequence[_Entry], source: Path) -> tuple[list[_Entry], list[str]]:
    """The files that are not there yet, and a sentence for each that stays as it is here (``KEPT``).

    InputError where others are in their places.
    """
    new, other, kept = [], [], []
    for entry in entries:
        path = workspace.root / entry.path
        if os.path.lexists(path):
            if not _holds(path, entry):
                if path.name in KEPT and path.is_file() and not path.is_symlink():
                    kept.append(f"{entry.path}: the one that is here stays as it is")
                else:
                    other.append(entry.path)
            continue
        above = [parent for parent in path.parents if workspace.root in parent.parents]
        blocked = any(os.path.lexists(parent) and (parent.is_symlink() or not parent.is_dir()) for parent in above)
        if blocked:
            other.append(entry.path)
        else:
            new.append(entry)
    if other:
        more = f" and {len(other) - 5} more" if len(other) > 5 else ""
        raise InputError(
            f"The workspace has other content for {', '.join(other[:5])}{more}.",
            file=source,
            hint="Nothing is overwritten: delete what is there, or import into an empty workspace.",
        )
    return new, kept


def _holds(path: Path, entry: _Entry) -> bool:
    """Whether a plain file with this content is there."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != entry.size:
        return False
    return sha256_file(path) == entry.sha256


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _unpack(archive: zipfile.ZipFile, entry: _Entry, target: Path, source: Path) -> None:
    """Write one file and check its size and hash; never more than its stated size is written."""
    digest, left = hashlib.sha256(), entry.size
    with archive.open(entry.path) as packed, open(target, "xb") as file:
        while block := packed.read(min(BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                break
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if left or digest.hexdigest() != entry.sha256:
        raise InputError(
            f"{entry.path} is damaged in the archive: its SHA-256 is not the listed one.", file=source,
            hint="Nothing was imported. Copy the archive anew.",
        )  # fmt: skip


def _move(workspace: Workspace, folder: Path, entries: Sequence[_Entry]) -> None:
    """Give the unpacked files their places; what came there meanwhile stays. One cut off goes on at the next import."""
    for number, entry in enumerate(entries):
        path = workspace.root / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(folder / str(number), path)
        except FileExistsError:
            if not _holds(path, entry):
                raise WorkspaceError(
                    f"{path} was written by something else during the import.", hint="Run the import again."
                ) from None
