"""Saying something of runs: names, tags, notes, and which are archived. ``runs.json`` is written here alone.

A name, tags and a note are of a run (a retriever's id) and stand on all of its rows; archived is either a whole run or
one row (an evaluation's id). The catalogue holds none of it, so that it can be made anew at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Any

from cdp.base.errors import ConfigError, InputError
from cdp.base.locks import locked
from cdp.base.text import storable
from cdp.base.workspace import Workspace, write_json
from cdp.services import access
from cdp.services.run_annotations import Annotation, file_of, read

SCHEMA = 1
NAME_AT_MOST, TAG_AT_MOST, NOTE_AT_MOST = 120, 40, 2000
"""Characters."""


@access.writes
def rename(workspace: Workspace, run: str, name: str) -> Annotation:
    """Give a run a name of its own; an empty one gives the made one back."""
    text = _text(name, NAME_AT_MOST, "name")
    return _change(workspace, [run], lambda about: replace(about, name=text))[0]


@access.writes
def tag(workspace: Workspace, runs: Iterable[str], *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
    """Add tags to runs, and take others away."""
    added, gone = [_tag(text) for text in add], set(remove)

    def change(about: Annotation) -> Annotation:
        return replace(about, tags=tuple(t for t in dict.fromkeys([*about.tags, *added]) if t not in gone))

    _change(workspace, runs, change)


@access.writes
def note(workspace: Workspace, run: str, text: str) -> Annotation:
    """Write a run's note; an empty one takes it away."""
    whole = _text(text, NOTE_AT_MOST, "note")
    return _change(workspace, [run], lambda about: replace(about, note=whole))[0]


@access.writes
def archive(workspace: Workspace, ids: Iterable[str], archived: bool = True) -> None:
    """Take runs or single rows out of sight, or bring them back. Their results stay as they are."""
    _change(workspace, ids, lambda about: replace(about, archived=archived))


def _change(workspace: Workspace, ids: Iterable[str], change: Callable[[Annotation], Annotation]) -> list[Annotation]:
    path = file_of(workspace)
    with locked(path.with_name(".runs.lock"), "The names and notes of runs"):
        known = read(path) if path.exists() else {}
        changed = {key: change(known.get(key, Annotation())) for key in dict.fromkeys(ids)}
        after = {key: about for key, about in {**known, **changed}.items() if about != Annotation()}
        records: dict[str, Any] = {key: asdict(about) for key, about in sorted(after.items())}
        write_json(path, {"schema": SCHEMA, "runs": records})
    return list(changed.values())


def _text(text: str, most: int, what: str) -> str:
    line = text.strip()
    if len(line) > most:
        raise InputError(f"The {what} has {len(line):,} characters; at most {most:,} are kept.")
    if not storable(line):
        raise InputError(f"The {what} holds the character NUL or half of a surrogate pair.")
    return line


def _tag(text: str) -> str:
    tag_text = _text(text, TAG_AT_MOST, "tag")
    if not tag_text or "," in tag_text:
        raise ConfigError(f"{text!r} cannot be a tag.", hint="A tag is a word or two without a comma.")
    return tag_text
