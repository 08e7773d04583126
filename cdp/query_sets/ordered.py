"""Lines of JSON that arrive in any order, put into the order of the corpus without holding them in memory."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

Merge = Callable[[list[dict[str, Any]]], dict[str, Any]]


def scan(path: Path) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(offset, length, record) of each whole line with a ``position``; lines torn by a crash are skipped."""
    if not path.exists():
        return
    offset = 0
    with open(path, "rb") as file:
        for line in file:
            length = len(line)
            if line.endswith(b"\n"):
                try:
                    record = json.loads(line)
                except ValueError:
                    record = None
                if isinstance(record, dict) and isinstance(record.get("position"), int):
                    yield offset, length, record
            offset += length


def put_in_order(
    path: Path, *, merge: Merge, keep: Callable[[int], bool] = lambda position: True, destination: Path | None = None
) -> int:
    """Rewrite ``path`` (or write ``destination``) with one line per position, ascending; returns their number.

    ``merge`` makes one record of all that share a position, in the order in which they were written. Memory: 24 bytes
    per line. The result replaces the old file by a rename; nothing is written where ``path`` is in order already.
    """
    import numpy as np

    positions, offsets, lengths = array("q"), array("q"), array("q")
    for offset, length, record in scan(path):
        if keep(record["position"]):
            positions.append(record["position"])
            offsets.append(offset)
            lengths.append(length)
    order = np.argsort(np.asarray(positions, dtype=np.int64), kind="stable")
    ascending = all(later > earlier for earlier, later in pairwise(positions))
    whole = path.exists() and sum(lengths) == path.stat().st_size
    if destination is None and ascending and (whole or not path.exists()):
        return len(positions)
    target = destination or path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.ordering")
    n = 0
    with open(path, "rb") as source, open(temporary, "w", encoding="utf-8") as out:
        group: list[dict[str, Any]] = []
        for index in order.tolist():
            source.seek(offsets[index])
            record = json.loads(source.read(lengths[index]))
            if group and group[0]["position"] != record["position"]:
                n += _write(out, merge(group))
                group = []
            group.append(record)
        if group:
            n += _write(out, merge(group))
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, target)
    return n


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write ``path`` anew with one line per record; it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.writing")
    with open(temporary, "w", encoding="utf-8") as out:
        for record in records:
            _write(out, record)
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, path)


def _write(out: IO[str], record: dict[str, Any]) -> int:
    out.write(json.dumps(record, ensure_ascii=False) + "\n")
    return 1
