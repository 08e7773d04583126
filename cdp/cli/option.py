"""One option of a command, as argparse takes it, and those that several commands share."""

from __future__ import annotations

from typing import Any

from cdp.base.settings import Config

Option = tuple[str, dict[str, Any]]
Commands = dict[str, tuple[str, str, list[Option]]]
"""Command words → (handler's name, see ``parser.run``; help; options)."""


def option(name: str, text: str = "", **details: Any) -> Option:
    """An option, empty if left out, or an argument where ``name`` has no dashes."""
    if name.startswith("--") and not details.keys() & {"default", "type", "required", "action"}:
        details["default"] = ""
    return name, {**details, "help": text}


def flag(name: str, text: str) -> Option:
    return option(name, text, action="store_true")


def repeatable(name: str, text: str, **details: Any) -> Option:
    """An option that may be given several times; a list, empty if left out."""
    return option(name, text, action="append", default=[], **details)


def setting(config: type[Config], name: str) -> Option:
    """An option with the choices, default and help of the configuration's setting of that name."""
    facts = config.settings()[name.lstrip("-").replace("-", "_")]
    details: dict[str, Any] = {"default": facts.default}
    if facts.choices:
        details["choices"] = facts.choices
    if facts.kind is int:
        details["type"] = int
    return option(name, facts.help.replace("%", "%%"), **details)


ID = option("id", "its id, name or the beginning of its id")
NAME = option("--name", "a name for it")
SET = repeatable("--set", "any further setting; repeatable", metavar="FIELD=VALUE")
WAIT = flag("--wait", "follow the job to its end; Ctrl-C leaves it running")
ALLOW_INCOMPLETE = flag(
    "--allow-incomplete", "train although a query set is incomplete: its job failed, was stopped or runs"
)
ALLOW_LEAKAGE = flag(
    "--allow-leakage",
    "train on queries that a benchmark judges; the training and its results are marked as leaked for ever",
)

ALLOW_OUTSIDE = repeatable(
    "--allow", "a path or address outside the workspace that the job's settings may name; repeatable", metavar="NAME"
)

PROJECT = option("--project", "the project, by id or name, or all; the one of projects use if left out")
