"""Where a job runs: this machine, or a Ray cluster by the address of its Jobs API, with what it needs there.

The workspace's own choice stands in ``cluster.json``. A command or a page chooses another for the jobs that it submits
with ``choosing``; services check first whether it may (``cdp.services.clusters``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, Self
from urllib.parse import urlsplit

from cdp.base.errors import ConfigError
from cdp.base.workspace import Workspace, write_json
from cdp.jobs.records import read_record

FILE = "cluster.json"
HERE = "here"
"""What people type for this machine."""

RESOURCES = "workers=4,cpus=4,gpus=1,memory=16,accelerator=A100"
"""An example of what a job may ask for on a cluster; memory in GB."""

EXAMPLE = "http://head-node:8265"

VARIABLE = "CDP_GROUP_PLACE"
"""Tells a training's own process on a cluster how many Ray workers it has and what each of them has, as JSON."""


@dataclass(frozen=True, slots=True)
class Place:
    """This machine where ``address`` is empty. The rest is what a job asks of a cluster; None: what its kind needs.

    ``memory`` is in GB; ``accelerator`` is a type of GPU as Ray names it (A100, H100 …). ``workers`` is in how
    many Ray workers a training runs, each of which has the rest; None: the job runs on one node.
    """

    address: str = ""
    cpus: float | None = None
    gpus: int | None = None
    memory: float | None = None
    accelerator: str = ""
    workers: int | None = None
    store: str = ""
    """The object store through which nodes that do not see the workspace get what a job needs (``cdp.jobs.store``);
    empty where they see it. Only the workspace's own cluster has one: ``with_store``."""

    @classmethod
    def parse(cls, address: str, resources: str = "") -> Self:
        """The place that was typed; ConfigError for an address or a resource that is none."""
        place = cls(checked_address(address))
        if resources.strip() and not place.address:
            raise ConfigError("Resources are asked of a cluster, and the jobs run on this machine.",
                              hint=f"Name one, as --on {EXAMPLE}")  # fmt: skip
        given = [part.partition("=") for part in resources.split(",") if part.strip()]
        return replace(place, **{name.strip(): _read(name.strip(), value.strip()) for name, _, value in given})

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """A place as it was written down; of damaged fields nothing is asked."""
        known = values if isinstance(values, dict) else {}
        kinds: dict[str, Any] = {"cpus": (int, float), "gpus": int, "memory": (int, float), "workers": int}
        return cls(
            **{f.name: known[f.name] for f in fields(cls) if isinstance(known.get(f.name), kinds.get(f.name, str))}
        )

    def to_dict(self) -> dict[str, Any]:
        """What differs from this machine: empty for it."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) not in ("", None)}

    @property
    def resources(self) -> str:
        """As it is typed after ``--resources``."""
        values = {name: value for name, value in self.to_dict().items() if name not in ("address", "store")}
        return ",".join(
            f"{name}={value if isinstance(value, str) else format(value, 'g')}" for name, value in values.items()
        )


def _read(name: str, value: str) -> Any:
    if name == "accelerator" and re.fullmatch(r"[\w.:-]{1,60}", value):
        return value
    if name in ("cpus", "gpus", "memory", "workers"):
        whole = name in ("gpus", "workers")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if (name == "workers") <= number <= 1e6 and (not whole or number.is_integer()):
            return int(number) if whole else number
    raise ConfigError(f"{name}={value} is nothing to ask of a cluster.", hint=f"For example {RESOURCES}; memory in GB.")


def checked_address(text: str) -> str:
    """The address of a cluster's Jobs API in one spelling; "" for this machine. ConfigError if it is none."""
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


_chosen: ContextVar[Place | None] = ContextVar("place of jobs", default=None)


@contextmanager
def choosing(place: Place | None) -> Iterator[None]:
    """Jobs that are submitted or resumed within run there; with None where the workspace says."""
    token = _chosen.set(place)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> Place | None:
    """The place that was chosen for what is done now; None if none was."""
    return _chosen.get()


def current(workspace: Workspace) -> Place:
    """Where a job goes that is submitted now."""
    return with_store(workspace, _chosen.get() or of_workspace(workspace))


def with_store(workspace: Workspace, place: Place) -> Place:
    """The place with the store that ``cluster use`` has set for its cluster, and none that anybody else names: whoever
    chooses a store is sent the workspace's files."""
    own = of_workspace(workspace)
    return replace(place, store=own.store if place.address and place.address == own.address else "")


def of_workspace(workspace: Workspace) -> Place:
    """The workspace's own choice."""
    return Place.from_dict(read_record(workspace.root / FILE))


def set_for_workspace(workspace: Workspace, place: Place) -> None:
    """Make it the workspace's choice for all jobs that are submitted from now on."""
    write_json(workspace.root / FILE, place.to_dict())
