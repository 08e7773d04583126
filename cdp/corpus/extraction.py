"""Read PDF, Word, slides, web pages and EPUB in a process of its own, with limits of time and memory.

These formats are parsed by large libraries, some in C. A file that crashes, hangs or bloats one costs that file alone.
The process answers requests on standard input, a JSON line each, with JSON lines: ``{"blocks": [[text, level, page],
…]}`` and ``{"progress": [done, total]}``, at the end ``{"report": {…}}`` or ``{"refused": [kind, reason]}``. It ends
with its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.readers import Block, Report

# Seconds for a file, and more for each megabyte: 2,000 pages take about 30.
BASE_S, PER_MB_S = 60.0, 10.0
KEPT_BYTES = str(64 << 20)


class _Process:
    """The reading process of one import, started at the first file and again after one that killed it."""

    def __init__(self, passwords: Sequence[str]) -> None:
        self._passwords = list(passwords)
        self._process: subprocess.Popen[str] | None = None

    def blocks(self, format: str, path: Path, report: Report) -> Iterator[Block]:
        """The blocks of a file. RefusedValueError where it cannot be read."""
        process = self._running()
        seconds = BASE_S + PER_MB_S * path.stat().st_size / 10**6
        late = threading.Event()

        def expire() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, expire)
        timer.start()
        answered = False
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            request = {"format": format, "path": str(path), "passwords": self._passwords, "keep": report.keep_repeated}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            while not answered:
                answer = json.loads(process.stdout.readline())
                if "progress" in answer:
                    report.progress(*answer["progress"])
                for block in answer.get("blocks", ()):
                    yield Block(*block)
                answered = "refused" in answer or "report" in answer
                vars(report).update(answer.get("report", {}))
                if "refused" in answer:
                    kind, reason = answer["refused"]
                    wrong = format == "pdf" and kind == "encrypted" and self._passwords
                    raise RefusedValueError(kind, "the given password does not open it" if wrong else reason)
        except (OSError, ValueError):  # an empty line where the process ended
            reason = f"reading it took longer than {seconds:.0f} s" if late.is_set() else "reading it ended the process"
            raise RefusedValueError("unreadable file", f"{reason}; the file is damaged or too large") from None
        finally:
            timer.cancel()
            if not answered:  # also where not all blocks were wanted
                self.close()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from cdp.corpus.readers.files import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
                errors="surrogatepass",
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


_current: ContextVar[_Process] = ContextVar("reading process")


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
    """Keep one reading process for all files that are read inside. ``passwords`` are tried on encrypted ones."""
    process = _Process(passwords)
    token = _current.set(process)
    try:
        yield
    finally:
        _current.reset(token)
        process.close()


def blocks_of(format: str, path: Path, report: Report) -> Iterator[Block]:
    """The blocks of a file, read in the present ``reading_process``. RefusedValueError where it cannot be read."""
    yield from _current.get().blocks(format, path, report)
