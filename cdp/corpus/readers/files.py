"""The reading process: PDF, Office files, web pages and EPUB, parsed apart from the rest, and their words counted.

A format is one function from a path to blocks (``cdp.corpus.passages.Block``) in reading order. It calls
``report.count`` with all text of the file, found without the walk that makes the blocks, and ``report.remove`` with
what it leaves out on purpose; it raises RefusedValueError for a file that cannot be read. The libraries are imported
inside the functions, so that only the reading process (``cdp.corpus.extraction``) loads them.
"""

from __future__ import annotations

import gc
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdp.corpus.checks import RefusedValueError
from cdp.corpus.extraction import blocks_of
from cdp.corpus.options import ReadOptions
from cdp.corpus.readers import READERS, Block, DocumentFormat, Report
from cdp.corpus.sources import ROW_BYTES, Source

Parse = Callable[[Path, Sequence[str], Report], Iterator[Block]]

MEMORY_BYTES = 4 << 30
# Characters of one file: more than any book; a small file that unpacks to more is a decompression bomb.
MAX_CHARACTERS = 100_000_000
BLOCKS_PER_LINE = 256
# Fields of a report that stay in the reading process: the words themselves are as many as the file's.
UNSENT = ("progress", "more_time", "inside", "outside")


@dataclass(frozen=True)
class OfficeFormat(DocumentFormat):
    """A format that the reading process parses by ``parse(path, passwords, report)``. ``zipped``: all are zips."""

    parse: Parse = lambda path, passwords, report: iter(())
    zipped: bool = False


def office_format(
    name: str, title: str, help: str, suffixes: tuple[str, ...], parse: Parse, order: int, **more: bool
) -> OfficeFormat:
    """Declare a format whose files are parsed by a library in the reading process; ``more``: ``zipped``, ``apart``."""

    def blocks(source: Source, options: ReadOptions, report: Report) -> Iterator[Block]:
        with source.on_disk() as path:
            report.keep_repeated, report.languages = options.keep_repeated, options.scan_languages
            yield from blocks_of(name, path, report)

    return OfficeFormat(name, title, help, suffixes, blocks, order=order, parse=parse, **more)


def serve() -> None:
    """Answer requests until standard input ends."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    gc.set_threshold(50_000)  # a page is thousands of objects, none of them garbage: a twentieth of the time of a PDF
    # Libraries print warnings to standard output; answers have it for themselves.
    out, sys.stdout = sys.stdout, sys.stderr

    def say(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    for line in sys.stdin:
        request = json.loads(line)
        try:
            _answer(say, **request)
        except RefusedValueError as refused:
            say(refused=[refused.kind, refused.reason])
        except MemoryError:
            say(refused=["too long", "reading it takes more memory than a file may take"])
        except Exception as error:  # a library's fault with this file; the next file may be sound
            detail = " ".join(str(error).replace(request["path"], Path(request["path"]).name).split())[:200]
            say(refused=["unreadable file", f"it is damaged ({type(error).__name__}: {detail})"])


def _answer(
    say: Callable[..., None], format: str, path: str, passwords: Sequence[str], keep: bool, languages: str = ""
) -> None:
    reader = READERS[format]
    assert isinstance(reader, OfficeFormat)
    report = Report(
        progress=lambda done, total: say(progress=[done, total]),
        more_time=lambda seconds: say(seconds=seconds),
        keep_repeated=keep,
        languages=languages,
    )

    size = 0
    texts: list[str] = []

    if reader.zipped and not zipfile.is_zipfile(path):
        with open(path, "rb") as file:
            if file.read(4) == b"\xd0\xcf\x11\xe0":  # OLE: what encrypted and old Office files are
                raise RefusedValueError("encrypted", "it has a password or is older than 2007: save it again")
        raise RefusedValueError("unreadable file", f"it is damaged, or not {reader.title}")

    waiting: list[Block] = []
    for block in reader.parse(Path(path), passwords, report):
        size += len(block.text) + ROW_BYTES
        if size > MAX_CHARACTERS:
            reason = f"it holds more than {MAX_CHARACTERS:,} characters, {ROW_BYTES} counted for each paragraph"
            raise RefusedValueError("too long", reason)

        texts.append(block.text)
        waiting.append(block)

        if len(waiting) == BLOCKS_PER_LINE:
            say(blocks=waiting)
            waiting = []

    say(blocks=waiting)

    report.compare(texts)
    say(report={name: value for name, value in vars(report).items() if name not in UNSENT})
