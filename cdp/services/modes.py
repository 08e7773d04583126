"""Who may do what: one table of actions and modes. ``access`` enforces it, docs/RELIABILITY.md shows it.

The command line and the workers of jobs run as the operator and are not confined. A dashboard says what it is once
(``in_dashboard``, by its router); from then on everybody in this process is a visitor, in every thread, callback and
fragment. The mode belongs to the process and not to a call, so that a call that forgets it is not let through.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

from cdp.base.errors import CdpError, ConfigError

READ_ONLY = "CDP_READ_ONLY"
SHARED = "CDP_SHARED"


class Mode(StrEnum):
    """How this process is used."""

    OPERATOR = "operator"
    LOCAL = "local"
    SIGNED_IN = "signed-in"
    OPEN = "open"
    READ_ONLY = "read-only"


ABOUT = {
    Mode.OPERATOR: "the command line, and jobs at work",
    Mode.LOCAL: "a dashboard on the loopback address, without sign-in",
    Mode.SIGNED_IN: "a dashboard with an `[auth]` section",
    Mode.OPEN: f"a dashboard that others can reach: another address, behind a proxy, or `{SHARED}=1`",
    Mode.READ_ONLY: f"any dashboard with `{READ_ONLY}=1`",
}


class Action(StrEnum):
    """What the table has a row for."""

    LOOK = "see pages, documents, queries, results and logs (keys cut out); download what a page shows"
    SEARCH = "search a corpus or benchmark with BM25 or a retriever that is on this machine (its index is kept)"
    CHANGE = "import, upload, export to the server, rename, delete"
    RUN = "start, stop, resume and delete jobs"
    ASK = "have a model write: previews by an endpoint or a local model"
    KEY = "use the server's own key, at the endpoints that it is for"
    ANY_ENDPOINT = "ask any other endpoint, with a key of one's own or none"
    ANY_CLUSTER = "give jobs to any other Ray cluster than the workspace's own and those in `CDP_ALLOWED_CLUSTERS`"
    FOLDERS = "name a path in the workspace or in `CDP_ALLOWED_FOLDERS`"
    HOME = "name a path in the home of whoever started the server, hidden files excepted"
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


class NotAllowedError(ConfigError):
    """What was asked is not for this mode; another dashboard, or the command line, may do it."""


class ReadOnlyError(CdpError):
    """Something that would change the workspace was asked of a read-only dashboard."""

    kind = "configuration"


@dataclass(frozen=True)
class _Dashboard:
    sign_in: bool
    shared: bool


_dashboard: _Dashboard | None = None


def in_dashboard(*, sign_in: bool = False, shared: bool = False) -> None:
    """From now on this process is a dashboard. Once shared it stays so: the rule is never loosened while it runs."""
    global _dashboard
    before = _dashboard or _Dashboard(False, False)
    _dashboard = _Dashboard(sign_in or before.sign_in, shared or before.shared)


def mode() -> Mode:
    """The mode of this process."""
    if _dashboard is None:
        return Mode.OPERATOR
    if _set(READ_ONLY):
        return Mode.READ_ONLY
    if _dashboard.sign_in:
        return Mode.SIGNED_IN
    return Mode.OPEN if _dashboard.shared or _set(SHARED) else Mode.LOCAL


def may(action: Action) -> bool:
    """Whether this process may do it."""
    return mode() in TABLE[action]


def require(action: Action) -> None:
    """Raise unless this process may do it: ReadOnlyError on a read-only dashboard, NotAllowedError elsewhere."""
    if may(action):
        return
    if mode() is Mode.READ_ONLY:
        raise ReadOnlyError(REASON, hint=f"Start one without {READ_ONLY}, or use the command line.")
    raise NotAllowedError(f"This dashboard may not do that: {action}.", hint="Use the command line on the server.")


def read_only() -> bool:
    """Whether this process is a dashboard that may change nothing."""
    return mode() is Mode.READ_ONLY


def _set(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")
