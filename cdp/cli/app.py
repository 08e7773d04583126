"""The command ``app``."""

from __future__ import annotations

import argparse
import os
import sys

from cdp.base.workspace import Workspace


def app(workspace: Workspace, a: argparse.Namespace) -> int:
    """``app``: this process becomes the dashboard's server, so that Ctrl-C and signals reach it."""
    from cdp.services.workspace import dashboard

    command, environment = dashboard.server(workspace, port=a.port, browser=a.browser)
    print(f"The workspace is {workspace.root}", file=sys.stderr, flush=True)
    os.execve(command[0], command, environment)
