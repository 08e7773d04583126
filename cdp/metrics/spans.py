"""A query set in parts that a crew measures: the lines of each, and what is kept of them until all are there.

A part is a span of bytes of the set's file, which whoever does it reads by itself. What it finds is a file of columns,
written in one step: a part that was done is not done again, and one that is done twice is the same.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.crew import Crew, Stopped
from cdp.base.failures import Failures, Listed
from cdp.base.workspace import Workspace, write_bytes
from cdp.query_sets import DocumentQueries

DOCUMENTS = 4096
PARTS_PER_WORKER = 4

Columns = dict[str, NDArray[Any]]
Report = Callable[[int, int], bool]
"""Told how many documents of how many are done; its answer says whether to go on."""


@dataclass(frozen=True)
class Team:
    """Who measures a set in parts, and the folder for what they find, in the folder of the job."""

    crew: Crew
    folder: Path


@dataclass(frozen=True)
class Span:
    """One part of a set: its bytes from ``begin`` to ``end``, and ``out``, the file for what is found there.

    The rest is what a measurement depends on; a span of one that needs less leaves it empty.
    """

    workspace: str
    query_set: str
    begin: int
    end: int
    out: str
    language: str = ""
    stopwords: str = ""
    human: str = ""
    per_doc: int | None = None
    prompt: str = ""
    stage: str = ""

    def lines(self) -> Iterator[tuple[int, DocumentQueries]]:
        """(where its line begins, its queries) of each document of the span."""
        return query_sets.iter_offsets(Workspace(Path(self.workspace)), self.query_set, (self.begin, self.end))


def done_by(
    team: Team, task: Callable[[Span], int], what: str, workspace: Workspace, query_set: str, total: int,
    report: Report | None, **more: Any,
) -> list[Path] | None:  # fmt: skip
    """Have the crew do the ``task`` for each part of the set; the files, in the set's order. None if told to stop.

    ``what`` names the measurement and all that it depends on. ``more`` are fields of ``Span``.
    """
    n_lines = max(1, min(DOCUMENTS, -(-total // (PARTS_PER_WORKER * team.crew.size))))
    folder = team.folder / what
    parts = [
        Span(str(workspace.root), query_set, begin, end, str(folder / f"{begin:014d}-{end}.npz"), **more)
        for begin, end in query_sets.spans(workspace, query_set, n_lines)
    ]
    left = [part for part in parts if not Path(part.out).exists()]
    goes_on, done = True, 0

    def tell(n: int = 0) -> None:
        nonlocal goes_on
        goes_on = report is None or report(min(done, total), total)

    tell()
    with suppress(Stopped):
        for _, n in team.crew.each(task, left, should_stop=lambda: not goes_on, on_done=tell):
            done += n
        tell()
        if goes_on:
            return [Path(part.out) for part in parts]
    return None


def save(span: Span, columns: Columns, failures: Listed | None = None) -> None:
    """Write what was found, with the failures that were met."""
    lines = [] if failures is None else failures.lines
    content = io.BytesIO()
    done = np.array(0 if failures is None else failures.n_done)
    np.savez(content, allow_pickle=False, **columns, failed=as_bytes(lines), done=done)
    write_bytes(Path(span.out), content.getvalue())


def load(path: Path, failures: Failures | None = None) -> Columns:
    """What was found, its failures handed on."""
    with np.load(path, allow_pickle=False) as file:
        columns = {name: file[name] for name in file.files}
    lines, done = from_bytes(columns.pop("failed")), int(columns.pop("done"))
    if failures is not None:
        for line in lines:
            failures.count(line)
            failures.write(line)
        failures.done(done)
    return columns


def forget(paths: list[Path]) -> None:
    """Delete the files of parts, which are not needed any more."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        with suppress(OSError):
            os.rmdir(folder)


def as_bytes(value: Any) -> NDArray[np.uint8]:
    """JSON as a column: texts of any length, in a file without pickles."""
    return np.frombuffer(json.dumps(value).encode("ascii"), dtype=np.uint8)


def from_bytes(column: NDArray[np.uint8]) -> Any:
    return json.loads(column.tobytes())
