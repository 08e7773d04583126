"""Modes (operator, local, shared, read-only), what each may do, which paths a visitor may name: asked by all rooms.

The command line and the workers of jobs run as the operator and are not confined. A dashboard declares itself once
(``in_dashboard``, by its router); from then on every caller in this process is a visitor, in every thread, callback and
fragment. The mode belongs to the process and not to a call, so that a call that forgets it is not let through.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from cdp.base.errors import CdpError, ConfigError, InputError
from cdp.base.text import typed_path
from cdp.base.workspace import SHIPPED_DATA, Workspace

READ_ONLY = "CDP_READ_ONLY"
SHARED = "CDP_SHARED"
# Folders that the operator allows visitors, separated as in PATH.
FOLDERS = "CDP_ALLOWED_FOLDERS"


class Mode(StrEnum):
    """How this process is used."""

    OPERATOR = "operator"
    LOCAL = "local"
    SHARED = "shared"
    READ_ONLY = "read-only"


ABOUT = {
    Mode.OPERATOR: "the command line, and jobs at work",
    Mode.LOCAL: "a dashboard on the loopback address, without sign-in",
    Mode.SHARED: "a dashboard with an `[auth]` section, or one that others can reach: another address, behind a "
    f"proxy, or `{SHARED}=1`",
    Mode.READ_ONLY: f"any dashboard with `{READ_ONLY}=1`",
}


class Action(StrEnum):
    """A row of the table: an action, in words."""

    LOOK = "see pages, documents, queries, results and logs (keys cut out); download what a page shows"
    SEARCH = "search a corpus or benchmark with BM25 or a retriever that is on this machine (its index is kept)"
    CHANGE = "import, upload, rename, delete"
    RUN = "start, stop, resume and delete jobs"
    ASK = "have a model write: previews by an endpoint or a local model"
    KEY = "use the server's own key, at the endpoints that it is for"
    ANY_ENDPOINT = "ask any other endpoint, with a key of one's own or none"
    ANY_CLUSTER = "choose the Ray cluster that the workspace's jobs go to"
    FOLDERS = "name a path in the workspace or in `CDP_ALLOWED_FOLDERS`"
    HOME = "name a path in the home of the server's user, hidden files excepted"
    ANY_PATH = "name any path"
    ANY_MODEL = "have any model downloaded from the hub"


_EVERYBODY = frozenset(Mode)
_CHANGING = _EVERYBODY - {Mode.READ_ONLY}
_ALONE = frozenset({Mode.OPERATOR, Mode.LOCAL})

TABLE: dict[Action, frozenset[Mode]] = {
    Action.LOOK: _EVERYBODY,
    Action.SEARCH: _EVERYBODY,
    Action.CHANGE: _CHANGING,
    Action.RUN: _CHANGING,
    Action.ASK: _CHANGING,
    Action.KEY: _CHANGING,
    Action.ANY_ENDPOINT: _ALONE,
    Action.ANY_CLUSTER: _ALONE,
    Action.FOLDERS: _CHANGING,
    Action.HOME: _ALONE,
    Action.ANY_PATH: frozenset({Mode.OPERATOR}),
    Action.ANY_MODEL: _ALONE,
}

REASON = "This dashboard is read-only: it shows results and changes nothing."

# The mode that this dashboard declared; None in every other process.
_declared: Mode | None = None


class NotAllowedError(ConfigError):
    """The mode does not allow it; another dashboard, or the command line, may do it."""


class ReadOnlyError(CdpError):
    """A change of the workspace was asked of a read-only dashboard."""

    kind = "configuration"


def in_dashboard(*, shared: bool = False) -> None:
    """From now on this process is a dashboard. Once shared it stays so: the rule is never loosened while it runs."""
    global _declared
    _declared = Mode.SHARED if shared or _declared is Mode.SHARED else Mode.LOCAL


def mode() -> Mode:
    """Return the mode of this process."""
    if _declared is None:
        return Mode.OPERATOR
    if _set(READ_ONLY):
        return Mode.READ_ONLY
    return Mode.SHARED if _set(SHARED) else _declared


def _set(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")


def may(action: Action) -> bool:
    """Return True if this process may do it."""
    return mode() in TABLE[action]


def require(action: Action) -> None:
    """Raise unless this process may do it: ReadOnlyError on a read-only dashboard, NotAllowedError elsewhere."""
    if may(action):
        return
    if mode() is Mode.READ_ONLY:
        raise ReadOnlyError(REASON, hint=f"Start one without {READ_ONLY}, or use the command line.")
    raise NotAllowedError(f"This dashboard may not do that: {action}.", hint="Use the command line on the server.")


def read_only() -> bool:
    """Return True if this process is a dashboard that may change nothing."""
    return mode() is Mode.READ_ONLY


# Paths: any for the operator; a visitor reads the workspace, the folders of ``CDP_ALLOWED_FOLDERS``, the shipped data,
# and on a local dashboard the user's home without its hidden files. A path is resolved first, links included, and
# compared then; the resolved path is handed on. Visitors name no path to write: what they export is a download.

# Files and folders looked at below a folder that a visitor names.
MAX_ENTRIES = 200_000

# The system's own views hold no user's files: never allowed.
_NEVER = tuple(Path(name) for name in ("/proc", "/sys", "/dev", "/run"))


def to_read(workspace: Workspace, text: str | Path) -> Path:
    """Return the file or folder to read. InputError for a malformed path, NotAllowedError outside allowed folders."""
    if may(Action.ANY_PATH):
        return typed_path(text)

    require(Action.FOLDERS)

    path = _resolved(text)
    allowed = roots(workspace)
    # The same sentence whether the path exists or not: visitors learn nothing of what lies outside.
    if not _inside(path, allowed):
        raise NotAllowedError(
            f"{text} is not in a folder that this dashboard may use.",
            hint=f"Upload the file, or have the operator add its folder to {FOLDERS}.",
        )

    _check_regular(path)

    if path.is_dir():
        _check_below(path, allowed)

    return path


def to_write(text: str | Path) -> Path:
    """Return the file or folder to write. NotAllowedError for visitors, InputError for a malformed path."""
    require(Action.ANY_PATH)
    return typed_path(text)


def is_path(text: str) -> bool:
    """Return True if a text that may also be a name can only be a path."""
    return text.startswith(("/", "~", ".", "\\")) or ".." in Path(text).parts or text.count("/") > 1


def names_folder(text: str) -> bool:
    """Return True if a text names a folder that is here, or can be no name at all."""
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return True


def roots(workspace: Workspace) -> list[Path]:
    """Return the workspace, the shipped data and the operator's folders, resolved."""
    folders = [workspace.root, SHIPPED_DATA]
    for part in os.environ.get(FOLDERS, "").split(os.pathsep):
        if part.strip() and not os.path.isabs(os.path.expanduser(part)):
            raise ConfigError(f"{FOLDERS} names {part!r}: each folder must be an absolute path.")
        folders += [Path(part).expanduser()] if part.strip() else []
    return [folder.resolve() for folder in folders]


def within(path: Path, folders: list[Path]) -> bool:
    """Return True if a resolved path lies in one of the folders, and in none of the system's own views."""
    return not any(map(path.is_relative_to, _NEVER)) and any(map(path.is_relative_to, folders))


def _resolved(text: str | Path) -> Path:
    """Return the path without links and dots."""
    if not str(text).strip() or "\0" in str(text):
        raise InputError("That is no path.", hint="Give the path of a file or folder on this server.")
    try:
        return typed_path(text).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a name too long, links in a circle, half a surrogate pair
        raise InputError("That path leads nowhere.", hint="Check it; it is read on the server.") from error


def _inside(path: Path, folders: list[Path]) -> bool:
    """Return True if a resolved path lies in one of the folders or, where allowed, below no hidden folder at home."""
    if within(path, folders):
        return True
    if not may(Action.HOME) or not within(path, [Path("/")]):
        return False
    try:
        below = path.relative_to(Path.home().resolve())
    except (ValueError, RuntimeError):
        return False
    return not any(part.startswith(".") for part in below.parts)


def _check_regular(path: Path) -> None:
    """Refuse a device, a pipe or a socket; a missing path is for the reader to name."""
    try:
        special = path.exists() and not (path.is_file() or path.is_dir())
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}.") from error
    if special:
        raise InputError(f"{path.name} is neither a file nor a folder.", hint="Name a regular file.")


def _check_below(folder: Path, folders: list[Path]) -> None:
    """Check that all below a folder are files and folders; a link may lead to a file of the allowed folders."""
    for number, path in enumerate(folder.rglob("*")):
        if number > MAX_ENTRIES:
            raise InputError(f"{folder.name} holds over {MAX_ENTRIES:,} files.", hint="Name the folder itself.")
        if path.is_symlink():
            target = _resolved(path)
            # A linked folder could hold links that lead out.
            if not _inside(target, folders) or target.is_dir():
                raise NotAllowedError(
                    f"{path.relative_to(folder)} is a linked folder, or leads out of those this dashboard may use.",
                    hint="Copy the file itself.",
                )
            path = target
        _check_regular(path)
