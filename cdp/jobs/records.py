"""Records of a job: specification, status, outcome; this account's signatures on jobs and clusters, its secret file.

``spec.json`` is written once by the submitter, ``status.json`` only by the holder of ``alive.lock``. Damaged fields are
skipped: damage to one job must not hide the others. A job's folder is created in a staging folder and renamed when
complete; a deleted one is moved into one first.

A workspace is data. What makes a program act on it (a job's specification, the address of a cluster) is signed with a
secret of this account, which lies outside every workspace: ``$XDG_STATE_HOME/cdp-studio/secret``. Without a usable
folder for it nothing is signed, and everything counts as a stranger's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cdp.base.errors import NotFoundError, WorkspaceError
from cdp.base.locks import staging
from cdp.base.worker import LONGEST_GRACE_S
from cdp.base.workspace import (
    FORMAT_FILE,
    Workspace,
    checked_name,
    is_name,
    now,
    read_json,
    read_json_or_none,
    write_json,
)
from cdp.jobs.devices import DeviceRequest

SCHEMA = 1
# The phase of a job whose supervisor the cluster has yet to start: nothing holds its lock.
SUBMITTED = "submitted"

LAUNCHERS = ("python", "accelerate")

# The types of the fields that code computes with or the dashboard reads.
_TYPES: dict[tuple[type, ...], str] = {
    (int,): "attempt done total failures exit_code signal supervisor_pid worker_pid",
    (str,): "phase outcome message unit queued started ended hint kind cluster address",
    (int, float): "clock started_clock next_within_s seconds eta_s rate",
    (dict,): "failure request",
    (list,): "devices granted after",
}
_KINDS = {name: kinds for kinds, names in _TYPES.items() for name in names.split()}
_NEVER_NULL = ("attempt", "done", "total", "phase", "next_within_s", "started_clock", "clock")


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record in a file without fields of a wrong type; None if there is no complete record (yet)."""
    value = read_json_or_none(path)
    if not isinstance(value, dict):
        return None
    record = {name: field for name, field in value.items() if _fits(name, field)}
    for name in {"devices", "granted", "after"} & record.keys():
        record[name] = [entry for entry in record[name] or [] if isinstance(entry, str)]
    if "after" in record:  # ids are used as paths
        record["after"] = list(filter(is_name, record["after"]))
    return record


def _fits(name: str, value: Any) -> bool:
    if value is None or name not in _KINDS:
        return name not in _NEVER_NULL
    if not isinstance(value, _KINDS[name]) or isinstance(value, bool):
        return False
    return not isinstance(value, float) or math.isfinite(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """The definition of a job, in the order of ``spec.json``, which ends with its signature.

    ``inputs``: ids and hashes of its inputs. ``secrets``: only *names* of environment variables that it needs, never
    values. ``cwd``: base of relative paths in the configuration. ``sequence``: order of submission. ``grace_s``:
    seconds from a stop to a kill. ``after``: jobs that have to finish first. ``cluster``: the Ray cluster that it was
    submitted to, "" for this machine (a resume may choose another, see ``status.json``). ``uses_pool``: on a cluster
    its worker gives its files to Ray tasks, each with the job's devices.
    """

    id: str
    kind: str
    name: str
    created: str
    sequence: int = 0
    module: str
    launcher: str = "python"
    device: DeviceRequest = field(default_factory=DeviceRequest)
    config: dict[str, Any]
    inputs: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    cwd: str = ""
    grace_s: float = 30.0
    after: tuple[str, ...] = ()
    cluster: str = ""
    uses_pool: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        kinds: dict[str, Any] = {
            **dict.fromkeys(("id", "kind", "name", "module", "created", "launcher", "cwd", "cluster"), str),
            "config": dict,
            "inputs": dict,
            "secrets": tuple,
            "after": tuple,
            "sequence": int,
            "grace_s": float,
            "uses_pool": bool,
            "device": DeviceRequest.from_dict,
        }

        spec = cls(**{name: kind(values[name]) for name, kind in kinds.items() if name in values})
        if not 0 <= spec.grace_s <= LONGEST_GRACE_S:
            raise ValueError(f"its grace_s is {spec.grace_s:g}")
        if not is_name(spec.kind):  # its results lie in a file of that name
            raise ValueError(f"its kind is {spec.kind[:100]!r}")
        if spec.launcher not in LAUNCHERS:
            raise ValueError(f"its launcher is {spec.launcher[:100]!r}")

        for entry in (*spec.after, *spec.secrets):
            if not isinstance(entry, str) or not is_name(entry):
                raise ValueError(f"it names {str(entry)[:100]!r}")

        return spec


def read_spec(folder: Path) -> JobSpec:
    """Return the specification of the job in ``folder``. Raises WorkspaceError if it is missing or damaged."""
    values = read_json(folder / "spec.json")
    try:
        spec = JobSpec.from_dict(values)
        if spec.id != folder.name:  # ids are used as paths: think of "../corpora"
            raise ValueError(f"its id is {spec.id[:100]!r}")
        return spec
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise WorkspaceError(
            f"{folder / 'spec.json'} is not a job's specification ({type(error).__name__}: {error}).",
            hint="Delete the job and submit it again.",
        ) from error


def write_spec(folder: Path, spec: JobSpec) -> None:
    """Write the specification of a job that is being submitted, signed by this account."""
    values = spec.to_dict()
    write_json(folder / "spec.json", {**values, "signature": sign("job", values)})


def is_own(folder: Path) -> bool:
    """Return True if this account submitted the job, and nothing in its specification was changed since."""
    values = read_json(folder / "spec.json")
    if not isinstance(values, dict):
        return False
    signature = values.pop("signature", "")
    return values.get("id") == folder.name and is_ours("job", values, signature)


def load_spec(workspace: Workspace, job_id: str) -> JobSpec:
    """Return the specification of a job. Raises NotFoundError if there is no job of that id."""
    folder = workspace.jobs / checked_name(job_id)
    if not (folder / "spec.json").exists():
        raise NotFoundError("job", job_id, hint="See `jobs list` for what there is.")
    return read_spec(folder)


def written_by(attempt: int, path: Path) -> dict[str, Any] | None:
    """Return the record in a file if this attempt wrote it, else None."""
    record = read_json_or_none(path)
    return record if isinstance(record, dict) and record.get("attempt") == attempt else None


def outcome_of(folder: Path, attempt: int) -> str | None:
    """Return the outcome that the worker of this attempt reported: finished, stopped, or None."""
    record = written_by(attempt, folder / "outcome.json")
    return str(record.get("outcome")) if record else None


def phase_of(folder: Path) -> str:
    """Return the phase in a job's status: submitted, queued, running, ended; "" if there is none."""
    return str((read_record(folder / "status.json") or {}).get("phase") or "")


@dataclass
class Status:
    """The status of one job, kept in memory and written whole at each change."""

    folder: Path
    values: dict[str, Any]

    @classmethod
    def queued(cls, folder: Path, cluster: str, signature: str = "") -> Status:
        """Create the status of a new attempt: the first, or the one after that recorded.

        ``signature``: that of ``place.choose`` for the cluster, without which no request is sent there.
        """
        attempt = int((read_record(folder / "status.json") or {}).get("attempt", 0)) + 1
        phase = SUBMITTED if cluster else "queued"
        values = {"schema": 1, "phase": phase, "attempt": attempt, "queued": now()}
        if cluster:
            values |= {"cluster": cluster, "signature": signature}
        status = cls(folder, values)
        status.write()
        return status

    @classmethod
    def load(cls, folder: Path) -> Status:
        """Read the status; a damaged one is replaced by that of a first attempt."""
        values = read_record(folder / "status.json")
        if values is not None and "attempt" in values:
            return cls(folder, values)
        return cls.queued(folder, read_spec(folder).cluster)

    @property
    def attempt(self) -> int:
        return int(self.values["attempt"])

    @property
    def phase(self) -> str:
        return str(self.values.get("phase", "queued"))

    @property
    def cluster(self) -> str:
        return str(self.values.get("cluster") or "")

    def waiting(self, message: str) -> None:
        """Record that the supervisor waits, and why."""
        self.values.update(phase="queued", message=message)
        self.write()

    def running(self, *, supervisor_pid: int, worker_pid: int, devices: tuple[str, ...]) -> None:
        """Record that the worker was started."""
        self.values.pop("message", None)
        self.values.update(
            phase="running",
            supervisor_pid=supervisor_pid,
            worker_pid=worker_pid,
            devices=list(devices),
            started=now(),
            started_clock=time.time(),
        )
        self.write()

    def ended(self, outcome: str, **values: Any) -> None:
        """Record the end: outcome finished, stopped or failed, with message, failure, exit_code and signal."""
        self.values.pop("message", None)
        began = self.values.get("started_clock")
        seconds = round(max(0.0, time.time() - began), 3) if began is not None else 0.0
        self.values.update(phase="ended", outcome=outcome, ended=now(), seconds=seconds, **values)
        self.write()

    def write(self) -> None:
        write_json(self.folder / "status.json", self.values)


def discard(workspace: Workspace, folder: Path) -> None:
    """Delete a job's folder: hidden at once, then removed. Raises OSError."""
    with staging(workspace.jobs) as hidden:
        folder.rename(hidden / folder.name)


_SECRET_BYTES = 32


def sign(what: str, value: Any) -> str:
    """Return the signature of a JSON value as a ``what`` ("job", "cluster"); "" if this account can keep no secret."""
    key = _secret(make=True)
    return _signature(key, what, value) if key else ""


def is_ours(what: str, value: Any, signature: Any) -> bool:
    """Return True if this account signed the value as a ``what``."""
    key = _secret(make=False)
    if not key or not isinstance(signature, str) or not signature.isascii():
        return False
    return hmac.compare_digest(_signature(key, what, value), signature)


def secret_file() -> Path:
    """Return the file of the secret (XDG Base Directory Specification). RuntimeError without a home folder."""
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path("~/.local/state").expanduser()
    return base / "cdp-studio" / "secret"


def _signature(key: bytes, what: str, value: Any) -> str:
    plain = json.loads(json.dumps([what, value], default=str))  # as it is read again
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _secret(*, make: bool) -> bytes:
    """Return the secret, made at first use with ``make``; empty if there is none that is this account's alone."""
    try:
        path = secret_file()
        if any((folder / FORMAT_FILE).exists() for folder in path.parents):
            return b""  # in a workspace, which is copied and given away
        if make and not path.exists():
            _make(path)

        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with open(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            key = file.read(_SECRET_BYTES + 1)
    except (OSError, RuntimeError):
        return b""

    private = about.st_uid == os.geteuid() and not about.st_mode & 0o077
    return key if private and len(key) == _SECRET_BYTES else b""


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # of two processes at once the first one's counts
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
