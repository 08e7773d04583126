"""Texts and values that somebody gave: whether they can be stored, and how an error repeats them.

Apart from ``cdp.base.settings`` so that what only checks a name (a supervisor, the catalogue) does not load pydantic.
"""

from __future__ import annotations

from typing import Any

LONGEST_SHOWN = 60
"""Characters of a wrong value that an error repeats."""


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
