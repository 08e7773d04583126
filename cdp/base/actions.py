"""A log of people's decisions: one action per line, with who and when; undo takes back a person's last one."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.records import fields, lines
from cdp.base.text import checked_title
from cdp.base.workspace import append_jsonl, now


def add(path: Path, by: str, **facts: Any) -> None:
    """Append an action of a person; ``by`` may be empty where no name was given."""
    append_jsonl(path, [{"action": secrets.token_hex(6), **facts, "by": by, "created": now()}], sync=True)


# What takes back the action of an id, and what every action has beside its own facts; earlier logs have no ids.
UNDO = fields({"undo": str, "by": str})
ACTION = fields(action=str, by=str)


def read(path: Path, kind: Any = ACTION, problems: list[str] | None = None) -> list[Any]:
    """Return the actions of a kind that hold, oldest first. Damaged lines are reported as by ``records.lines``."""
    made: list[Any] = list(lines(UNDO | kind, path, problems))
    undone = {line["undo"] for line in made if "undo" in line}
    return [line for line in made if "undo" not in line and line.get("action") not in undone]


def undo(path: Path, by: str, kind: Any = ACTION) -> dict[str, Any] | None:
    """Take back the last action of a person; return it, None where there is none."""
    last = next((line for line in reversed(read(path, kind)) if "action" in line and line.get("by") == by), None)
    if last is not None:
        append_jsonl(path, [{"undo": last["action"], "by": by, "created": now()}], sync=True)
    return last


def person(by: str, *, required: bool = True) -> str:
    """Return the name of who decides. ConfigError where it is needed and empty."""
    name = " ".join(checked_title(by).split())
    if required and not name:
        raise ConfigError("Who decides?", hint="Give your name or initials.")
    return name
