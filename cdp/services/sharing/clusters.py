"""Which Ray clusters may be given jobs: whoever may submit to a cluster has code run there, under its own account.

The command line takes any. On a dashboard that others can reach it is the workspace's own cluster, which the operator
set with ``cluster use``, and those that ``CDP_ALLOWED_CLUSTERS`` (separated by commas) names. That holds for a resume
too: an imported job names the cluster of whoever packed it.
"""

from __future__ import annotations

import os

from cdp.base.workspace import Workspace
from cdp.jobs import place
from cdp.services.sharing.modes import Action, NotAllowedError, may

ALLOWED = "CDP_ALLOWED_CLUSTERS"


def named(workspace: Workspace) -> list[str]:
    """The addresses that the operator has named, the workspace's own first."""
    listed = [part for part in os.environ.get(ALLOWED, "").split(",") if part.strip()]
    addresses = [place.of_workspace(workspace).address, *map(place.checked_address, listed)]
    return [address for address in dict.fromkeys(addresses) if address]


def check(workspace: Workspace, address: str) -> None:
    """NotAllowedError unless jobs may be given to this cluster from here; this machine ("") always may."""
    if not address or may(Action.ANY_CLUSTER):
        return
    if may(Action.RUN) and address in named(workspace):
        return
    raise NotAllowedError(
        f"Jobs may not be given to the cluster {address} from this dashboard.",
        hint=f"Have the operator add it to {ALLOWED}.",
    )
