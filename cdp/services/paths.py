"""Paths that somebody typed: whatever the operator names, and for a visitor only what lies in allowed folders.

Allowed are the workspace (for writing: its ``exports``), the folders of ``CDP_ALLOWED_FOLDERS``, for reading the data
that ships with CDP Studio, and on a dashboard that nobody else can reach the user's home without its hidden files. A
path is resolved first, links included, and compared then; what is handed on is the resolved path.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cdp.base.errors import ConfigError, InputError
from cdp.base.text import typed_path
from cdp.base.workspace import SHIPPED_DATA, Workspace
from cdp.services.modes import Action, NotAllowedError, may, require

ALLOWED = "CDP_ALLOWED_FOLDERS"
EXPORTS = "exports"

# Files and folders looked at below a folder that a visitor names.
MOST_ENTRIES = 200_000

# What the system shows of itself there is no file of anybody's, whatever is allowed.
_NEVER = tuple(Path(name) for name in ("/proc", "/sys", "/dev", "/run"))


def to_read(workspace: Workspace, text: str | Path) -> Path:
    """The file or folder to read from. InputError for what is no path, NotAllowedError outside the allowed folders."""
    if may(Action.ANY_PATH):
        return _plain(text)
    require(Action.FOLDERS)
    path = _resolved(text)
    roots_ = roots(workspace)
    _check_inside(path, text, roots_)
    kind = _kind(path)
    if kind == "folder":
        _check_below(path, roots_)
    elif kind == "special":
        raise InputError(f"{path.name} is neither a file nor a folder.", hint="Name a regular file.")
    return path


def to_write(workspace: Workspace, text: str | Path) -> Path:
    """The file or folder to write. As ``to_read``; nothing outside ``exports`` is written over."""
    if may(Action.ANY_PATH):
        return _plain(text)
    require(Action.FOLDERS)
    path = _resolved(text)
    exports = (workspace.root / EXPORTS).resolve()
    if path.is_relative_to(exports):
        if _kind(path) == "special":
            raise InputError(f"{path.name} is neither a file nor a folder.", hint="Choose another name.")
        return path
    root = workspace.root.resolve()
    if path.is_relative_to(root) or root.is_relative_to(path):
        raise NotAllowedError(
            f"{text} lies among the workspace's own files.", hint=f"Write below {exports}, or to a folder of yours."
        )
    _check_inside(path, text, roots(workspace, shipped=False))
    if _kind(path) != "" and not (path.is_dir() and not any(path.iterdir())):
        raise InputError(f"{text} is there already and is not written over.", hint="Choose another name.")
    return path


def is_path(text: str) -> bool:
    """Whether a text that may also be a name can only be a path."""
    return text.startswith(("/", "~", ".", "\\")) or ".." in Path(text).parts or text.count("/") > 1


def _plain(text: str | Path) -> Path:
    """What the operator named, ``~`` read."""
    return typed_path(text)


def _resolved(text: str | Path) -> Path:
    """The path itself, without links and dots."""
    if not str(text).strip() or "\0" in str(text):
        raise InputError("That is no path.", hint="Give the path of a file or folder on this server.")
    try:
        return _plain(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, links in a circle, half a surrogate pair
        raise InputError("That path leads nowhere.", hint="Check it; it is read on the server.") from error


def roots(workspace: Workspace, *, shipped: bool = True) -> list[Path]:
    """Return the workspace, the shipped data and the operator's folders, resolved."""
    named = [part for part in os.environ.get(ALLOWED, "").split(os.pathsep) if part.strip()]
    folders = [workspace.root, *([SHIPPED_DATA] if shipped else [])]
    for part in named:
        if not os.path.isabs(os.path.expanduser(part)):
            raise ConfigError(f"{ALLOWED} names {part!r}: each folder must be a whole path.")
        folders.append(Path(part).expanduser())
    return [folder.resolve() for folder in folders]


def within(path: Path, folders: list[Path]) -> bool:
    """Return True if a resolved path lies in one of the folders, and in none that the system shows of itself."""
    if any(path.is_relative_to(folder) for folder in _NEVER):
        return False
    return any(path.is_relative_to(folder) for folder in folders)


def _inside(path: Path, folders: list[Path]) -> bool:
    return within(path, folders) or (within(path, [Path("/")]) and _in_home(path))


def _in_home(path: Path) -> bool:
    """Whether it lies in the user's home, below no hidden folder, where the home is allowed."""
    if not may(Action.HOME):
        return False
    try:
        below = path.relative_to(Path.home().resolve())
    except (ValueError, RuntimeError):
        return False
    return not any(part.startswith(".") for part in below.parts)


def _check_inside(path: Path, text: str | Path, folders: list[Path]) -> None:
    """The same sentence whether the path exists or not: what lies outside is nobody's business."""
    if not _inside(path, folders):
        raise NotAllowedError(
            f"{text} is not in a folder that this dashboard may use.",
            hint=f"Upload the file, or have the operator add its folder to {ALLOWED}.",
        )


def _kind(path: Path) -> str:
    """``file``, ``folder``, ``special`` (a device, a pipe, a socket), or empty for what is not there."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(status.st_mode) else "special"


def _check_below(folder: Path, folders: list[Path]) -> None:
    """Everything below a folder is a file or folder in the allowed ones, links included."""
    for number, path in enumerate(_entries(folder, set())):
        if number > MOST_ENTRIES:
            raise InputError(f"{folder.name} holds over {MOST_ENTRIES:,} files.", hint="Name the folder itself.")
        if path.is_symlink():
            target = _resolved(path)
            if not _inside(target, folders):
                raise NotAllowedError(
                    f"{path.relative_to(folder)} is a link that leads out of the folders that this dashboard may use.",
                    hint="Copy the file itself.",
                )
            path = target
        if _kind(path) == "special":
            raise InputError(f"{path.name} is neither a file nor a folder.", hint=f"Take it out of {folder.name}.")


def _entries(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """What lies below a folder, through links to folders too, each folder once."""
    seen.add(folder)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # the reader says what it cannot read
    for entry in entries:
        path = Path(entry.path)
        yield path
        if entry.is_dir():
            inner = path.resolve()
            if inner not in seen:
                yield from _entries(inner, seen)
