"""The command ``serve``."""

from __future__ import annotations

import argparse
import json

from cdp.base.config import ServingConfig
from cdp.base.paths import typed_folder
from cdp.base.workspace import Workspace
from cdp.cli.answers import DONE, config_of, note


def serve(workspace: Workspace, a: argparse.Namespace) -> int:
    """``serve RETRIEVER``: until Ctrl-C or SIGTERM. With ``--json`` one line of JSON says that it is ready."""
    from cdp.services import serving

    names = ("retriever", "corpus", "name", "host", "port", "token_file", "device")
    config = config_of(ServingConfig, a, *names)
    if not config.name and typed_folder(config.retriever) is None:
        config = config.replace(name=config.retriever.strip())  # callers may write what was typed here

    def announce(model: str, address: str) -> None:
        if a.json:
            print(json.dumps({"id": model, "url": address, "state": "ready"}), flush=True)
        else:
            note(f"ready: {model} at {address}/v1")

    serving.serve(workspace, config, announce)
    return DONE
