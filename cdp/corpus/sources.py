"""The files of one import, in a folder, a zip or gzip: encoding found, limits on unpacking, damaged files."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import re
import shutil
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

import numpy as np
import pyarrow as pa

from cdp.base.errors import InputError
from cdp.base.workspace import folder_size
from cdp.complexity.guessing import guess_language
from cdp.corpus.options import AUTO, MAX_LINE_CHARACTERS

BLOCK = 1 << 20

# Blocks of a file in which the first byte that is not UTF-8 is looked for, before anything of it is read.
BLOCKS_LOOKED_THROUGH = 64
HEAD_BYTES = 1 << 16

_SIGNATURES = (
    (b"\x1f\x8b", "a gzip file", "Its name should end in .gz (for example .jsonl.gz)."),
    (b"PK\x03\x04", "a zip archive or an Office document", "Its name should end in .zip, .docx, .pptx or .epub."),
    (b"PAR1", "a Parquet file", "Its name should end in .parquet, or set the format to parquet."),
    (b"%PDF", "a PDF", "Its name should end in .pdf."),
    (b"\x89PNG", "an image", "Only text can be read."),
)

# Encodings that are offered for a file that is not UTF-8 and not mostly ASCII.
_OFFERED = ["shift_jis", "euc_jp", "gb18030", "big5", "euc_kr", "cp1251", "koi8_r", "cp1256"]
# Windows code pages of Latin letters by the language that the function words show; cp1252 for all others.
_LATIN_PAGES = {"pl": "cp1250", "cs": "cp1250", "hu": "cp1250", "ro": "cp1250", "tr": "cp1254"}
# A word with letters of both kinds: Latin with accents; other scripts have whole words of high bytes.
_MIXED_WORD = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


def likely_encoding(data: bytes) -> str:
    """The most plausible encoding of bytes that are not UTF-8; ``latin-1``, which fits any bytes, as last resort."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if data.count(0) > len(data) // 10:
        return "utf-16-le" if data[1::2].count(0) >= data[0::2].count(0) else "utf-16-be"
    high, mixed = sum(byte > 127 for byte in data), len(_MIXED_WORD.findall(data))
    if high < len(data) / 4 or (high < len(data) / 2 and 2 * mixed > len(_HIGH_RUN.findall(data))):
        # A few accents and quotation marks are too little to tell a code page by; the words tell the language.
        for page in (_LATIN_PAGES.get(guess_language(data.decode("cp1252", "replace")), "cp1252"), "cp1252"):
            with suppress(UnicodeDecodeError):
                data.decode(page)
                return page
        return "latin-1"
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=_OFFERED, preemptive_behaviour=False).best()
    return best.encoding if best else "latin-1"


def _is_binary(data: bytes) -> bool:
    """Return True if more than one byte in fifty is a control character that no text file holds."""
    return sum(byte < 9 or 13 < byte < 32 for byte in data) > len(data) / 50


class _Fault(NamedTuple):
    """Where a file stops being in an encoding, in words and as its line, and the bytes around that place."""

    what: str
    line: int
    around: bytes


def _first_fault(source: Source, encoding: str, blocks: int = sys.maxsize) -> _Fault | None:
    """The first byte among so many blocks that is not in ``encoding``."""
    probe = replace(source, packed=False)  # bytes that are only looked at are not counted
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    offset, line = 0, 1
    with probe.open() as stream:
        for _ in range(blocks):
            block = stream.read(BLOCK)
            pending = len(decoder.getstate()[0])

            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                at = error.start - pending
                what = f"byte 0x{error.object[error.start]:02X} at offset {offset + at:,} does not fit"
                around = error.object[max(0, error.start - 4096) : error.start + 16384]
                return _Fault(what, line + block[: max(0, at)].count(b"\n"), around)
            except ValueError as error:  # utf-16 without its mark: the error has no position
                return _Fault(shown_name(str(error)), line, b"")

            if not block:
                break

            offset += len(block)
            line += block.count(b"\n")

    return None


def is_utf8(block: bytes) -> bool:
    """Return True if the bytes are UTF-8."""
    offsets = pa.py_buffer(np.array([0, len(block)], np.int64))
    try:
        pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(block)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _found_encoding(source: Source, blocks: int = BLOCKS_LOOKED_THROUGH) -> str:
    """UTF-8 where it fits so many blocks, else what the bytes around the first fault seem to be in.

    UTF-8 also for a file with a few damaged bytes, and for one that is no text: reading it names the fault.
    """
    probe = replace(source, packed=False)
    with suppress(InputError):
        with probe.open() as stream:
            head = stream.read(HEAD_BYTES)
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)):
            return likely_encoding(head)

        if head.count(0) > len(head) // 10:
            likely = likely_encoding(head)
            decoded = head[: len(head) // 4 * 4].decode(likely, "replace")
            controls = sum(character < " " and character not in "\t\r\n\f" for character in decoded)
            return "utf-8" if controls > len(decoded) / 50 else likely

        fault = _first_fault(source, "utf-8", blocks)
        if fault is not None:
            readable = fault.around.decode("utf-8", "replace")
            faults = readable.count("\ufffd")
            fits = sum(character > "\x7f" for character in readable) - faults
            return "utf-8" if fits >= faults or _is_binary(fault.around) else likely_encoding(fault.around)

    return "utf-8"


@contextmanager
def encoding_of_head(source: Source, encoding: str) -> Iterator[None]:
    """Inside, where ``encoding`` is ``auto``, take what the first block of a source is in; it is forgotten behind it.

    For readers that check each block when they come to it: looking through the file before reads it twice.
    """
    if encoding != AUTO or source.encoding:
        yield
        return
    source.encoding = _found_encoding(source, blocks=1)
    try:
        yield
    finally:
        source.encoding = ""


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a source: counted against its budget where they were packed, damage named."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        self._source, self._stream = source, stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            n = int(self._stream.readinto(buffer))  # type: ignore[attr-defined]
        except (*DAMAGED, OSError) as error:
            raise self._source.unreadable(error) from error
        if self._source.packed:
            self._source.budget.spend(n)
        return n


class _SourceText(io.TextIOWrapper):
    """The text of a source."""

    source: Source


@contextmanager
def open_text(source: Source, encoding: str, *, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    """The text of a source. ``newline`` as for ``open``: a line break is ``\\n`` alone, or with ``""`` any of three.

    Reading raises InputError where the text is not in ``encoding``, or in the one found where it is ``auto``.
    """
    source.encoding = (source.encoding or _found_encoding(source)) if encoding == AUTO else encoding
    is_utf8 = codecs.lookup(source.encoding).name in ("utf-8", "utf-8-sig")
    with source.open() as data:
        if is_utf8:
            _check_head(source, data.peek(1)[:HEAD_BYTES])
        with _SourceText(data, "utf-8-sig" if is_utf8 else source.encoding, newline=newline) as text:
            text.source = source
            try:
                yield text
            except UnicodeError as error:
                fault = _first_fault(source, source.encoding)
                raise (_refused(source, fault.what, fault.line) if fault else error) from None


def _check_head(source: Source, head: bytes) -> None:
    for signature, what, hint in _SIGNATURES:
        if head.startswith(signature):
            raise InputError(f"It is {what}, not text.", hint=hint, file=source.name)
    if head.count(0) > len(head) // 10:
        raise _refused(source, f"{head.count(0):,} of its first {len(head):,} bytes are zero")


def _refused(source: Source, fault: str, line: int | None = None) -> InputError:
    codec, found = codecs.lookup(source.encoding), _found_encoding(source)
    hint = f'It looks like {found}: set the encoding to "{found}".'
    if codecs.lookup(found) == codec:
        hint = "Check that the right file was chosen, or save it as UTF-8."
    if codec.name.startswith(("utf-16", "utf-32")):
        line = None  # a byte count gives no line number
    name = "UTF-8" if codec.name.startswith("utf-8") else source.encoding
    return InputError(f"It is not {name}: {fault}.", hint=hint, file=source.name, line=line)


def numbered_lines(text: io.TextIOBase, limit: int = MAX_LINE_CHARACTERS) -> Iterator[tuple[int, str | None]]:
    """(line number from 1, line with its break); None instead of a line of ``limit`` or more characters."""
    budget = text.source.budget if isinstance(text, _SourceText) and text.source.packed else None
    number = 0
    while line := text.readline(limit):
        number += 1
        if budget is not None:
            budget.spend(ROW_BYTES)
        if len(line) < limit or line.endswith("\n"):
            yield number, line
            continue
        while (rest := text.readline(BLOCK)) and not rest.endswith("\n"):
            pass
        yield number, None


# What the standard library raises for archives that are cut off, corrupt, encrypted, packed in an unknown way, or that
# ask for more memory than there is.
DAMAGED = (
    EOFError,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    zipfile.BadZipFile,
)

# A compressed file may unpack to this many times its size, or to FLOOR bytes: text reaches 20, a bomb 1,000. No file
# unpacks to more than MAX_UNPACKED bytes: MS MARCO's 8.8 million passages are a tenth of it.
LARGEST_RATIO, FLOOR, MAX_UNPACKED = 200, 100 * 10**6, 20 * 2**30
# What each line, row and paragraph counts beside its text: a million empty ones take as long as a million short ones.
ROW_BYTES = 64


class Budget:
    """What the compressed files (gz, zip, Parquet) of one import may unpack to: bytes, and ``ROW_BYTES`` for each line
    and row, counted as they come out."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    @classmethod
    def of(cls, path: Path, limit: int = MAX_UNPACKED) -> Budget:
        """Return the budget for reading ``path``, a file or a folder."""
        try:
            size = folder_size(path) if path.is_dir() else path.stat().st_size
        except OSError:
            size = 0
        return cls(min(limit, max(FLOOR, LARGEST_RATIO * size)))

    def spend(self, n: int) -> None:
        """Count what came out, or what a file says will. Raises InputError if it is too much."""
        self.spent += n
        if self.spent > self.limit:
            raise InputError(
                f"It unpacks to more than {self.limit / 1e6:,.0f} MB, {ROW_BYTES} bytes counted for each line or row, "
                "and was not read further.",
                hint="If it really is that big, unpack it or divide it, and give the folder's path.",
            )


def existing(path: Path, what: str = "file or folder") -> Path:
    """``path`` itself; InputError where there is nothing, or where no file can have such a name."""
    try:
        path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(f"{shown_name(path)} may not be read.", hint="Check who may read it.") from error
        raise InputError(
            f"There is no {what} {shown_name(path)}.", hint="Check the path; it is read on the server."
        ) from error
    return path


def shown_name(name: str | Path) -> str:
    """A file's name as it can be printed and stored: bytes that are no UTF-8 become U+FFFD, control characters too."""
    return _UNSHOWN.sub("\ufffd", str(name)[:LONGEST_NAME])


_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
LONGEST_NAME = 1024


@dataclass(eq=False)
class Source:
    """One file to read. ``name`` is its path relative to what the user gave, with ``/`` between parts; ``encoding``
    the one that it was read in, once it was."""

    name: str
    opener: Callable[[], BinaryIO]
    budget: Budget
    path: Path | None = None
    # Whether the bytes that come out are counted: of a plain file they are no more than it has.
    packed: bool = True
    encoding: str = ""

    @classmethod
    def of_file(cls, path: Path, name: str, budget: Budget) -> Source:
        """A file on disk; of formats that compress the unpacked bytes are counted."""
        packed = path.suffix.lower() in (".gz", ".parquet", ".pq")
        return cls(shown_name(name), lambda: open(path, "rb"), budget, path, packed)

    @property
    def compressed(self) -> bool:
        return self.name.lower().endswith(".gz")

    @property
    def plain_name(self) -> str:
        """The name without ``.gz``."""
        return self.name[:-3] if self.compressed else self.name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.plain_name).suffix.lower()

    @property
    def stem(self) -> str:
        return PurePosixPath(self.plain_name).stem

    def unreadable(self, error: Exception) -> InputError:
        """Return the error that says why the file, or the rest of it, cannot be read."""
        if isinstance(error, OSError) and not isinstance(error, DAMAGED):
            return InputError(f"It cannot be read: {error.strerror or error}.", file=self.name)
        problem = f"The compressed data cannot be unpacked: {shown_name(str(error)) or type(error).__name__}."
        return InputError(problem, hint="Create or copy the file again.", file=self.name)

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader]:
        """The unpacked bytes, counted against the budget. InputError for a damaged archive, also while it is read."""
        try:
            raw = self.opener()
        except (*DAMAGED, OSError) as error:
            raise self.unreadable(error) from error
        with raw:
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if self.compressed else raw
            yield io.BufferedReader(_Unpacked(self, stream), BLOCK)

    @contextmanager
    def on_disk(self) -> Iterator[Path]:
        """A path with the unpacked bytes, for readers that jump around in a file; a temporary copy where needed."""
        if self.path is not None and not self.compressed:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="cdp-unpacked-", ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / "file"
            with self.open() as stream, open(copy, "wb") as target:
                shutil.copyfileobj(stream, target, BLOCK)
            yield copy


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip. Raises InputError for a damaged one."""
    try:
        archive = zipfile.ZipFile(path)
    except (*DAMAGED, OSError) as error:
        problem = shown_name(str(error))
        raise InputError(f"It cannot be opened as a zip: {problem}.", hint="Zip it again.", file=path) from error
    with archive:
        yield archive


def zip_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget, prefix: str = "") -> Source:
    """Return a member of an open zip, its name behind ``prefix``. Damage shows as it is read."""
    return Source(shown_name(prefix + info.filename), lambda: cast(BinaryIO, archive.open(info)), budget)
