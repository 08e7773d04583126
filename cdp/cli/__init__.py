"""The command line: options (one table), handlers over services, and what a terminal shows (``display``)."""

from __future__ import annotations

from cdp.cli.commands import main

__all__ = ["main"]
