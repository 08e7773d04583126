"""What people change about results: the names of runs, and the catalogue made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cdp import catalog
from cdp.base.locks import locked
from cdp.base.workspace import Workspace, write_json
from cdp.catalog import query
from cdp.results import naming
from cdp.services import access

__all__ = ["query", "rebuild", "rename"]


@access.writes
def rebuild(workspace: Workspace) -> dict[str, Any]:
    """Rebuild the catalogue from the files; what was read."""
    return asdict(catalog.rebuild(workspace))


@access.writes
def rename(workspace: Workspace, runs: Sequence[str], name: str) -> None:
    """Call these runs (retrievers' ids) ``name``; empty: by their recipe again."""
    path = naming.names_file(workspace)
    with locked(path.with_name(".runs.lock"), "The names of runs"):
        names = {**naming.given_names(workspace), **dict.fromkeys(runs, name.strip())}
        write_json(path, {"schema": 1, "runs": {run: {"name": given} for run, given in sorted(names.items()) if given}})
