"""A user's text inside files that other programs read: Markdown, and tables for spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_READ = re.compile(r"([\\`*\[\]!])")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def shown(text: object) -> str:
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
