"""The command line: options (one table), commands (thin handlers over services), text (what a terminal shows)."""

from __future__ import annotations

from cdp.cli.commands import main

__all__ = ["main"]
