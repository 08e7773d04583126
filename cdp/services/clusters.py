"""Ray clusters that jobs may be given to: choosing one, and what it has and is able to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cdp.base.errors import CdpError, ConfigError
from cdp.base.workspace import Workspace
from cdp.jobs import place as places
from cdp.jobs import probe, ray_cluster
from cdp.jobs.place import Place
from cdp.jobs.probe import Probe
from cdp.jobs.ray_cluster import RayNode
from cdp.jobs.store.bucket import checked_store, shown
from cdp.services.sharing import access, clusters

HERE, EXAMPLE = places.HERE, places.RESOURCES


@dataclass(frozen=True)
class Report:
    """A cluster: the Ray that it runs, its living nodes, and what one of them says of this workspace."""

    address: str
    ray: str
    nodes: tuple[RayNode, ...]
    node: Probe
    asked: str = ""
    """What jobs of the workspace ask of it, as it is typed after ``--resources``; empty: what their kind needs."""
    store: str = ""
    """The object store through which its nodes get the workspace's files; empty where they see them."""

    @property
    def words(self) -> str:
        """In one line, with what differs from here."""
        ours = ray_cluster.own_version()
        ray = f"Ray {self.ray}" + ("" if self.ray == ours else f" (here {ours}, which can talk to it)")
        has = ray_cluster.in_words(self.nodes)
        asked = f"; jobs ask for {self.asked}" if self.asked else ""
        way = f"gets the workspace's files through {shown(self.store)}" if self.store else "sees the workspace"
        return f"{self.address}: {ray}, Python {self.node.python}, {has}; {way}{asked}"


def setting(workspace: Workspace) -> Place:
    """Where jobs of the workspace go unless something else is chosen; an empty address is this machine."""
    return places.of_workspace(workspace)


def named(workspace: Workspace) -> list[str]:
    """The addresses of the clusters that may be chosen without typing one."""
    return clusters.named(workspace)


def look(workspace: Workspace, address: str, store: str | None = None) -> Report:
    """What a cluster has, and whether it can run jobs of the workspace: a node is asked, which takes seconds. ``store``
    is the one that it would use, by default what the workspace has for this cluster.

    ConfigError, ClusterError or NotAllowedError says what is in the way.
    """
    address = places.checked_address(address)
    clusters.check(workspace, address)
    if store:
        clusters.check_store(workspace, Place(address, store=store))
    version = ray_cluster.check(address)
    nodes = ray_cluster.list_nodes(address)
    if store is None:
        store = places.with_store(workspace, Place(address)).store
    answer = probe.probe(workspace, address, store)
    answer.check(workspace, store)
    own = setting(workspace)
    return Report(address, version, tuple(nodes), answer, own.resources if own.address == address else "", store)


@access.writes
def use(workspace: Workspace, address: str, resources: str = "", store: str = "") -> Report | None:
    """Make a cluster the workspace's own, once it was looked at; None for this machine. Its nodes see the workspace, or
    get what they need through a ``store``, which nobody chooses but who may choose any cluster: the workspace's files
    go there."""
    place = replace(Place.parse(address, resources), store=checked_store(store))
    if place.store and not place.address:
        raise ConfigError("A store is for a cluster's nodes, and the jobs run on this machine.",
                          hint=f"Name a cluster, as {places.EXAMPLE}")  # fmt: skip
    report = look(workspace, place.address, place.store) if place.address else None
    places.set_for_workspace(workspace, place)
    return replace(report, asked=place.resources) if report else None


@contextmanager
def chosen(workspace: Workspace, address: str, resources: str = "") -> Iterator[None]:
    """What is started within runs there: ``here`` is this machine; empty, where the workspace says.

    NotAllowedError for a cluster that may not be given jobs from here.
    """
    if not address.strip() and not resources.strip():
        with places.choosing(None):
            yield
        return
    place = Place.parse(address or setting(workspace).address, resources)
    clusters.check(workspace, place.address)
    with places.choosing(place):
        yield


def trouble(workspace: Workspace) -> tuple[bool, str]:
    """For ``doctor``: whether the workspace's cluster is fit, and in one line what it has or what is in the way."""
    place = setting(workspace)
    if not place.address:
        return True, "none: jobs run on this machine"
    try:
        return True, look(workspace, place.address).words
    except CdpError as error:
        return False, str(error)
