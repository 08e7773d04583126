"""Where jobs run: this machine or a Ray cluster (address of its Jobs API), chosen by this account; requests of devices.

``cluster use`` writes the workspace's choice to ``cluster.json``; all jobs submitted or resumed from then on go there.
A workspace may be a stranger's, so an address counts only with this account's signature.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cdp.base.errors import ConfigError
from cdp.base.text import counted, shown
from cdp.base.workspace import Workspace, write_json
from cdp.jobs.devices import DeviceRequest, list_gpus
from cdp.jobs.records import is_ours, read_record, sign

if TYPE_CHECKING:
    from cdp.base.job_kind import Device  # which loads pydantic: a supervisor goes without
    from cdp.jobs.ray import RayLauncher

FILE = "cluster.json"
HERE = "here"  # this machine, as people type it
EXAMPLE = "http://head-node:8265"


def launcher(address: str) -> RayLauncher:
    """Return the client of a cluster. Few workspaces have one, so its code is loaded here."""
    from cdp.jobs.ray import RayLauncher

    return RayLauncher(address)


def checked_address(text: str) -> str:
    """Return the normalised address of a cluster's Jobs API, "" for this machine. Raises ConfigError."""
    text = text.strip().rstrip("/")
    if text in ("", HERE):
        return ""

    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None

    plain = parts.hostname and not (parts.username or parts.password or parts.query or parts.fragment or parts.path)
    if parts.scheme not in ("http", "https") or not plain or re.search(r"[\s\\\x00-\x1f\x7f]", text):
        hint = f"It is the address of the Jobs API, which Ray's dashboard serves: {EXAMPLE}; {HERE} is this machine."
        raise ConfigError(f"{text[:200]!r} is not the address of a Ray cluster.", hint=hint)

    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 80)}"


def current(workspace: Workspace) -> str:
    """Return the address of the cluster that jobs of the workspace go to, "" for this machine.

    ConfigError for an address that this account did not choose.
    """
    record = read_record(workspace.root / FILE) or {}
    address = record.get("address") or ""
    if address and not is_chosen(address, record.get("signature")):
        raise ConfigError(
            f"The workspace names the Ray cluster {shown(address)}, which was not confirmed by this account.",
            hint=f"To use it: cdp cluster use ADDRESS; for this machine: cdp cluster use {HERE}.",
        )
    return address


def is_chosen(address: str, signature: Any) -> bool:
    """Return True if this account chose the cluster, for this or another workspace."""
    return is_ours("cluster", address, signature)


def signature(address: str) -> str:
    """Return this account's signature of a cluster, "" for this machine. ConfigError if it can keep no secret."""
    signed = sign("cluster", address) if address else ""
    if address and not signed:
        raise ConfigError(
            "Jobs go to a cluster only from an account that can keep a secret.",
            hint="Set XDG_STATE_HOME to a folder of this account alone.",
        )
    return signed


def choose(workspace: Workspace, address: str) -> None:
    """Give jobs that are submitted or resumed from now on to this cluster, "" for this machine."""
    write_json(workspace.root / FILE, {"address": address, "signature": signature(address)})


def request(workspace: Workspace, device: Device) -> DeviceRequest:
    """Return the request of a device, here or on the workspace's cluster. ConfigError where that has fewer GPUs."""
    if device.light:
        return DeviceRequest(idle=True)
    gpus = device.gpus
    if gpus == 0:
        return DeviceRequest()

    cluster = current(workspace)
    if cluster:
        present = launcher(cluster).gpus()
    elif gpus is None:
        present = len(list_gpus())
    else:
        present = gpus
    count = min(1, present) if gpus is None else gpus
    if device.at_most is not None:
        count = min(count, device.at_most)

    if count > present:
        raise ConfigError(
            f"The job asks for {counted(count, 'GPU')}, and the cluster at {cluster} has {present}.",
            hint="Ask for fewer, or for 0 to run on CPUs.",
        )
    return DeviceRequest.gpus(count) if count else DeviceRequest()
