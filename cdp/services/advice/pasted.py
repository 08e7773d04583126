"""Queries that somebody pasted, kept in the workspace under the hash of their text, so that a reload finds them."""

from __future__ import annotations

import re

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, sha256_text, write_bytes
from cdp.services.sharing import access

FOLDER = "pasted"
LARGEST = 5_000_000
"""Characters that are kept: some hundred thousand queries."""


@access.writes
def save(workspace: Workspace, text: str) -> str:
    """Keep the text; the name under which ``read`` finds it. ConfigError for one that is too long."""
    if len(text) > LARGEST:
        raise ConfigError(f"These are more than {LARGEST:,} characters.", hint="Import them as a query set instead.")
    name = sha256_text(text)[:16]
    path = workspace.root / FOLDER / f"{name}.txt"
    if not path.exists():
        write_bytes(path, text.encode("utf-8", "replace"))
    return name


def load(workspace: Workspace, name: str) -> str:
    """The text that was kept under a name; empty where there is none."""
    path = workspace.root / FOLDER / f"{name}.txt"
    if not re.fullmatch(r"[0-9a-f]{16}", name) or not path.is_file():
        return ""
    return path.read_text(encoding="utf-8", errors="replace")
