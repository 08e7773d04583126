"""Where jobs run: on this machine, or on a Ray cluster (the address of its Jobs API).

``cluster use`` writes the workspace's choice to ``cluster.json``; ``choosing`` overrides it for one command or click.
``cdp.services.clusters`` checks permissions first.
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
HERE = "here"  # this machine, as people type it
EXAMPLE = "http://head-node:8265"

_chosen: ContextVar[str | None] = ContextVar("cluster of jobs", default=None)


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


@contextmanager
def choosing(address: str | None) -> Iterator[None]:
    """Run jobs submitted or resumed in the block on this cluster ("": this machine; None: the workspace's choice)."""
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
    """Set the workspace's choice for jobs submitted from now on."""
    write_json(workspace.root / FILE, {"address": address})
