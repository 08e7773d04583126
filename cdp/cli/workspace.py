"""Commands on the workspace as a whole."""

from __future__ import annotations

import argparse

from cdp.base.workspace import Workspace
from cdp.cli.answers import say
from cdp.services.jobs import job_words


def path(workspace: Workspace, a: argparse.Namespace) -> int:
    """``workspace path``: the folder in use."""
    return say(a, {"path": str(workspace.root)}, str(workspace.root))


def prune(workspace: Workspace, a: argparse.Namespace) -> int:
    """``workspace prune``: list what can be deleted, or with ``--yes`` delete it."""
    from cdp.services.workspace import prune as pruning

    what = a.what or list(pruning.BY_DEFAULT)
    rows = pruning.prune(workspace, what) if a.yes else pruning.prunable(workspace, what)
    verb = "deleted" if a.yes else "can be deleted"
    lines = [f"{row.what}: {row.n:,} {verb}, {job_words.size(row.size)} ({row.about})" for row in rows]
    if not a.yes and any(row.n for row in rows):
        lines.append("Nothing was changed. Delete with: workspace prune --yes")
    return say(a, {"done": a.yes, "rows": rows}, "\n".join(lines))
