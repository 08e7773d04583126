"""Which Ray clusters may be given jobs: whoever may submit to a cluster has code run there, under its own account.

The command line takes any. On a dashboard that others can reach it is the workspace's own cluster, which the operator
set with ``cluster use``, and those that ``CDP_ALLOWED_CLUSTERS`` (separated by commas) names. A resume follows a job to
those alone, on the command line too: an imported job names the cluster of whoever packed it, and Ray's token would go
there.
"""

from __future__ import annotations

import os

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import cluster_of, place
from cdp.services.sharing.modes import Action, NotAllowedError, may

ALLOWED = "CDP_ALLOWED_CLUSTERS"


def named(workspace: Workspace) -> list[str]:
    """The addresses that the operator has named, the workspace's own first."""
    addresses = [place.of_workspace(workspace), *_listed()]
    return [address for address in dict.fromkeys(addresses) if address]


def _listed() -> list[str]:
    try:
        return [place.checked_address(text) for text in os.environ.get(ALLOWED, "").split(",")]
    except ConfigError as error:
        raise ConfigError(f"{ALLOWED}: {error.message}", hint=error.hint) from None


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


def check_resume(workspace: Workspace, job_id: str) -> None:
    """As ``check``, and NotAllowedError for a cluster that only the job itself names."""
    address = cluster_of(workspace, job_id)
    check(workspace, address)
    if address and place.chosen() is None and address not in named(workspace):
        raise NotAllowedError(
            f"The job ran on the cluster {address}, which is not this workspace's.",
            hint=f"Say where it goes on: jobs resume {job_id} --on {address}, or --on {place.HERE} for this machine.",
        )
