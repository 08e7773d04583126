"""What the two sides of a job write to each other in the store, below ``jobs/<job>/<attempt>/``.

``inputs.json``   the submitter, once: the files that the job needs, as pieces, and where its workspace lies
``lease.json``    the submitter, every second: its own ``lease.json``, and up to what it has read the node's words
``pulse.json``    the node, every second: its ``node.json``, the files that say how it goes, and the number of its list
``files.json``    the node, once all its pieces are there: all other files of the job as they were at one moment
``handover-*``    the submitter: covered keys (``cdp.jobs.handover``); the node deletes them

Each is written whole, and each attempt has its own: a node that was given up disturbs nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cdp.jobs.store.bucket import Bucket
from cdp.jobs.store.pieces import Entry

INPUTS, LEASE, PULSE, FILES = "inputs.json", "lease.json", "pulse.json", "files.json"

TOUCH_S = 1.0
"""Seconds between two looks at the other side's word."""


class Letters:
    """The words of one attempt."""

    def __init__(self, bucket: Bucket, job: str, attempt: int) -> None:
        self.bucket, self.job, self.attempt = bucket, job, attempt
        self.folder = f"{job}/{attempt}"

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        self.bucket.put(f"{self.folder}/{name}", json.dumps(value, ensure_ascii=True).encode())

    def read(self, name: str) -> dict[str, Any]:
        """What stands there; empty where there is nothing (yet), or nothing that can be read."""
        data = self.bucket.get(f"{self.folder}/{name}")
        try:
            value = json.loads(data) if data is not None else {}
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


def listed(entries: Mapping[str, Entry]) -> dict[str, Any]:
    return {name: entry.to_list() for name, entry in entries.items()}


def entries_in(value: Any) -> dict[str, Entry]:
    """The files of a list; those that are none are left out."""
    entries = {}
    for name, values in value.items() if isinstance(value, dict) else ():
        if isinstance(values, list) and len(values) > 1:
            entries[str(name)] = Entry.from_list(values)
    return entries
