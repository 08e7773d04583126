"""The command that serves the dashboard."""

from __future__ import annotations

import importlib.util
import os
import sys

from cdp.base.errors import ConfigError
from cdp.base.workspace import REPOSITORY, Workspace
from cdp.jobs.launchers import python_path

PORT = 8501


def server(workspace: Workspace, *, port: int = PORT, browser: bool = False) -> tuple[list[str], dict[str, str]]:
    """The command that serves the dashboard of this workspace on this machine alone, and its environment.

    Everything else is as ``.streamlit/config.toml`` beside ``app.py`` says, or Streamlit's own variables
    (``STREAMLIT_SERVER_ADDRESS``). ConfigError for no port, and where Streamlit is not installed.
    """
    if not 0 < port < 65536:
        raise ConfigError(f"There is no port {port}.", hint="Ports go from 1 to 65535.")
    if importlib.util.find_spec("streamlit") is None:
        from cdp.services.doctor import DISTRIBUTION

        hint = f"Install it with: {sys.executable} -m pip install '{DISTRIBUTION}[app]'"
        raise ConfigError("The dashboard needs Streamlit, which is not installed.", hint=hint)
    options = ["--server.port", str(port), "--server.headless", "false" if browser else "true"]
    command = [sys.executable, "-m", "streamlit", "run", str(REPOSITORY / "app.py"), *options]
    return command, {**os.environ, "CDP_WORKSPACE": str(workspace.root), "PYTHONPATH": python_path(os.environ)}
