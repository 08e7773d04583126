"""argparse, built from the table of commands. What it refuses, it refuses in one line that offers the nearest word."""

from __future__ import annotations

import argparse
import functools
import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from cdp.base.errors import nearest, offer
from cdp.cli.answers import BAD_INPUT
from cdp.cli.options import commands
from cdp.cli.overview import GROUPS, overview
from cdp.cli.project_options import KNOWING
from cdp.services.commands import PROGRAM

SEARCH = "search"
"""The command whose first word is a text of any kind."""


class Parser(argparse.ArgumentParser):
    """Refuses a command line in one sentence on stderr, with the way to the help of the command that was meant."""

    overview = ""
    """What ``--help`` shows in place of argparse's own list of words and options."""

    def format_help(self) -> str:
        return self.overview or super().format_help()

    def error(self, message: str) -> NoReturn:
        sentence = " ".join(message.split())
        self.exit(BAD_INPUT, f"cdp: {sentence}{'' if sentence.endswith(('.', '?')) else '.'} See: {self.prog} --help\n")

    def read(self, words: Sequence[str] | None = None) -> argparse.Namespace:
        """``parse_args``, except that the nearest option is offered for one that the command does not have."""
        given = list(sys.argv[1:] if words is None else words)
        parsed, unknown = self.parse_known_args(_text_last(given))
        if unknown:
            command, options = getattr(parsed, "command", (self, ()))
            if unknown[0].partition("=")[0] in options:
                command.error(f"{unknown[0]} stands before the command's words; options come behind them.")
            near = nearest(unknown[0].partition("=")[0], options)
            command.error(f"{unknown[0]!r} is not known here.{f' Did you mean {near}?' if near else ''}")
        return parsed

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value, or a command, that is not among the choices. argparse has no public place for this."""
        if action.choices is not None and value not in action.choices:
            offered = offer(str(value), [str(choice) for choice in action.choices])
            raise argparse.ArgumentError(action, f"{value!r} is not known. {offered}")


def _text_last(words: list[str]) -> list[str]:
    """The command line with a query that begins with a dash where argparse takes it for what it is: at the end, behind
    ``--``. A single word after ``--`` may be a misspelt option, and stays where it is."""
    if len(words) < 2 or words[0] != SEARCH or "--" in words:
        return words
    first = words[1]
    option = re.fullmatch(r"-h|-k\d*|--[\w-]*(=.*)?", first)
    return [SEARCH, *words[2:], "--", first] if first.startswith("-") and option is None else words


def run(handler: str, *arguments: Any) -> int:
    """Call a handler by its name: a function of ``commands``, or ``module.function`` in this package."""
    module, _, function = handler.rpartition(".")
    return int(getattr(importlib.import_module(f"cdp.cli.{module or 'commands'}"), function)(*arguments))


def build(version: str, typed: Sequence[str] | None = None, *, program: str = PROGRAM) -> Parser:
    """The whole command line. Of a parsed one ``run`` is its handler, ``action`` its last word.

    Where ``typed`` is known, only the command that it begins with gets its options: those of all take 45 ms.
    """
    top = Parser(prog=program, description="CDP Studio on the command line.")
    top.add_argument("--version", action="version", version=f"CDP Studio {version}")
    top.set_defaults(usage=top.print_help)
    words = top.add_subparsers(metavar="COMMAND")
    groups: dict[str, Any] = {}
    listed = commands()
    plain = None if typed is None else [word for word in typed if not word.startswith("-")]
    for name, (handler, text, options) in listed.items():
        first, _, second = name.partition(" ")
        if second and first not in groups:
            group = words.add_parser(first, help=GROUPS[first], description=GROUPS[first])
            group.set_defaults(usage=group.print_help)
            groups[first] = group.add_subparsers(metavar="COMMAND")
        target = groups[first] if second else words
        if plain is not None and plain[: 1 + bool(second)] != name.split():
            target.add_parser(second or first, help=text, add_help=False)
            continue
        command = target.add_parser(second or first, help=text, description=f"{text[0].upper()}{text[1:]}.")
        names = ["--json", *(option for option, _ in options if option.startswith("-"))]
        for option, details in options:
            command.add_argument(option, **details)
        command.add_argument("--json", action="store_true", help="answer in JSON")
        command.set_defaults(run=functools.partial(run, handler), action=second or first, command=(command, names))
        command.set_defaults(fills=KNOWING.get(name))
    texts = {name.partition(" ")[0]: text for name, (_, text, _) in listed.items()}
    top.overview = overview(program, {**texts, **GROUPS})
    return top
