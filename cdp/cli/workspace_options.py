"""The commands ``workspace …``."""

from __future__ import annotations

from cdp.cli.option import Commands, flag, repeatable
from cdp.services.workspace.prune import BY_DEFAULT, PRUNABLE

_KINDS = "; ".join(f"{name}: {about}" for name, about in PRUNABLE.items())

COMMANDS: Commands = {
    "workspace path": ("workspace.path", "print the folder of the workspace in use", []),
    "workspace prune": (
        "workspace.prune",
        "list what can be deleted to free disk space; with --yes delete it",
        [
            repeatable(
                "--what",
                f"{_KINDS}. Repeatable; {', '.join(BY_DEFAULT)} if left out",
                choices=tuple(PRUNABLE),
                metavar="KIND",
            ),
            flag("--yes", "delete it"),
        ],
    ),
}
