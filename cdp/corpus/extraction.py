"""The processes of their own that parse PDF, Office files, web pages, EPUB, and Parquet; limits of time and memory.

These formats are parsed by large libraries, some in C. A file that crashes, hangs or bloats one costs that file alone.
A process answers requests on standard input, a JSON line each, with JSON lines: ``{"blocks": [[text, level, page],
…]}`` and ``{"progress": [done, total]}``, at the end ``{"report": {…}}`` or ``{"refused": [kind, reason]}``. That of
tables answers ``{"names": […], "unpacked": […]}``, or an Arrow stream and the report. It ends with its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report

# Seconds for a file, and more for each megabyte: 2,000 pages take about 30.
BASE_S, PER_MB_S = 60.0, 10.0
# The most that a file with scanned pages may ask for beside.
MAX_SCAN_S = 2 * 3600.0
KEPT_BYTES = str(64 << 20)

# What Python runs: for documents, and for tables.
DOCUMENTS = ("-c", "from cdp.corpus.readers.files import serve; serve()")
TABLES = (str(Path(__file__).parent / "readers" / "parquet_process.py"),)


class _Process:
    """A reading process of one import, started at the first file and again after one that killed it."""

    def __init__(self, passwords: Sequence[str] = (), program: Sequence[str] = DOCUMENTS) -> None:
        self._passwords, self._program = list(passwords), program
        self._process: subprocess.Popen[bytes] | None = None
        self._patience = 1.0
        self._ends = 0.0

    def blocks(self, format: str, path: Path, report: Report) -> Iterator[Block]:
        """The blocks of a file. RefusedValueError where it cannot be read."""
        try:
            how = {"passwords": self._passwords, "keep": report.keep_repeated, "languages": report.languages}
            with self._asked(path, format=format, **how) as out:
                while "report" not in (answer := _answer(out)):
                    self._ends += min(answer.get("seconds", 0), MAX_SCAN_S)
                    if "progress" in answer:
                        report.progress(*answer["progress"])
                    for block in answer.get("blocks", ()):
                        yield Block(*block)
                vars(report).update(answer["report"])
        except RefusedValueError as refused:
            wrong = format == "pdf" and refused.kind == "encrypted" and self._passwords
            reason = "the given password does not open it" if wrong else refused.reason
            raise RefusedValueError(refused.kind, reason) from None

    def columns(self, path: Path) -> dict[str, int]:
        """The columns of a table, with the bytes that each unpacks to as the file says. Raises as ``blocks``."""
        with self._asked(path) as out:
            answer = _answer(out)
            return dict(zip(answer["names"], answer["unpacked"], strict=True))

    def batches(
        self, path: Path, columns: Sequence[str], row_bytes: int, max_row_bytes: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a table, a few megabytes at a time. Raises as ``blocks``."""
        with self._asked(path, columns=columns, row_bytes=row_bytes, max_row_bytes=max_row_bytes) as out:
            with pa.ipc.open_stream(out) as stream:
                yield from stream
            _answer(out)

    @contextmanager
    def _asked(self, path: Path, **request: Any) -> Iterator[IO[bytes]]:
        """Send a request; give what its answer is read from. RefusedValueError where that takes too long, or ends the
        process, which is ended too if not all of the answer was wanted."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = self._patience * BASE_S + PER_MB_S * path.stat().st_size / 10**6
        self._ends = time.monotonic() + seconds
        late, done = threading.Event(), threading.Event()

        def expire() -> None:
            while (left := self._ends - time.monotonic()) > 0:
                if done.wait(left):
                    return
            late.set()
            process.kill()

        threading.Thread(target=expire, daemon=True).start()
        whole = False

        try:
            process.stdin.write(json.dumps({"path": str(path), **request}).encode() + b"\n")
            process.stdin.flush()
            yield process.stdout
            whole = True
        except RefusedValueError:
            whole = True
            raise
        except (OSError, ValueError):  # an empty line or half a batch where the process ended
            reason = f"reading it took longer than {seconds:.0f} s" if late.is_set() else "reading it ended the process"
            raise RefusedValueError("unreadable file", f"{reason}; the file is damaged or too large") from None
        finally:
            done.set()
            if late.is_set():  # a thousand files that hang cost no more than twice the time of one
                self._patience /= 2
            if not whole:
                self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, *self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        return self._process

    def close(self) -> None:
        if self._process is not None:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            self._process = None


def _answer(out: IO[bytes]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(out.readline())
    if "refused" in answer:
        raise RefusedValueError(*answer["refused"])
    return answer


# Of the present import: for documents, and for tables.
_documents: ContextVar[_Process] = ContextVar("reading process")
_tables: ContextVar[_Process] = ContextVar("reading process of tables")


def _environment() -> dict[str, str]:
    """What the reading process inherits: no key and no token, for what it parses may be hostile."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    # Python would import first from the current folder, which may be a stranger's.
    path = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    # Each page's memory would go back to the system and be asked for again: a quarter of the time of reading a PDF.
    keep = {"MALLOC_TRIM_THRESHOLD_": KEPT_BYTES, "MALLOC_MMAP_THRESHOLD_": KEPT_BYTES, "MALLOC_TOP_PAD_": KEPT_BYTES}
    return {**inherited, **keep, "PYTHONPATH": os.pathsep.join(path), "PYTHONSAFEPATH": "1"}


@contextmanager
def reading_process(passwords: Sequence[str] = ()) -> Iterator[None]:
    """Keep one process for all documents, and one for all tables, that are read inside. ``passwords`` are tried on
    encrypted files."""
    with _kept(_documents, _Process(passwords)), _kept(_tables, _Process(program=TABLES)):
        yield


@contextmanager
def _kept(current: ContextVar[_Process], process: _Process) -> Iterator[None]:
    token = current.set(process)
    try:
        yield
    finally:
        current.reset(token)
        process.close()


@contextmanager
def table_reader() -> Iterator[_Process]:
    """The present reading process of tables, or one for a single table."""
    if process := _tables.get(None):
        yield process
        return
    with reading_process():
        yield _tables.get()


def blocks_of(format: str, path: Path, report: Report) -> Iterator[Block]:
    """The blocks of a file, read in the present ``reading_process``. RefusedValueError where it cannot be read."""
    yield from _documents.get().blocks(format, path, report)
