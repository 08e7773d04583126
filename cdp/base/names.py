"""Which of the things in a workspace somebody means: by id, by name, or by the beginning of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.text import shown, storable

SHOWN_IDS = 5

LONGEST_TITLE = 200
"""Characters of a name that a user gives."""


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
