"""Commands on runs: the leaderboard, and the names, tags and notes on it."""

from __future__ import annotations

import argparse
from typing import Any

from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import say

EMPTY = "No result yet: evaluate RETRIEVER --benchmark NAME"
ALWAYS = ("ndcg", "difference", "interval", "name", "badges", "benchmark", "start")


def list_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results list``."""
    from cdp.services.results import board as boards

    if a.columns:
        rows = [{"column": column.key, "holds": column.help} for column in boards.COLUMNS]
        return say(a, rows, display.table(rows, ["column", "holds"], ""))
    board = boards.filtered(
        boards.board(workspace, a.scope),
        benchmarks=a.benchmark,
        text=a.match or "",
        tags=a.tag,
        archived=a.archived,
        sort=a.sort or "",
    )
    chosen = boards.columns([*ALWAYS, *(["tags"] if board.tags else []), *a.column, "id"])
    shown = [{column.title: column.text(row) for column in chosen} for row in board.rows]
    text = display.table(shown, [column.title for column in chosen], "No row fits." if board.every else EMPTY)
    return say(a, [boards.record(row) for row in board.rows], "\n".join([text, *boards.left_out(board)]))


def tag(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results tag``."""
    from cdp.services.results import run_notes

    run = _row(workspace, a.id).run
    run_notes.tag(workspace, [run], add=a.add, remove=a.remove)
    return _after(workspace, a, run)


def note(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results note``."""
    from cdp.services.results import run_notes

    run = _row(workspace, a.id).run
    run_notes.note(workspace, run, a.text)
    return _after(workspace, a, run)


def rename(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results rename``."""
    from cdp.services.results import run_notes

    run = _row(workspace, a.id).run
    run_notes.rename(workspace, run, a.name)
    return _after(workspace, a, run)


def archive(workspace: Workspace, a: argparse.Namespace) -> int:
    """``results archive``."""
    from cdp.services.results import run_notes

    row = _row(workspace, a.id)
    run_notes.archive(workspace, [row.id if row.id == a.id else row.run], archived=not a.undo)
    return _after(workspace, a, row.run)


def _row(workspace: Workspace, name: str) -> Any:
    """The first row of the run that is named."""
    from cdp.services.results import board as boards

    return boards.find(boards.board(workspace).every, name)[0]


def _after(workspace: Workspace, a: argparse.Namespace, run: str) -> int:
    """What is said of the run now."""
    from cdp.services.results import board as boards

    rows = [row for row in boards.board(workspace).every if row.run == run]
    first, archived = rows[0], [row.id for row in rows if row.archived]
    value = {"id": run, "name": first.name, "tags": list(first.tags), "note": first.note, "archived": archived}
    tags = f", tags: {', '.join(first.tags)}" if first.tags else ""
    hidden = f", archived: {len(archived)} of {display.many(len(rows), 'row')}" if archived else ""
    return say(a, value, f"{first.name} ({run}){tags}{hidden}")
