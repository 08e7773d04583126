"""What goes wrong, in words: with one item of a run, which then goes on, or with the run as a whole.

``Failures`` is the one mechanism of every stage. An exception that concerns one document, pair, row or query is
recorded with the item's id, the text that caused it and the traceback in ``failures.jsonl``, counted, and the run goes
on::

    failures = job.failures("measuring")
    for document in documents:
        with failures.item(document.id, document.text):
            values[document.id] = measure(document)
    failures.close()

What concerns the whole run passes through as it is: no memory, a full disk, no network, a wrong setting, a missing
model (``concerns_run``), and whatever is no ``Exception``. Twenty items in a row that fail end the run with
RepeatedFailureError: then it is the run that is wrong and not its items.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from cdp.base.errors import CdpError, RepeatedFailureError
from cdp.base.workspace import DISK_FAULTS, FULL, append_jsonl, read_jsonl, write_bytes

Item = TypeVar("Item")
Result = TypeVar("Result")

FILE = "failures.jsonl"
# So many items in a row that fail end the run.
IN_A_ROW = 20

LONGEST_TEXT = 2_000
LONGEST_TRACEBACK = 8_000
# Characters kept of the text that caused a failure, of its traceback, and of its reason.
LONGEST_REASON = 500

# Kinds of failure that every further item would meet too.
PASSED_ON = ("configuration", "network", "disk", "cuda_out_of_memory", "host_out_of_memory")

# What to do next, by the kind of a failure.
HINTS = {
    "cuda_out_of_memory": "Use a smaller batch_size, mini_batch (GradCache), a smaller max_length, or another GPU, "
    "then resume.",
    "host_out_of_memory": "Use a smaller batch_size or fewer documents, or a machine with more memory, then resume.",
    "disk": "Free some space on the workspace's disk, then resume.",
    "network": "Check the connection and the address, then resume.",
}

_RUN_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def concerns_run(error: BaseException) -> bool:
    """Whether an exception says something about the run (memory, disk, network, settings, model), not one item."""
    if not isinstance(error, Exception) or isinstance(error, RepeatedFailureError):
        return True
    if isinstance(error, OSError) and error.errno in _RUN_ERRNOS:
        return True
    return failure_of(error)["kind"] in PASSED_ON


class Failures:
    """The items of one run that failed, written to ``path`` as they come (kept in memory alone where it is None).

    ``unit`` names an item in the singular. ``stage`` is what was being done; the lines that an earlier attempt left
    under it are dropped on opening, unless ``keep`` (an attempt that goes on behind the items that failed before).
    ``limit`` is how many in a row end the run. ``on_change`` is told by how many their number changes.
    """

    def __init__(
        self,
        path: Path | None = None,
        stage: str = "",
        *,
        unit: str = "document",
        keep: bool = False,
        limit: int = IN_A_ROW,
        on_change: Callable[[int], None] = lambda n: None,
    ) -> None:
        self.path, self.stage, self.unit, self.limit = path, stage, unit, limit
        self.n = self.n_done = self.in_a_row = 0
        self.first: list[dict[str, Any]] = []
        self.last = ""
        self._on_change = on_change
        if path is not None and not keep and (dropped := drop(path, stage)):
            on_change(-dropped)

    def item(self, item_id: object, text: str = "", **where: Any) -> Attempt:
        """``with failures.item(…) as attempt:`` records what the block raises; ``attempt.failed`` then tells so."""
        return Attempt(self, str(item_id), text, where)

    def batch(
        self,
        call: Callable[[list[Item]], Iterable[Result]],
        items: list[Item],
        name: Callable[[int], object],
        text: Callable[[Item], str],
    ) -> list[Result | None]:
        """What ``call`` makes of the items, one result for each; None for those that fail.

        They are given to it together; where that raises, one by one, so that each bad one is recorded by itself.
        ``name`` maps an item's index among ``items`` to its id.
        """
        if not items:
            return []
        try:
            together: list[Result | None] = list(call(items))
        except Exception as error:
            if concerns_run(error):
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
        """So many items went well."""
        self.n_done += n
        self.in_a_row = 0 if n else self.in_a_row

    def record(self, item_id: object, error: Exception, text: str = "", **where: Any) -> None:
        """Write one failure down; ``error`` itself where it concerns the run, RepeatedFailureError at the limit."""
        if concerns_run(error):
            raise error
        line = line_of(error, item_id, text, unit=self.unit, stage=self.stage, **where)
        self.n += 1
        self.in_a_row += 1
        self.last = f"{self.unit} {line['id']}: {line['reason']}"
        if len(self.first) < self.limit:
            self.first.append(line)
        self.write(line)
        if self.in_a_row >= self.limit:
            raise RepeatedFailureError(
                f"{self.in_a_row} {self.unit}s in a row failed; the last was {self.last}",
                kind=failure_of(error)["kind"],
                hint=self._hint,
            ) from error

    @property
    def _hint(self) -> str:
        return f"{FILE} lists them with their texts and tracebacks; what is done stays done." if self.path else ""

    def write(self, line: dict[str, Any], *, counts: bool = True) -> None:
        """Write a line down as it is: of an item that failed, or (``counts`` False) of one that is merely noted."""
        if self.path is not None:
            append_jsonl(self.path, [line])
        if counts:
            self._on_change(1)

    def close(self) -> None:
        """RepeatedFailureError where not one item went well although some were tried."""
        if self.n and not self.n_done:
            raise RepeatedFailureError(
                f"Every {self.unit} failed ({self.n:,}); the last was {self.last}", kind="data", hint=self._hint
            )


class Attempt:
    """One item being worked on; see ``Failures.item``. ``reason`` says why it ``failed``, empty if it did not."""

    __slots__ = ("_failures", "_id", "_text", "_where", "reason")

    def __init__(self, failures: Failures, item_id: str, text: str, where: dict[str, Any]) -> None:
        self._failures, self._id, self._text, self._where = failures, item_id, text, where
        self.reason = ""

    @property
    def failed(self) -> bool:
        return bool(self.reason)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._failures.done()
            return False
        if not isinstance(error, Exception) or concerns_run(error):
            return False
        self.reason = describe(error)
        self._failures.record(self._id, error, self._text, **self._where)
        return True


def line_of(
    error: Exception, item_id: object, text: str = "", *, unit: str = "document", stage: str = "", **where: Any
) -> dict[str, Any]:
    """The line of ``failures.jsonl`` for one failure: the item, the reason, the text (an excerpt), the traceback.

    Of a CdpError the reason is its own words, and there is no traceback: it was raised on purpose.
    """
    line: dict[str, Any] = {"id": _written(str(item_id)), "unit": unit}
    if unit == "document":
        line["document_id"] = line["id"]
    line |= {**where, "reason": _written(describe(error), LONGEST_REASON), "error": type(error).__name__}
    if stage:
        line["stage"] = stage
    if text:
        line["text"] = _written(text, LONGEST_TEXT)
        line["text_length"] = len(text)
    if not isinstance(error, CdpError):
        line["traceback"] = _tail(_written("".join(traceback.format_exception(error))), LONGEST_TRACEBACK)
    return line


def describe(error: BaseException) -> str:
    """A failure in a sentence: a CdpError's own words, else the exception and the line of our code it came from."""
    if isinstance(error, CdpError):
        return str(error)
    text = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}cdp{os.sep}" in frame.filename] or frames
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}{f': {text[:300]}' if text else ''}{where}."


def _written(text: str, longest: int | None = None) -> str:
    """At most the first ``longest`` characters, with what UTF-8 cannot hold (lone surrogates) escaped."""
    return text[:longest].encode("utf-8", "backslashreplace").decode("utf-8")


def _tail(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"…{text[-longest:]}"


def drop(path: Path, stage: str) -> int:
    """Take the lines of ``stage`` out of a ``failures.jsonl``, for it is done anew; returns how many they were."""
    if not path.exists():
        return 0
    lines = list(read_jsonl(path))
    left = [line for line in lines if not isinstance(line, dict) or line.get("stage", "") != stage]
    if len(left) < len(lines):
        write_bytes(
            path,
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in left).encode("utf-8", "backslashreplace"),
        )
    return len(lines) - len(left)


@dataclass(frozen=True)
class Summary:
    """The failures in a ``failures.jsonl``: how many, by unit, and the first of them."""

    n: int
    units: dict[str, int]
    first: tuple[dict[str, Any], ...]

    @property
    def words(self) -> str:
        """``2 documents failed``, ``1 document and 3 pairs failed``; empty where nothing did."""
        parts = [f"{n:,} {unit}{'' if n == 1 else 's'}" for unit, n in self.units.items()]
        return f"{' and '.join(parts)} failed" if parts else ""


@dataclass(frozen=True)
class ItemsFailed:
    """The items of a job or an import that failed: how many, the first 20, and the files that list them all."""

    summary: Summary
    files: tuple[Path, ...]

    @property
    def warning(self) -> str:
        """``2 documents failed; the first, d49: KeyError … All are listed in …``; empty where nothing failed."""
        if not self.summary.n:
            return ""
        first = self.summary.first[0]
        sentence = (
            f"{self.summary.words}; the first, {first.get('id') or first.get('document_id')}: {first.get('reason')}"
        )
        return f"{sentence} Listed in {' and '.join(map(str, self.files))}."


def summary(lines: Iterable[Any], shown: int = IN_A_ROW) -> Summary:
    """What the lines of a ``failures.jsonl`` come to. Those of items that lost nothing (``kept``) do not count."""
    units: dict[str, int] = {}
    first: list[dict[str, Any]] = []
    n = 0
    for line in lost(lines):
        n += 1
        unit = str(line.get("unit") or "document")
        units[unit] = units.get(unit, 0) + 1
        if len(first) < shown:
            first.append(line)
    return Summary(n, units, tuple(first))


def lost(lines: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The lines of items that gave nothing; a document with fewer queries than asked for is none of them."""
    return (line for line in lines if isinstance(line, dict) and not line.get("kept"))


# Names of the network errors of libraries that this module does not import.
_NETWORK_ERRORS = frozenset(
    ("ConnectError", "ConnectTimeout", "ReadTimeout", "APIConnectionError", "APITimeoutError", "MaxRetryError",
     "LocalEntryNotFoundError", "OfflineModeIsEnabled")
)  # fmt: skip


def _disk_full(error: BaseException, text: str, where: str) -> str:
    """Return in words what is full and which file could not be written; empty for any other error.

    Libraries (safetensors, torch.save, DuckDB) raise errors of their own because of it.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in FULL:
            fault = DISK_FAULTS[seen.errno]
            return f"{fault[0].upper()}{fault[1:]}: {seen.filename or where} could not be written."
        seen = seen.__cause__ or seen.__context__
    full = "No space left on device" in text or "os error 28" in text or "code: 28" in text
    return f"The disk is full: {where} could not be written." if full else ""


def failure_of(error: BaseException, where: str = "a file") -> dict[str, str]:
    """Return kind, message and hint for an exception, as ``failure.json`` holds and a page shows them.

    ``where`` stands for the file that a full disk did not take, where the error does not name it.
    """
    if isinstance(error, CdpError):
        return {"kind": error.kind, "message": error.message, "hint": error.hint}
    name = type(error).__name__
    text = str(error).strip() or name
    message = text.splitlines()[0]
    if name == "OutOfMemoryError" or "CUDA out of memory" in text:
        kind = "cuda_out_of_memory"
    elif isinstance(error, MemoryError) or "can't allocate memory" in text:
        kind = "host_out_of_memory"
    elif full := _disk_full(error, text, where):
        kind, message = "disk", full
    else:
        network = isinstance(error, (ConnectionError, TimeoutError, socket.gaierror)) or name in _NETWORK_ERRORS
        kind, message = "network" if network else "bug", f"{name}: {message}"
    return {"kind": kind, "message": message, "hint": HINTS.get(kind, "The log holds the traceback.")}
