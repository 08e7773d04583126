"""The command that a page shows, ``cdp`` or ``python -m cdp``; the one by which ``cdp app`` starts Streamlit."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.workspace import INSTALLED, REPOSITORY

if TYPE_CHECKING:  # the command line shows its help without loading pydantic
    from cdp.base.settings import Config

# An installed package brings the command ``cdp``.
PROGRAM = "cdp" if INSTALLED else "python -m cdp"


def line(
    *words: object, config: Config | Mapping[str, Any] | None = None, without: Collection[str] = (), **given: object
) -> str:
    """Return a command line: words, settings, then options.

    ``config`` gives the settings that differ from their defaults, or all of a mapping; each is an option of its own, as
    for the parser (``cdp.cli.declare``). ``without`` names those that stand among the words.
    """
    listed = [str(word) for word in words if word not in (None, "")]
    if config is not None:
        settings = config if isinstance(config, Mapping) else changed(config)
        for name, value in settings.items():
            if name not in without:
                listed += _setting(name, value)

    return " ".join(filter(None, [PROGRAM, *map(shlex.quote, listed), options(**given)]))


def _setting(name: str, value: object) -> list[str]:
    if value is False:
        return _option(f"no_{name}", True)
    if value is None:
        value = "none"
    return _option(name, value)


def options(**given: object) -> str:
    """Return options as text: those that are None, False or empty are left out, True is a flag, a list repeats one."""
    words: list[str] = []
    for name, value in given.items():
        if value is not None and value is not False and value != "":
            words += _option(name, value)

    return shlex.join(words)


def _option(name: str, value: object) -> list[str]:
    flag = f"--{name.rstrip('_').replace('_', '-')}"
    if value is True:
        return [flag]

    words = []
    for item in value if isinstance(value, list | tuple) else [value]:
        words += [flag, str(item)]
    return words


def changed(config: Config) -> dict[str, Any]:
    """Return the settings that differ from their defaults, required ones included."""
    settings = config.settings()
    return {name: value for name, value in config.to_dict().items() if value != settings[name].default}


def dashboard(workspace: Path, port: int, browser: bool) -> tuple[list[str], dict[str, str]]:
    """Return the command that serves the dashboard of a workspace on this machine alone, and its environment."""
    from cdp.jobs.launchers import own_process

    # Everything else is as .streamlit/config.toml beside app.py says, or Streamlit's own variables.
    options = ["--server.port", str(port), "--server.headless", "false" if browser else "true"]
    command = [sys.executable, "-m", "streamlit", "run", str(REPOSITORY / "app.py"), *options]
    return command, own_process(workspace)
