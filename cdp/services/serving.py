"""Search and embeddings over HTTP, for other programs: what ``cdp serve`` does."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

from cdp.base.config import ServingConfig
from cdp.base.config.serving import TOKEN
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs.launchers import SPINS
from cdp.services.sharing import access
from cdp.services.workspace.doctor import DISTRIBUTION

NEEDED = ("uvicorn", "starlette", "prometheus_client")


@access.runs
def serve(workspace: Workspace, config: ServingConfig, announce: Callable[[str, str, str], None]) -> None:
    """Serve in this process until it is told to stop; ``announce`` hears (model's name, address, event).

    The token comes from the file that the settings name, else from the environment, which forgets it. CdpError where
    it cannot be read, or there is nothing to serve.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        hint = f"Install them with: {sys.executable} -m pip install '{DISTRIBUTION}[serve]'"
        raise ConfigError(f"Serving needs {', '.join(missing)}: not installed.", hint=hint)
    # Read when torch is loaded: threads that wait for each other leave the processor to the event loop.
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    from cdp.serving.server import serve as run

    token = os.environ.pop(TOKEN, "")
    run(workspace, config, _read(Path(config.token_file)) if config.token_file else token, announce)


def _read(path: Path) -> str:
    """The token in a file. ConfigError where there is none; its content is never repeated."""
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(10_000).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"The token cannot be read from {path}: {reason}.") from error
    if not token:
        raise ConfigError(f"There is no token in {path}.")
    return token
