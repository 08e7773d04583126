"""The commands on the program itself: the dashboard, the demo, checks, the workspace as a whole, the catalogue."""

from __future__ import annotations

from cdp.base.config import ServingConfig
from cdp.cli import workspace_options
from cdp.cli.option import SET, Commands, flag, option, setting
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
    "serve": (
        "serving.serve",
        "search and OpenAI-compatible embeddings over HTTP, until Ctrl-C",
        [
            option("retriever", "bm25, a preset, a training's id or name, or a model's name or folder"),
            *(
                setting(ServingConfig, f"--{name}")
                for name in ("corpus", "host", "port", "token-file", "name", "device")
            ),
            SET,
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
