"""Commands on the workspace as a whole."""

from __future__ import annotations

import argparse

from cdp.base.workspace import Workspace
from cdp.cli.answers import say
from cdp.services.jobs import job_words


def export(workspace: Workspace, a: argparse.Namespace) -> int:
    """``workspace export``."""
    from cdp.services.workspace import backup

    done = backup.export(
        workspace, a.file, corpora=a.corpus, queries=a.queries, benchmarks=a.benchmark, jobs_=a.job,
        caches=not a.no_caches,
    )  # fmt: skip
    lines = [f"{done.path}: {done.files:,} files, {job_words.size(done.size)}"]
    return say(a, done, "\n".join([*lines, *(f"left out: {text}" for text in done.left_out)]))


def import_(workspace: Workspace, a: argparse.Namespace) -> int:
    """``workspace import``."""
    from cdp.services.workspace import backup

    done = backup.import_archive(workspace, a.file)
    lines = [f"{done.files:,} files, {job_words.size(done.size)} from {done.path}"]
    if done.unchanged:
        lines.append(f"{done.unchanged:,} files were here already, the same")
    return say(a, done, "\n".join([*lines, *(f"not in the archive: {text}" for text in done.left_out)]))


def prune(workspace: Workspace, a: argparse.Namespace) -> int:
    """``workspace prune``: shows what would go; with ``--yes`` it goes."""
    from cdp.services.workspace import backup

    what = a.what or list(backup.BY_DEFAULT)
    rows = backup.prune(workspace, what) if a.yes else backup.prunable(workspace, what)
    verb = "gone" if a.yes else "can go"
    lines = [f"{row.what}: {row.n:,} {verb}, {job_words.size(row.size)} ({row.about})" for row in rows]
    if not a.yes and any(row.n for row in rows):
        lines.append("Nothing was changed. Clear it away with: workspace prune --yes")
    return say(a, {"done": a.yes, "rows": rows}, "\n".join(lines))
