"""Ray clusters for jobs: choosing and testing one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdp.base import permission
from cdp.base.errors import CdpError
from cdp.base.permission import Action
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.jobs import place

if TYPE_CHECKING:
    from cdp.jobs.ray import RayNode
from cdp.services import access


@dataclass(frozen=True)
class ClusterReport:
    """A cluster: its version of Ray, and its living nodes, each of which has tested the workspace."""

    address: str
    ray: str
    nodes: tuple[RayNode, ...]

    @property
    def words(self) -> str:
        """In one line."""
        kinds = ", ".join(sorted({kind for node in self.nodes for kind in node.accelerators}))
        cpus = sum(node.cpus for node in self.nodes)
        memory = sum(node.memory for node in self.nodes)
        n_gpus = sum(node.gpus for node in self.nodes)

        gpus = "no GPU"
        if n_gpus:
            gpus = f"{n_gpus} GPUs{kinds and f' ({kinds})'}"

        has = f"{counted(len(self.nodes), 'node')}, {cpus:g} CPUs, {gpus}, {memory:.0f} GB memory"
        return (
            f"{self.address}: Ray {self.ray}, Python {self.nodes[0].python}, {has}; all see the workspace and its locks"
        )


setting = place.current


def look(workspace: Workspace, address: str) -> ClusterReport:
    """Return what a cluster has, after each of its nodes has tested locks and renames of the workspace (seconds).

    Raises ConfigError, ClusterError or NotAllowedError where jobs of the workspace cannot run there.
    """
    permission.require(Action.ANY_CLUSTER)
    address = place.checked_address(address)
    nodes = place.launcher(address).probe(workspace)
    for node in nodes:
        node.check(workspace)
    return ClusterReport(address, nodes[0].ray, tuple(nodes))


@access.writes
def use(workspace: Workspace, address: str) -> ClusterReport | None:
    """Make a cluster the workspace's own after a test of its nodes; None for this machine."""
    address = place.checked_address(address)
    report = look(workspace, address) if address else None
    place.choose(workspace, address)
    return report


def trouble(workspace: Workspace) -> tuple[bool, str]:
    """Return, for ``doctor``, whether the workspace's cluster is usable, and its description or fault."""
    try:
        address = setting(workspace)
        if not address:
            return True, "none: jobs run on this machine"
        return True, look(workspace, address).words
    except CdpError as error:
        return False, str(error)
