"""What a job is: ``spec.json``, written once by whoever submits it and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from cdp.base.errors import NotFoundError, WorkspaceError
from cdp.base.workspace import Workspace, checked_name, read_json
from cdp.jobs.devices import DeviceRequest
from cdp.jobs.place import Place

SCHEMA = 1
LAUNCHERS = ("python", "accelerate")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """Everything that defines a job, in the order of ``spec.json``.

    ``inputs`` are the ids and hashes of what it reads; ``secrets`` only the *names* of environment variables that it
    needs (their values are never written); ``cwd`` is where relative paths in the configuration start; ``sequence``
    orders jobs by submission whatever the clock says; ``grace_s`` is how long a stop waits before it becomes a kill;
    ``after`` names jobs that have to end well before this one's turn can come; ``place`` is where it was submitted to
    (a resume may choose another, which stands in ``status.json``); ``divides`` marks a training, which may run
    in several Ray workers: other jobs get none; ``shares``, in words, what of the workspace it
    reads and writes together with other jobs.
    """

    id: str
    kind: str
    name: str
    created: str
    sequence: int
    module: str
    launcher: str = "python"
    device: DeviceRequest = field(default_factory=DeviceRequest.cpu)
    config: dict[str, Any]
    inputs: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    cwd: str = ""
    grace_s: float = 30.0
    after: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    divides: bool = False
    shares: str = ""

    def to_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {"schema": SCHEMA, **values, "device": self.device.to_dict(), "place": self.place.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        return cls(
            id=str(values["id"]),
            kind=str(values["kind"]),
            name=str(values["name"]),
            module=str(values["module"]),
            config=dict(values["config"]),
            created=str(values["created"]),
            sequence=int(values.get("sequence", 0)),
            launcher=str(values.get("launcher", "python")),
            device=DeviceRequest.from_dict(values.get("device", {})),
            inputs=dict(values.get("inputs", {})),
            secrets=tuple(values.get("secrets", ())),
            cwd=str(values.get("cwd", "")),
            grace_s=float(values.get("grace_s", 30.0)),
            after=tuple(values.get("after", ())),
            place=Place.from_dict(values.get("place")),
            divides=bool(values.get("divides", False)),
            shares=str(values.get("shares", "")),
        )

    def at(self, place: Place) -> Place:
        """The place, without Ray workers for a job that would not use them."""
        return place if self.divides else replace(place, workers=None)


def read_spec(folder: Path) -> JobSpec:
    """The specification of the job in ``folder``; WorkspaceError if it is missing or damaged."""
    values = read_json(folder / "spec.json")
    try:
        return JobSpec.from_dict(values)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WorkspaceError(
            f"{folder / 'spec.json'} is not a job's specification ({type(error).__name__}: {error}).",
            hint="Delete the job and submit it anew.",
        ) from error


def load_spec(workspace: Workspace, job_id: str) -> JobSpec:
    """The specification of a job; NotFoundError if there is no job of that id."""
    folder = workspace.jobs / checked_name(job_id)
    if not (folder / "spec.json").exists():
        raise NotFoundError("job", job_id, hint="See `jobs list` for what there is.")
    return read_spec(folder)
