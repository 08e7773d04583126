"""The command ``completion``: a script that lets the shell complete commands, options and their choices."""

from __future__ import annotations

import argparse
import sys

from cdp import __version__
from cdp.base.workspace import Workspace
from cdp.cli.answers import DONE

FILES = {"path", "file", "--file", "--out", "--from", "--human"}
"""Arguments that are completed with the names of files."""


def completion(workspace: Workspace, a: argparse.Namespace) -> int:
    """``completion``: made from the parser itself, so it knows what this installation and its plug-ins offer."""
    import shtab

    from cdp.cli.parser import build

    parser = build(__version__, program="cdp")
    waiting: list[argparse.ArgumentParser] = [parser]
    while waiting:
        for action in waiting.pop()._actions:  # argparse has no public list of its arguments
            if isinstance(action, argparse._SubParsersAction):
                waiting += action.choices.values()
            elif {action.dest, *action.option_strings} & FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(parser, a.shell))
    return DONE
