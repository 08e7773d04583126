"""Every path on disk: workspace format, ids, slugs, content hashes, atomic writes, disk faults, in-memory file cache.

The workspace is ``$CDP_WORKSPACE``; else ``data/workspace`` of the clone, or the user's data folder for an installed
package. Folders are created when something is written into them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import resource
import secrets
import stat
import threading
import time
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

from cdp.base.errors import CdpError, ConfigError, InputError, WorkspaceError
from cdp.base.redaction import cleaned, holds_key

# The folder of the package `cdp`: a clone, or an environment's `site-packages`.
CODE = Path(__file__).resolve().parent.parent.parent

# Only a wheel has that folder, see `pyproject.toml`.
INSTALLED = (CODE / "cdp" / "shipped").is_dir()
# The folder of `app.py`, `pages/` and `data/`.
REPOSITORY = CODE / "cdp" / "shipped" if INSTALLED else CODE
SHIPPED_DATA = REPOSITORY / "data"


def shipped_table(name: str) -> dict[str, Any]:
    """Return ``data/<name>.toml``."""
    return tomllib.loads((SHIPPED_DATA / f"{name}.toml").read_text("utf-8"))


FORMAT, FORMAT_FILE = 1, "workspace.json"
_NAME = re.compile(r"[\w][\w.\-]{0,119}", re.UNICODE)
OPEN_FILES = 8192
LONGEST_NAME = 240  # bytes: a file system takes 255, and some names get an ending

DISK_FAULTS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EFBIG: "files may not grow any larger here",
    errno.EMFILE: "too many files are open in this process",
    errno.EIO: "the disk reports an error",
}
# Libraries (safetensors, torch.save, DuckDB) raise errors of their own because of a full disk.
_FULL = re.compile("No space left on device|os error 28|code: 28")
DAMAGED = "The file is damaged: create it again."


class _Folder:
    """A folder of the workspace, called as its attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, workspace: Workspace, owner: type) -> Path:
        return workspace.root / self._name


@dataclass(frozen=True)
class Workspace:
    """The folder with everything a user made. ``Workspace.default()`` is the one in use.

    ``catalog_folder`` holds the catalogue if the workspace cannot be written.
    """

    root: Path
    catalog_folder: Path | None = None

    @classmethod
    def default(cls) -> Workspace:
        configured = os.environ.get("CDP_WORKSPACE", "").strip()
        if not configured and not INSTALLED:
            return cls(SHIPPED_DATA / "workspace")

        # The user's data folder (XDG Base Directory Specification): an upgrade removes the package's own files.
        shared = os.environ.get("XDG_DATA_HOME", "")
        # The specification has relative paths ignored.
        own = Path(shared if shared.startswith("/") else "~/.local/share", "cdp-studio")
        try:
            return cls(Path(configured or own).expanduser().resolve())
        except RuntimeError as error:  # no home folder
            hint = "Name a folder in the environment variable CDP_WORKSPACE."
            raise ConfigError(f"There is no folder for the workspace: {error}", hint=hint) from error

    corpora = _Folder()
    queries = _Folder()
    llm_cache = _Folder()
    benchmarks = _Folder()
    projects = _Folder()
    embeddings = _Folder()
    layers = _Folder()
    """What the frozen layers of retrievers give for texts, for trainings of the upper ones."""
    jobs = _Folder()
    uploads = _Folder()
    """Uploaded files; each is removed once it is stored."""

    @property
    def catalog(self) -> Path:
        return (self.catalog_folder or self.root) / "catalog.duckdb"

    @property
    def catalog_lock(self) -> Path:
        return (self.catalog_folder or self.root) / "catalog.lock"

    def corpus(self, corpus_id: str) -> Path:
        return self.corpora / checked_name(corpus_id)

    def query_set(self, query_set_id: str) -> Path:
        return self.queries / checked_name(query_set_id)

    def job(self, job_id: str) -> Path:
        return self.jobs / checked_name(job_id)

    def benchmark(self, name: str) -> Path:
        return self.benchmarks / checked_name(name)

    def project(self, project_id: str) -> Path:
        return self.projects / checked_name(project_id)


def open_workspace(workspace: Workspace) -> Workspace:
    """Check the workspace's format, and mark a new one. Raises WorkspaceError for another format."""
    path = workspace.root / FORMAT_FILE
    if path.exists():
        value = read_json(path)
        number = value.get("format") if isinstance(value, dict) else None
        if type(number) is not int or number != FORMAT:
            raise WorkspaceError(
                f"The workspace {workspace.root} has format {str(number)[:20]}; this version of CDP Studio reads "
                f"format {FORMAT} only.",
                hint="Use the version that wrote it, or name another workspace with CDP_WORKSPACE.",
            )
    elif workspace.root.is_dir() and os.access(workspace.root, os.W_OK):
        with suppress(WorkspaceError):  # a full disk: the next process marks it
            write_json(path, {"format": FORMAT})

    return workspace


def private_files() -> None:
    """Make all files that this process creates private to its owner, or as ``$CDP_UMASK`` (octal, 077) says."""
    text = os.environ.get("CDP_UMASK", "").strip() or "077"
    if not re.fullmatch(r"0?[0-7]{3}", text):
        raise ConfigError(f"CDP_UMASK must be three octal digits, as 077 or 027, not {text!r}.")
    os.umask(int(text, 8))


def many_files() -> None:
    """Let this process open as many files as a dashboard of many visitors needs: its soft limit is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def is_name(text: str) -> bool:
    """Return True if a text is safe as one path component."""
    return bool(_NAME.fullmatch(text)) and len(text.encode()) <= LONGEST_NAME


def checked_name(name: str) -> str:
    """Return ``name`` if it is safe as one path component; InputError otherwise."""
    if not is_name(name):
        raise InputError(
            f"{name[:80]!r} cannot be a name in the workspace.",
            hint="Use letters, digits, '-', '_' and '.', at most 120 characters, not starting with a dot.",
        )
    return name


def slug(name: str, *, fallback: str = "unnamed", length: int = 48) -> str:
    """Return a readable path component for any text; letters of every script are kept."""
    cleaned = re.sub(r"[^\w]+", "-", name.strip().lower(), flags=re.UNICODE).strip("-_")
    return cleaned[:length].strip("-_") or fallback


def new_id(kind: str, name: str = "") -> str:
    """Return a new id that sorts by time: ``train-20260102-030405-ab12-name``."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    tail = f"-{slug(name, length=32)}" if name else ""
    return f"{kind}-{stamp}-{secrets.token_hex(2)}{tail}"


def now() -> str:
    """Return the time as it is stored: ISO 8601, UTC, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of ``path`` (temp, fsync, rename): readers see the old or the new content."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise WorkspaceError.refused(path, "written", error) from error
    finally:
        with suppress(OSError):  # it was renamed
            temporary.unlink()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with _replacing(path) as file:
        file.write(data)


def disk_fault(error: BaseException | None) -> str:
    """Return the disk's fault in words, with the file, if an error or its cause is one; else empty."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DISK_FAULTS:
            return f"{DISK_FAULTS[error.errno]}{f' ({error.filename})' if error.filename else ''}"
        if _FULL.search(str(error)):
            return DISK_FAULTS[errno.ENOSPC]
        error = error.__cause__ or error.__context__
    return ""


@contextmanager
def disk_faults_told(what: str) -> Iterator[None]:
    """Raise WorkspaceError for errors of the disk. ``what`` names the work: "The import"."""
    try:
        yield
    except CdpError:
        raise
    except Exception as error:
        fault = disk_fault(error)
        if not fault:
            raise
        raise WorkspaceError(f"{what} is not done: {fault}.", hint="What was there before is unchanged.") from error


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically, readable by people."""
    write_bytes(path, (to_json(value, indent=2) + "\n").encode("utf-8", "backslashreplace"))


def write_jsonl(path: Path, records: Iterable[Any]) -> None:
    """Write records atomically, one per line and one in memory."""
    with _replacing(path) as file:
        file.writelines(map(_line, records))


def _line(record: Any) -> bytes:
    """Return the line of a record. UTF-8 has no lone surrogates; their escapes are valid JSON."""
    return (to_json(record) + "\n").encode("utf-8", "backslashreplace")


def to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON without the keys that this process knows."""
    text = json.dumps(value, ensure_ascii=False, default=str, indent=indent)
    return json.dumps(cleaned(json.loads(text)), ensure_ascii=False, indent=indent) if holds_key(text) else text


# Digits of a whole number that may not fit into 64 bits; long fractions have as many, and are read twice.
_LONG = re.compile(rb"\d{19}")


def parse_json(data: bytes) -> Any:
    """Return a JSON value. ValueError, for whole numbers beyond 64 bits and endless nesting too."""
    try:
        return json.loads(data, parse_int=_whole) if _LONG.search(data) else json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole(digits: str) -> int:
    value = int(digits)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"a number of {len(digits)} digits is in it")
    return value


def plain_file(name: str, flags: int) -> int:
    """Open a file, as an ``opener``. OSError for a pipe, which would be waited for, and a device, which has no end."""
    descriptor = os.open(name, flags | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode) or os.path.isdir(name):  # of a folder `open` says what it is
        return descriptor
    os.close(descriptor)
    raise OSError("it is a pipe or a device")


def read_json(path: Path) -> Any:
    """Return the JSON value in ``path``; WorkspaceError if it is missing or damaged."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            return parse_json(file.read())
    except FileNotFoundError as error:
        raise WorkspaceError(f"{path} does not exist.") from error
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"{path} cannot be read: {error}.", hint=DAMAGED) from error


def read_json_or_none(path: Path) -> Any | None:
    """Return the JSON value in ``path``, None if there is none or it is damaged."""
    try:
        with open(path, "rb", opener=plain_file) as file:
            return parse_json(file.read())
    except (OSError, ValueError):
        return None


def append_jsonl(path: Path, records: Iterable[Any], *, sync: bool = False) -> None:
    """Append records, one per line, in a single write. A torn last line is closed first."""
    lines = b"".join(map(_line, records))
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines = b"\n" + lines
        file.write(lines)
        if sync:
            file.flush()
            os.fsync(file.fileno())


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the records of a file written by ``append_jsonl``; lines torn by a crash are skipped."""
    return (record for _, record in numbered_jsonl(path) if record is not None)


def numbered_jsonl(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each line's number, from 1, and its record, None where it holds none; a torn last line is left out."""
    if not path.exists():
        return

    try:
        opened = open(path, "rb", opener=plain_file)  # noqa: SIM115 — closed below
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be read: {error}.", hint=DAMAGED) from error

    with opened as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                record = parse_json(line)
            except ValueError:
                record = None
            yield number, record


def sha256_file(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with open(path, "rb", opener=plain_file) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_text(*parts: str) -> str:
    """Return the hex SHA-256 of several texts, each preceded by its length."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def shuffle_key(*words: object) -> bytes:
    """Return what things are sorted by for a random order that is the same on every machine."""
    return hashlib.sha256("\0".join(map(str, words)).encode("utf-8", "surrogatepass")).digest()


def folder_size(path: Path) -> int:
    """Return the bytes of all files below ``path``."""
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            with suppress(OSError):  # deleted meanwhile
                total += os.lstat(os.path.join(folder, name)).st_size
    return total


T = TypeVar("T")

# File systems stamp changes by a clock that ticks every few milliseconds: a file that changed just now may change once
# more within the same stamp, so its value is not kept (git calls such an entry racily clean).
FRESH_NS = 20_000_000


class FileCache:
    """LRU cache of values computed from files. Cached values are shared: treat them as read-only."""

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, tuple[tuple[int, ...], Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path, question: Hashable, load: Callable[[], T]) -> T:
        """Return the cached answer to ``question`` while ``path`` is unchanged, else call ``load``.

        Errors are not cached, nor is anything of a file that does not exist.
        """
        try:
            stat = os.stat(path)
        except OSError:
            return load()

        # A copy that keeps times (rsync, cp -p) changes no mtime: the time of change of the inode cannot be set.
        stamp, key = (stat.st_ctime_ns, stat.st_mtime_ns, stat.st_size, stat.st_ino), (path, question)
        with self._lock:
            kept = self._values.get(key)
            if kept is not None and kept[0] == stamp:
                self._values.move_to_end(key)
                value: T = kept[1]
                return value

        value = load()

        if abs(time.time_ns() - stat.st_ctime_ns) < FRESH_NS:
            return value

        with self._lock:
            self._values[key] = (stamp, value)
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

        return value

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a file as it is now; empty where there is none."""
        return self.get(path, "sha256", lambda: sha256_file(path)) if path.is_file() else ""


# Manifests and other small records.
RECORDS = FileCache()
# Values that pages read at every click; some are large.
ANSWERS = FileCache(64)
