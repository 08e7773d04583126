"""Where jobs run: on this machine, or on the Ray cluster with this address of its Jobs API.

``cluster use`` writes the workspace's choice into ``cluster.json``; a command or a page chooses another for the jobs
that it submits with ``choosing``. Services check first whether it may (``cdp.services.clusters``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from urllib.parse import urlsplit

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, write_json
from cdp.jobs.records import read_record

FILE = "cluster.json"
# What people type for this machine, and an example of a cluster's address.
HERE = "here"
EXAMPLE = "http://head-node:8265"


def checked_address(text: str) -> str:
    """Return the address of a cluster's Jobs API in one spelling, "" for this machine. Raises ConfigError."""
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


_chosen: ContextVar[str | None] = ContextVar("cluster of jobs", default=None)


@contextmanager
def choosing(address: str | None) -> Iterator[None]:
    """Run jobs submitted or resumed within on this cluster ("": this machine); None: where the workspace says."""
    token = _chosen.set(address)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> str | None:
    """Return the cluster chosen for the current command, None if none was."""
    return _chosen.get()


def current(workspace: Workspace) -> str:
    """Return the address of the cluster that a job submitted now goes to, "" for this machine."""
    address = _chosen.get()
    return of_workspace(workspace) if address is None else address


def of_workspace(workspace: Workspace) -> str:
    """Return the address set by ``cluster use``, "" for this machine."""
    record = read_record(workspace.root / FILE) or {}
    return record.get("address") or ""


def set_for_workspace(workspace: Workspace, address: str) -> None:
    """Make it the workspace's choice for all jobs submitted from now on."""
    write_json(workspace.root / FILE, {"address": address})
