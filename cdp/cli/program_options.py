"""The commands on the program itself: the dashboard, the demo, checks, the workspace as a whole, the catalogue."""

from __future__ import annotations

from cdp.cli import workspace_options
from cdp.cli.option import Commands, flag, option
from cdp.services.workspace.dashboard import PORT

COMMANDS: Commands = {
    **workspace_options.COMMANDS,
    "catalog rebuild": ("catalog_rebuild", "make the catalogue anew from the files", []),
    "catalog query": ("catalog_query", "run a read-only SQL query", [option("sql", "the query")]),
    "app": (
        "app.app",
        "open the dashboard: serve it on this machine until Ctrl-C",
        [
            option("--port", "the port it listens on", type=int, default=PORT),
            flag("--browser", "open it in a browser"),
        ],
    ),
    "completion": (
        "completion.completion",
        "print the script that lets a shell complete the command cdp",
        [option("shell", "the shell", choices=("bash", "zsh", "tcsh"))],
    ),
    "demo": ("demo", "load the demo collection into the workspace", []),
    "doctor": ("doctor", "check this machine and the workspace", []),
}
