"""Every error that CDP Studio raises on purpose.

::

    CdpError               what is wrong, where, and what to do next
    ├── InputError         a file or a value given by the user cannot be used   (kind "data")
    ├── ConfigError        a setting is unknown, out of range or contradictory  (kind "configuration")
    ├── NotFoundError      no corpus, query set, job, benchmark … of that name  (kind "configuration")
    ├── ModelError         a model cannot be loaded or does not fit its role    (kind "configuration")
    ├── ProviderError      the LLM endpoint failed or is unreachable            (kind "network")
    │   └── RefusedError   it refuses the key, the model or the account         (kind "configuration")
    ├── ClusterError       a cluster cannot run the job, or died, or its node   (kind "cluster")
    ├── WorkspaceError     the workspace on disk cannot be read or written      (kind "disk")
    └── RepeatedFailureError   many items of a run failed one after another     (kind of the last failure)

The command line prints the message and exits with 2; a page shows it in place of its result; a worker records it as
the failure of its job. Anything else that escapes is a bug and is treated as one (kind "bug").
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SHOWN_PROBLEMS = 20

# The least similarity (difflib's ratio, from 0 to 1) at which one name is taken for another misspelt.
NEAR = 0.6


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that ``name`` most likely stands for, upper and lower case alike; empty if none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=NEAR)
    return by_folded[matches[0]] if matches else ""


def offer(name: str, known: Sequence[str], *, also: Sequence[str] = (), instead: str = "") -> str:
    """What to say to someone who asked for a ``name`` that is not known: the nearest one, then the first 20.

    ``also`` are further names by which the same things may be asked for; ``instead`` is said in place of the list.
    """
    near = nearest(name, [*known, *also])
    more = f" and {len(known) - SHOWN_PROBLEMS} more" if len(known) > SHOWN_PROBLEMS else ""
    listed = f"There is: {', '.join(known[:SHOWN_PROBLEMS])}{more}." if known else ""
    return f"{f'Did you mean {near}?' if near else ''} {instead or listed}".strip()


class CdpError(Exception):
    """Base of the tree. ``message`` says what is wrong and where, ``hint`` what to do next (may be empty)."""

    kind = "bug"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        """On its way from another process it is made without its constructor, which takes other arguments."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[CdpError], arguments: tuple[Any, ...], values: dict[str, Any]) -> CdpError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(values)
    return error


class InputError(CdpError):
    """Input that cannot be used, with the file and the line where they are known."""

    kind = "data"

    def __init__(
        self, message: str, *, hint: str = "", file: str | Path | None = None, line: int | None = None
    ) -> None:
        where = "" if file is None else Path(str(file)).name
        if line is not None:
            where = f"{where}, line {line}" if where else f"line {line}"
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.file = file
        self.line = line


class ConfigError(CdpError):
    """A setting that cannot be used. Several problems are reported together."""

    kind = "configuration"

    @classmethod
    def from_problems(cls, problems: Sequence[str], *, hint: str = "") -> ConfigError:
        """One error for many problems: the first 20 are named, the rest counted."""
        shown = list(problems[:SHOWN_PROBLEMS])
        if len(problems) > SHOWN_PROBLEMS:
            shown.append(f"and {len(problems) - SHOWN_PROBLEMS} more")
        return cls("; ".join(shown) + ".", hint=hint)


class NotFoundError(CdpError):
    """Something was asked for by a name that does not exist; see ``offer`` for what is said of ``known`` names.

    ``also`` are the names that users gave to what ``known`` names by its id; a ``hint`` is given in place of the list.
    """

    kind = "configuration"

    def __init__(
        self, what: str, name: str, *, known: Sequence[str] = (), also: Sequence[str] = (), hint: str = ""
    ) -> None:
        super().__init__(f"No {what} is called {name!r}.", hint=offer(name, known, also=also, instead=hint))


class ModelError(CdpError):
    """A model that cannot be loaded or does not fit its role."""

    kind = "configuration"


class ProviderError(CdpError):
    """The LLM endpoint refused the request, failed, or could not be reached."""

    kind = "network"


class RefusedError(ProviderError):
    """The LLM endpoint refuses what it was set up with: the key, the model, the account."""

    kind = "configuration"


class WorkspaceError(CdpError):
    """The workspace on disk cannot be read or written."""

    kind = "disk"

    @classmethod
    def refused(cls, path: Path, what: str, error: OSError) -> WorkspaceError:
        """The system would not let ``path`` be made, opened or written."""
        return cls(f"{path} could not be {what}: {error.strerror or error}.", hint="Is the disk full or read-only?")


class ClusterError(CdpError):
    """The cluster that a job runs on cannot do it, or it, its head or a node died."""

    kind = "cluster"


class RepeatedFailureError(CdpError):
    """So many items of a run failed one after another that it is the run that is wrong. ``kind`` is the last one's."""

    def __init__(self, message: str, *, kind: str = "bug", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
