"""Read-only mode: a dashboard that shows results and lets nobody change anything.

``CDP_READ_ONLY=1`` in the server's environment turns it on, for the dashboard alone: its router calls ``in_dashboard``
once, and from then on every service that writes refuses in this process. The command line and the workers of jobs that
already run are other processes and go on as ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from cdp.errors import CdpError

VARIABLE = "CDP_READ_ONLY"
REASON = "This dashboard is read-only: it shows results and changes nothing."

_P = ParamSpec("_P")
_T = TypeVar("_T")
_dashboard = False


class ReadOnlyError(CdpError):
    """Something that would change the workspace was asked of a read-only dashboard."""

    kind = "configuration"


def in_dashboard() -> None:
    """From now on this process is a dashboard and obeys ``CDP_READ_ONLY``."""
    global _dashboard
    _dashboard = True


def read_only() -> bool:
    """Whether this process is a dashboard that may change nothing."""
    return _dashboard and os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on")


def writes(action: Callable[_P, _T]) -> Callable[_P, _T]:
    """Mark a service that changes the workspace: it raises ReadOnlyError in a read-only dashboard."""

    @wraps(action)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if read_only():
            raise ReadOnlyError(REASON, hint=f"Start one without {VARIABLE}, or use the command line.")
        return action(*args, **kwargs)

    guarded.__dict__["writes"] = True
    return guarded
