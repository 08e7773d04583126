"""Texts and values that somebody gave: whether they can be stored, and how an error repeats them.

Apart from ``cdp.base.settings`` so that what only checks a name (a supervisor, the catalogue) does not load pydantic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cdp.base.errors import ConfigError, InputError, NotFoundError

# Characters of a wrong value that an error repeats.
LONGEST_SHOWN = 60


def shown(value: Any) -> str:
    """A wrong value as an error repeats it: its beginning, whatever it is, and never an exception of its own."""
    if not isinstance(value, str | int | float | bool | type(None)):
        return f"a {type(value).__name__}"
    try:
        text = repr(value[: LONGEST_SHOWN + 1] if isinstance(value, str) else value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN + 2 else f"{text[:LONGEST_SHOWN]}…"


def storable(text: str) -> bool:
    """Whether a text can be written to files and databases: no NUL in it, and no half of a surrogate pair."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign and a true minus: ``+3.28``, ``−0.61``."""
    return f"{value:+.{digits}f}".replace("-", "−")


def counted(n: int, noun: str) -> str:
    """``1 benchmark``, ``3,141 benchmarks``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


_READ = re.compile(r"([\\`*\[\]!])")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def escaped(text: object) -> str:
    """A text on one line that Markdown, and the HTML that may stand in it, show as it is: no markup, image or link.

    Underscores, dashes and bars are left alone: they stand in names, and a report is read as plain text too.
    """
    line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _READ.sub(r"\\\1", line)


def spreadsheet(value: Any) -> Any:
    """A cell of a CSV file: a text that a spreadsheet would take for a formula gets an apostrophe in front of it.

    Numbers, and texts that are numbers, stay as they are.
    """
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(_FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def spreadsheet_row(values: Iterable[Any]) -> list[Any]:
    """The cells of one line, each as ``spreadsheet`` has it."""
    return [spreadsheet(value) for value in values]


SHOWN_IDS = 5

# Characters of a name that a user gives.
LONGEST_TITLE = 200


class Named(Protocol):
    """What has an id that it alone has, and a name that a user gave it."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def checked_title(name: str) -> str:
    """A name as a user typed it, if it can be stored and shown; InputError otherwise."""
    if not storable(name) or len(name) > LONGEST_TITLE:
        raise InputError(
            f"{shown(name)} cannot be a name.",
            hint=f"A name has at most {LONGEST_TITLE} characters, without NUL and halves of surrogate pairs.",
        )
    return name


def pick(what: str, text: str, things: Sequence[T], *, none_yet: str = "") -> T:
    """The one of ``things`` with this id, else this name, else whose id or name begins so; case does not count.

    ConfigError where several fit equally well. NotFoundError where none does: it offers the nearest, or says
    ``none_yet`` where there are no such things at all. ``what`` they are called is part of both messages.
    """
    wanted = text.strip().casefold()
    steps: tuple[Callable[[T], bool], ...] = (
        lambda thing: thing.id.casefold() == wanted,
        lambda thing: thing.name.casefold() == wanted,
        lambda thing: bool(wanted) and thing.id.casefold().startswith(wanted),
        lambda thing: bool(wanted) and thing.name.casefold().startswith(wanted),
    )
    for fits in steps:
        matches = [thing for thing in things if fits(thing)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            ids = ", ".join(thing.id for thing in matches[:SHOWN_IDS])
            more = f" and {len(matches) - SHOWN_IDS} more" if len(matches) > SHOWN_IDS else ""
            raise ConfigError(f"{text!r} could be more than one {what}.", hint=f"Use the id: {ids}{more}.")
    names = [thing.name for thing in things]
    raise NotFoundError(what, text, known=[thing.id for thing in things], also=names, hint="" if things else none_yet)


LONGEST_NAME = 255
# Bytes of one name and of a whole path; no common file system takes more.
LONGEST_PATH = 4096


def typed_path(text: str | Path) -> Path:
    """The path that ``text`` names, with ``~`` for the home folder. InputError for what no path can be."""
    words = str(text)
    if "\0" in words:
        raise InputError("A path cannot hold the character NUL.", hint="Check the path.")
    try:
        path = Path(words).expanduser()
        size, longest = len(os.fsencode(path)), max(map(len, map(os.fsencode, path.parts)), default=0)
    except RuntimeError as error:  # ~somebody, of whom the system does not know
        raise InputError(f"{shown(words)} cannot be a path: {error}", hint="Write the whole path.") from error
    except UnicodeEncodeError as error:
        raise InputError(f"{shown(words)} cannot be a path: it holds half of a surrogate pair.") from error
    if size > LONGEST_PATH or longest > LONGEST_NAME:
        raise InputError(f"{shown(words)} is too long for a path.", hint="No file has such a name; check it.")
    return path


def typed_folder(text: str) -> Path | None:
    """The folder that a text names which may be the name of something else; None where there is no such folder."""
    if not text.strip():
        return None
    try:
        path = typed_path(text)
        return path if path.is_dir() else None
    except (InputError, OSError):
        return None


def public(value: Any) -> Any:
    """A JSON value for other people's eyes: of texts that are paths of this machine only the last name is left."""
    if isinstance(value, str):
        return Path(value).name if value.startswith(("/", "~")) else value
    if isinstance(value, Mapping):
        return {name: public(inner) for name, inner in value.items()}
    return [public(inner) for inner in value] if isinstance(value, list | tuple) else value
