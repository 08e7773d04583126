"""What each machine has measured of itself: ``rates/<machine>.json`` in the workspace, which several may share."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdp.base.errors import NotFoundError
from cdp.base.workspace import Workspace, now, read_json_or_none, slug, write_json
from cdp.planning.rates import Basis, Observation, Rate, rate_of
from cdp.planning.stages import UNITS
from cdp.planning.timing import STARTING
from cdp.services.jobs import devices
from cdp.services.sharing import access
from cdp.synthesis.generators.spread import processors

_DEPTH = re.compile(r"measures/[1-9][0-9]{0,3}")
"""The measures at so many queries per document; the file may be damaged, or somebody's who has a later version."""

SIZES = {"size/corpus": "bytes", "size/bm25": "bytes"}


@dataclass(frozen=True)
class Machine:
    """A machine and what it measured: observations by the rate's key."""

    name: str
    cpus: int
    gpus: tuple[str, ...]
    created: str
    observed: Mapping[str, tuple[Observation, ...]]


def this_machine() -> str:
    """The name under which this machine keeps its rates."""
    return slug(platform.node() or "machine")


@access.writes
def keep(workspace: Workspace, observed: Mapping[str, list[list[float | None]]]) -> Machine:
    """Keep what this machine measured; it replaces what it measured before."""
    path = workspace.root / "rates" / f"{this_machine()}.json"
    gpus = [gpu.name for gpu in devices.gpus()]
    write_json(path, {"schema": 1, "machine": this_machine(), "cpus": processors(), "gpus": gpus, "created": now(),
                      "observed": dict(observed)})  # fmt: skip
    return load(workspace, this_machine())


def list_machines(workspace: Workspace) -> list[str]:
    """The machines that have measured into this workspace."""
    return sorted(path.stem for path in (workspace.root / "rates").glob("*.json"))


def load(workspace: Workspace, name: str) -> Machine:
    """What a machine measured. NotFoundError where it has measured nothing, or its file is damaged."""
    known = list_machines(workspace)
    value = read_json_or_none(workspace.root / "rates" / f"{slug(name)}.json") if slug(name) in known else None
    machine = _machine(value) if isinstance(value, dict) else None
    if machine is None:
        raise NotFoundError("machine with measured rates", name, known=known)
    return machine


def _machine(value: Mapping[str, Any]) -> Machine | None:
    try:
        observed = {
            str(key): tuple(Observation(float(a), float(s), None if c is None else float(c)) for a, s, c in rows)
            for key, rows in value["observed"].items()
            if not key.startswith("measures/") or _DEPTH.fullmatch(key)
        }
        gpus = tuple(map(str, value["gpus"]))
        return Machine(str(value["machine"]), int(value["cpus"]), gpus, str(value["created"]), observed)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def rates_of(machine: Machine, *, here: bool) -> dict[str, Rate]:
    """Its rates by key."""
    basis = Basis.HERE if here else Basis.CLUSTER
    source = f"{machine.name}, {machine.cpus} processors, {machine.created[:10]}, plan --measure"
    made = {}
    for key, observations in machine.observed.items():
        stage = key.partition("/")[0]
        unit = "starts" if key == STARTING else SIZES.get(key) or UNITS.get(stage)
        rate = rate_of(observations, unit, basis, source, cpus=machine.cpus) if unit else None
        if rate is not None:
            made[key] = rate
    return made
