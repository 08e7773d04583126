"""Paths as somebody typed them: what cannot be one is refused in words, before the system is asked about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.text import shown

LONGEST_NAME = 255
LONGEST_PATH = 4096
"""Bytes of one name and of a whole path; no common file system takes more."""


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
