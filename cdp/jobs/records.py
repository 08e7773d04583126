"""The small JSON files beside a job, as far as they can be trusted: damage to one must not hide the other jobs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from cdp.base.workspace import read_json_or_none

_NUMBER = (int, float)
_FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(
        ("attempt", "done", "total", "failures", "exit_code", "signal", "supervisor_pid", "worker_pid"), (int,)
    ),
    **dict.fromkeys(
        ("phase", "outcome", "message", "unit", "queued", "started", "ended", "hint", "kind", "host"), (str,)
    ),
    **dict.fromkeys(
        (
            "clock",
            "clock_offset",
            "started_clock",
            "next_within_s",
            "seconds",
            "eta_s",
            "rate",
            "host_memory",
            "gpu_memory",
        ),
        _NUMBER,
    ),
    **dict.fromkeys(("failure", "request", "place"), (dict,)),
    **dict.fromkeys(("devices", "history", "granted", "after"), (list,)),
}
"""What the fields that the dashboard reads hold; any of them may be null."""


def read_record(path: Path) -> dict[str, Any] | None:
    """The record in a file, without fields that hold what they cannot; None where there is no whole record (yet)."""
    value = read_json_or_none(path)
    if not isinstance(value, dict):
        return None
    record = {name: field for name, field in value.items() if _holds(name, field)}
    if "history" in record:
        record["history"] = [entry for entry in record["history"] or [] if isinstance(entry, dict)]
    for name in ("devices", "granted", "after"):
        if name in record:
            record[name] = [entry for entry in record[name] or [] if isinstance(entry, str)]
    return record


def _holds(name: str, value: Any) -> bool:
    kinds = _FIELDS.get(name)
    if kinds is None:
        return True
    if value is None:  # what is always counted with may be absent, but not null
        return name not in ("attempt", "done", "total", "phase", "next_within_s", "started_clock", "clock")
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        return False
    return not isinstance(value, float) or math.isfinite(value)
