"""Commands on Ray clusters that jobs may be given to."""

from __future__ import annotations

import argparse
import dataclasses

from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import say
from cdp.services.clusters import Report


def use(workspace: Workspace, a: argparse.Namespace) -> int:
    """``cluster use``."""
    from cdp.services import clusters

    report = clusters.use(workspace, a.address)
    if report is None:
        return say(a, {"address": ""}, "Jobs run on this machine.")
    return say(a, dataclasses.asdict(report), f"{_text(report)}\nJobs of this workspace run there from now on.")


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``cluster show``: the workspace's own where none is named."""
    from cdp.services import clusters

    address = a.address or clusters.setting(workspace)
    if not address:
        return say(a, {"address": ""}, "Jobs run on this machine. Choose a cluster: cluster use ADDRESS")
    report = clusters.look(workspace, address)
    return say(a, dataclasses.asdict(report), _text(report))


def _text(report: Report) -> str:
    rows = [
        {"host": n.host, "role": "head" if n.head else "", "CPUs": f"{n.cpus:g}", "GPUs": n.gpus,
         "memory": f"{n.memory:.0f} GB", "accelerators": ", ".join(n.accelerators)}
        for n in report.nodes
    ]  # fmt: skip
    return f"{report.words}\n\n{display.table(rows, list(rows[0]) if rows else [], '')}"
