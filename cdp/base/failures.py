"""Failures of an item, listed while the run goes on, and what ends a run: 20 in a row, a fatal error; kind and hint.

An exception raised for one document, row or query is written to ``failures.jsonl`` with the item's id, text and
traceback, counted, and the run continues::

    failures = job.failures("measuring")
    for document in documents:
        with failures.item(document.id, document.text):
            values[document.id] = measure(document)
    failures.close()

Fatal errors (``is_fatal``: no memory, a full disk, no network, a wrong setting, a missing model) are raised unchanged.
So is RepeatedFailureError after 20 failed items in a row: then the run is wrong, not its items.
"""

from __future__ import annotations

import errno
import os
import socket
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cdp.base import records
from cdp.base.errors import CdpError, RepeatedFailureError, writable
from cdp.base.records import Count, fields
from cdp.base.redaction import clean, cleaned
from cdp.base.text import capital, counted
from cdp.base.workspace import append_jsonl, disk_fault, read_jsonl, write_jsonl

Item = TypeVar("Item")
Result = TypeVar("Result")

FILE = "failures.jsonl"
# In a job's folder: the ids of the failed items that its newest attempt is a retry of.
RETRY = "retry.json"
IN_A_ROW = 20  # failed items in a row that end the run
LONGEST_TEXT, LONGEST_TRACEBACK, LONGEST_REASON = 2_000, 8_000, 500  # characters kept with a failure

# Every further item would fail the same way.
FATAL_KINDS = ("configuration", "network", "disk", "cuda_out_of_memory", "host_out_of_memory")
HINTS = {
    "cuda_out_of_memory": "Use a smaller batch_size, mini_batch (GradCache), a smaller max_length, or another GPU, "
    "then resume.",
    "host_out_of_memory": "Use a smaller batch_size or fewer documents, or a machine with more memory, then resume.",
    "disk": "Free some space on the workspace's disk, or lift the limit, then resume.",
    "network": "Check the connection and the address, then resume.",
}
# Names of the network errors of libraries that this module does not import.
_NETWORK_ERRORS = frozenset(
    ("ConnectError", "ConnectTimeout", "ReadTimeout", "APIConnectionError", "APITimeoutError", "MaxRetryError",
     "LocalEntryNotFoundError", "OfflineModeIsEnabled")
)  # fmt: skip


def is_fatal(error: BaseException) -> bool:
    """Return True if the error ends the run (memory, disk, network, settings, model) rather than one item."""
    if not isinstance(error, Exception) or isinstance(error, RepeatedFailureError):
        return True
    return failure_of(error)["kind"] in FATAL_KINDS


@dataclass
class Streak:
    """Failures in a row: at the limit the run is wrong, not its items."""

    limit: int = IN_A_ROW
    n: int = 0

    def add(self) -> bool:
        """Count one more failure; return True at the limit and beyond."""
        self.n += 1
        return self.n >= self.limit

    def end(self) -> None:
        """Start again at zero, after a success."""
        self.n = 0


@dataclass
class ItemAttempt:
    """One item in work; see ``Failures.item``. ``reason`` says why it failed, empty if it did not."""

    reason: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.reason)


class Failures:
    """The failed items of one run, appended to ``path`` (in memory only if None).

    ``unit`` names an item in the singular, ``stage`` the work in progress: lines of that stage from an earlier attempt
    are dropped on opening, unless ``keep`` (this attempt continues behind them); of a retry of ``only`` some items,
    those of these. ``on_change`` gets each change of their number.
    """

    def __init__(
        self,
        path: Path | None = None,
        stage: str = "",
        *,
        unit: str = "document",
        keep: bool = False,
        only: Collection[str] = (),
        on_change: Callable[[int], None] = lambda n: None,
    ) -> None:
        self.path, self.stage, self.unit = path, stage, unit
        self.n = self.n_done = 0
        self._streak = Streak()
        self.first: list[dict[str, Any]] = []
        self.last = ""
        self._on_change = on_change

        if path is not None and not keep:
            lines = list(read_jsonl(path))
            left = [
                line
                for line in lines
                if not isinstance(line, dict)
                or line.get("stage", "") != stage
                or (only and str(line.get("id")) not in only)
            ]
            if len(left) < len(lines):
                write_jsonl(path, left)
                on_change(len(left) - len(lines))

    @contextmanager
    def item(self, item_id: object, text: str = "", **where: Any) -> Iterator[ItemAttempt]:
        """Record what the block raises, unless it is fatal; the attempt then says that it failed."""
        attempt = ItemAttempt()
        try:
            yield attempt
        except Exception as error:
            if is_fatal(error):
                raise
            attempt.reason = describe(error)
            self.record(item_id, error, text, **where)
        else:
            self.done()

    def batch(
        self,
        call: Callable[[list[Item]], Iterable[Result]],
        items: list[Item],
        name: Callable[[int], object],
        text: Callable[[Item], str],
    ) -> list[Result | None]:
        """Return one result of ``call`` per item, None for items that fail.

        All items are passed at once; if that raises, one by one, so that only the bad ones fail. ``name`` maps an
        item's index to its id.
        """
        if not items:
            return []

        try:
            together: list[Result | None] = list(call(items))
        except Exception as error:
            if is_fatal(error):
                raise
        else:
            self.done(len(items))
            return together

        results: list[Result | None] = []
        for index, item in enumerate(items):
            result: Result | None = None
            with self.item(name(index), text(item)):
                (result,) = call([item])
            results.append(result)

        return results

    def done(self, n: int = 1) -> None:
        """Count ``n`` successful items."""
        self.n_done += n
        if n:
            self._streak.end()

    def record(self, item_id: object, error: Exception, text: str = "", **where: Any) -> None:
        """Record one failure. Raises a fatal error unchanged, and RepeatedFailureError at the limit."""
        if is_fatal(error):
            raise error

        line = line_of(error, item_id, text, unit=self.unit, stage=self.stage, **where)
        self.n += 1
        self.last = f"{self.unit} {line['id']}: {line['reason']}"

        if len(self.first) < self._streak.limit:
            self.first.append(line)

        self.write(line)

        if self._streak.add():
            raise RepeatedFailureError(
                f"{self._streak.n} {self.unit}s in a row failed; the last was {self.last}",
                kind=failure_of(error)["kind"],
                hint=self._hint,
            ) from error

    @property
    def _hint(self) -> str:
        return f"{FILE} lists them with their texts and tracebacks; finished items are kept." if self.path else ""

    def write(self, line: dict[str, Any], *, counts: bool = True) -> None:
        """Append a line: of a failed item, or (``counts`` False) of one that is only noted."""
        if self.path is not None:
            append_jsonl(self.path, [line])
        if counts:
            self._on_change(1)

    def close(self) -> None:
        """Raise RepeatedFailureError if items were tried and all failed."""
        if self.n and not self.n_done:
            raise RepeatedFailureError(
                f"Every {self.unit} failed ({self.n:,}); the last was {self.last}", kind="data", hint=self._hint
            )


def line_of(
    error: Exception, item_id: object, text: str = "", *, unit: str = "document", stage: str = "", **where: Any
) -> dict[str, Any]:
    """Return the line of ``failures.jsonl`` for one failure: id, reason, an excerpt of the text, traceback.

    A CdpError has no traceback: it was raised on purpose.
    """
    line: dict[str, Any] = {"id": writable(str(item_id)), "unit": unit}
    if unit == "document":
        line["document_id"] = line["id"]

    line |= {**where, "reason": writable(describe(error))[:LONGEST_REASON], "error": type(error).__name__}

    if stage:
        line["stage"] = stage
    if text:
        line |= {"text": writable(text)[:LONGEST_TEXT], "text_length": len(text)}

    if not isinstance(error, CdpError):
        shown = writable("".join(traceback.format_exception(error)))
        line["traceback"] = shown if len(shown) <= LONGEST_TRACEBACK else f"…{shown[-LONGEST_TRACEBACK:]}"

    return line


def describe(error: BaseException) -> str:
    """Return a failure as a sentence: a CdpError's own, else the exception and the line of our code that raised it."""
    if isinstance(error, CdpError):
        return str(error)
    text = " ".join(clean(str(error)).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}cdp{os.sep}" in frame.filename] or frames
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}{f': {text[:300]}' if text else ''}{where}."


@dataclass(frozen=True)
class FailedItems:
    """The failed items of a job or an import: their number, in all and by unit, the first of them, and their files."""

    n: int
    units: dict[str, int]
    first: tuple[dict[str, Any], ...]
    files: tuple[Path, ...] = ()

    @property
    def words(self) -> str:
        """``2 documents failed``, ``1 document and 3 pairs failed``; empty if nothing did."""
        return f"{' and '.join(counted(n, unit) for unit, n in self.units.items())} failed" if self.n else ""

    @property
    def warning(self) -> str:
        """``2 documents failed; the first, d49: KeyError … Listed in …``; empty if nothing failed."""
        if not self.n:
            return ""
        item, reason = self.first[0].get("id") or self.first[0].get("document_id"), self.first[0].get("reason")
        return f"{self.words}; the first, {item}: {reason} Listed in {' and '.join(map(str, self.files))}."


def failed_items(*paths: Path) -> FailedItems:
    """Return the failed items that these files list."""
    failed = {path: list(lost(records.lines(LINE, path))) for path in paths}
    lines = [line for listed in failed.values() for line in listed]
    units = dict(Counter(line.get("unit") or "document" for line in lines))
    return FailedItems(
        len(lines), units, tuple(cleaned(lines[:IN_A_ROW])), tuple(path for path in paths if failed[path])
    )


# A failed item, or one that is only noted; importers add what they know of a row.
LINE = fields(
    id=str, document_id=str, position=Count, unit=str, stage=str, reason=str, error=str, text=str, traceback=str,
    raw=list[str], problems=dict[str, Count], kept=Count,
)  # fmt: skip


def lost(lines: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the lines of items without a result. A document with too few queries has one (``kept``)."""
    return (line for line in lines if not line.get("kept"))


def failure_of(error: BaseException, where: str = "a file") -> dict[str, str]:
    """Return kind, message and hint of an exception, as in ``failure.json``.

    ``where`` is named for a full disk if the error does not name a file.
    """
    if isinstance(error, CdpError):
        return {"kind": error.kind, "message": error.message, "hint": error.hint}

    name = type(error).__name__
    text = str(error).strip() or name
    message = text.splitlines()[0]

    if name == "OutOfMemoryError" or "CUDA out of memory" in text:
        kind = "cuda_out_of_memory"
    elif isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM or "can't allocate" in text:
        kind = "host_out_of_memory"
    elif fault := disk_fault(error):
        fault = fault if fault.endswith(")") else f"{fault} ({where})"
        kind, message = "disk", f"{capital(fault)}."
    else:
        network = isinstance(error, (ConnectionError, TimeoutError, socket.gaierror)) or name in _NETWORK_ERRORS
        kind, message = "network" if network else "bug", f"{name}: {message}"

    return {"kind": kind, "message": message, "hint": HINTS.get(kind, "The log holds the traceback.")}
