"""Every error class that CDP Studio raises on purpose; "did you mean"; many problems in one error.

::

    CdpError               what is wrong, where, and what to do next
    ├── InputError         a file or a value given by the user cannot be used   (kind "data")
    ├── ConfigError        a setting is unknown, out of range or contradictory  (kind "configuration")
    ├── NotFoundError      no corpus, query set, job, benchmark … of that name  (kind "configuration")
    ├── ModelError         a model cannot be loaded or does not fit its role    (kind "configuration")
    ├── ProviderError      the LLM endpoint failed or is unreachable            (kind "network")
    │   └── RefusedError   it refuses the key, the model or the account         (kind "configuration")
    ├── ClusterError       a cluster cannot run the job, or it or a node died   (kind "cluster")
    ├── WorkspaceError     the workspace on disk cannot be read or written      (kind "disk")
    └── RepeatedFailureError   many items of a run failed one after another     (kind of the last failure)

The command line prints the message and exits with 2; a page shows it in place of its result; a worker records it as
the failure of its job. Any other exception is a bug (kind "bug").
"""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cdp.base.redaction import clean

SHOWN_PROBLEMS = 20


# What a terminal obeys, what reorders the text around it, and what UTF-8 cannot hold; line breaks and tabs stay.
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")


def visible(text: str) -> str:
    """Return a text with control characters and lone surrogates escaped, as ``\\x1b``."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to ``name``, case-insensitively; empty if none is."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[matches[0]] if matches else ""


def some(names: Sequence[str], most: int = SHOWN_PROBLEMS, between: str = ", ") -> str:
    """Join names, ``visible``, by commas; of more than ``most`` the first ones, and how many others there are."""
    rest = len(names) - most
    return between.join(map(visible, names[:most])) + (f" and {rest:,} more" if rest > 0 else "")


def offer(name: str, known: Sequence[str], *, also: Sequence[str] = (), instead: str = "") -> str:
    """Return the hint for an unknown ``name``: the nearest known one, then the first 20 (or ``instead``).

    ``also`` are alternative names of the known things.
    """
    near = nearest(name, [*known, *also])
    listed = f"There is: {some(known)}." if known else ""
    return f"{f'Did you mean {near}?' if near else ''} {instead or listed}".strip()


def writable(text: str) -> str:
    """Return a text without keys, whole, before it is cut, and ``visible``."""
    return visible(clean(text))


class CdpError(Exception):
    """Base of the tree. ``message`` says what is wrong and where, ``hint`` (may be empty) what to do next."""

    kind = "bug"

    def __init__(self, message: str, *, hint: str = "") -> None:
        # An endpoint's words may repeat the key, a file's names hold terminal escapes or half of a surrogate pair;
        # pages, commands and records all show these two.
        self.message, self.hint = writable(message), writable(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the constructor, whose arguments differ between subclasses."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(CdpError):
    """Input that cannot be used, with file and line if known."""

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
    problems: Sequence[str] = ()

    @classmethod
    def from_problems(cls, problems: Sequence[str]) -> ConfigError:
        """Return one error for many problems: the first 20 are named, the rest counted."""
        error = cls(some(problems, between="; ") + ".")
        error.problems = problems
        return error


class NotFoundError(CdpError):
    """Unknown name or id; ``offer`` makes the hint from ``known`` ids and users' names (``also``)."""

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
    """The LLM endpoint refuses the key, the model or the account."""

    kind = "configuration"


class WorkspaceError(CdpError):
    """The workspace on disk cannot be read or written."""

    kind = "disk"

    @classmethod
    def refused(cls, path: Path, what: str, error: OSError) -> WorkspaceError:
        """Return the error for a ``path`` that the system did not let be made, opened or written."""
        hint = "Is the disk full or read-only?"
        if isinstance(error, PermissionError):
            hint = "This account may not write there: change that, or name another workspace by CDP_WORKSPACE."

        return cls(f"{path} could not be {what}: {error.strerror or error}.", hint=hint)


class ClusterError(CdpError):
    """The cluster cannot run the job, or it, its head or a node died."""

    kind = "cluster"


class RepeatedFailureError(CdpError):
    """Many items of a run failed in a row: the run is wrong. ``kind`` is that of the last failure."""

    def __init__(self, message: str, *, kind: str = "bug", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
