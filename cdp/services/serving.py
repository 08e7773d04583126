"""Search and embeddings over HTTP, for other programs: ``cdp serve``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cdp.base.config import TOKEN, ServingConfig
from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs.launchers import SPINS
from cdp.services import access


@access.runs
def serve(workspace: Workspace, config: ServingConfig, announce: Callable[[str, str], None]) -> None:
    """Serve in this process until SIGTERM or SIGINT; ``announce`` is called with (model's name, address) once ready.

    The token comes from the file that the settings name, else from the environment, which forgets it. CdpError if it
    cannot be read, or there is nothing to serve.
    """
    # Read when torch is loaded: threads that wait for each other leave the processor to the event loop.
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    from cdp.serving.public import Serving

    token = os.environ.pop(TOKEN, "")
    serving = Serving(workspace, config, _read(Path(config.token_file)) if config.token_file else token)
    announce(serving.api.name, serving.address)
    serving.run()


def _read(path: Path) -> str:
    """Return the token in a file. ConfigError if there is none; its content is never repeated."""
    try:
        with path.open(encoding="utf-8") as file:
            token = file.read(10_000).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"The token cannot be read from {path}: {reason}.") from error
    if not token:
        raise ConfigError(f"There is no token in {path}.")
    return token
