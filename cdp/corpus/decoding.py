"""Bytes to text, strictly: the first byte that does not fit is named with its place and a likely encoding."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from cdp.base.errors import InputError
from cdp.corpus.options import MAX_LINE_CHARACTERS
from cdp.corpus.sources import Source, shown_name

BLOCK = 1 << 20

_SIGNATURES = (
    (b"\x1f\x8b", "a gzip file", "Its name should end in .gz (for example .jsonl.gz)."),
    (b"PK\x03\x04", "a zip archive (or an Office document)", "Its name should end in .zip; save documents as text."),
    (b"PAR1", "a Parquet file", "Its name should end in .parquet, or set the format to parquet."),
    (b"%PDF", "a PDF", "Turn it into plain text first."),
    (b"\x89PNG", "an image", "Only text can be read."),
)

_FREQUENT = {
    "shift_jis": "のにをはたがとでてしいるなれさもらあかっりこ、。ンスー",
    "euc_jp": "のにをはたがとでてしいるなれさもらあかっりこ、。ンスー",
    "gb18030": "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出会，。",
    "big5": "的一是在不了有和人這中大為上個國我以要他時來用們生到作地於出會，。",
    "euc_kr": "이다는에의을가고하를은로지한사도기어서인나그대시리자해",
    "cp1251": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфіїє",
    "koi8_r": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэф",
    "cp1256": "اليمنوترةبعدسفهكقحجشطصخأإىذضثزغظءئ",
    "cp1252": "éèàçêùôîâëïüöäßñóíáúãõåøæœÉÀÖÄÜ’‘“”–—…«»°€£§·",
}
"""Per encoding, characters that make up most non-ASCII characters of texts really written in it."""

_OTHER_SCRIPTS = ("cp1251", "koi8_r", "cp1256")
"""One byte per letter of a script that is not mixed with Latin letters within a word."""


def likely_encoding(data: bytes) -> str:
    """The most plausible encoding of bytes that are not UTF-8; ``latin-1``, which fits any bytes, as last resort."""
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if data.count(0) > len(data) // 10:
        return "utf-16-le" if data[1::2].count(0) >= data[0::2].count(0) else "utf-16-be"
    best, best_share = "latin-1", 0.3
    for encoding, frequent in _FREQUENT.items():
        decoder = codecs.getincrementaldecoder(encoding)("strict")
        try:
            text = decoder.decode(data)
        except UnicodeDecodeError:
            continue
        if encoding in _OTHER_SCRIPTS and _within_latin_words(text):
            continue
        foreign = [c for c in text if not c.isascii()]
        share = sum(c in frequent for c in foreign) / max(1, len(foreign))
        if share > best_share:
            best, best_share = encoding, share
    return best


def _within_latin_words(text: str) -> bool:
    """Whether most letters beyond ASCII stand next to an ASCII letter, as accents do and Cyrillic or Arabic do not."""
    positions = [i for i, c in enumerate(text) if not c.isascii() and c.isalpha()]
    touching = sum(
        any(c.isascii() and c.isalpha() for c in text[max(0, i - 1) : i] + text[i + 1 : i + 2]) for i in positions
    )
    return touching > len(positions) / 2


def _is_binary(data: bytes) -> bool:
    """Whether more than one byte in fifty is a control character that no text file holds."""
    return sum(byte < 9 or 13 < byte < 32 for byte in data) > len(data) / 50


def _is_utf_8(head: bytes) -> bool:
    """Whether the beginning of a file, which may be cut off within a character, is UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head)
    except UnicodeDecodeError:
        return False
    return True


class _Utf8(io.RawIOBase):
    """Reads a source in any encoding and gives UTF-8 that is known to be valid, without a byte order mark."""

    def __init__(self, source: Source, stream: BinaryIO, encoding: str) -> None:
        self._source, self._stream, self._encoding = source, stream, encoding
        self._is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        self._decoder = codecs.getincrementaldecoder("utf-8" if self._is_utf8 else encoding)("strict")
        self._offset = 0
        self._lines = 0
        self._head: bytes | None = None
        self._ready = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            self._ready = memoryview(self._next())
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _next(self) -> bytes:
        block = self._source.read_block(self._stream, BLOCK)
        self._ended = not block
        if self._head is None:
            self._head = block[:65536]
            self._check_head(self._head)
            if self._is_utf8 and block.startswith(codecs.BOM_UTF8):
                self._offset, block = 3, block[3:]
        pending = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            raise self._not_decodable(error, block, pending) from None
        except ValueError as error:  # utf-16 without its mark, escapes that lead nowhere: no place is told
            raise self._not_text(str(error)) from None
        self._offset += len(block)
        self._lines += block.count(b"\n")
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:  # utf-7 and the escapes can write it
            raise self._not_text("it holds half of a surrogate pair") from None

    def _not_text(self, problem: str) -> InputError:
        head = self._head or b""
        likely = "utf-8" if _is_utf_8(head) else likely_encoding(head)
        hint = f'It looks like {likely}: set the encoding to "{likely}".'
        return InputError(f"It is not {self._encoding}: {shown_name(problem)}.", hint=hint, file=self._source.name)

    def _check_head(self, head: bytes) -> None:
        if not self._is_utf8:
            return
        for signature, what, hint in _SIGNATURES:
            if head.startswith(signature):
                raise InputError(f"It is {what}, not text.", hint=hint, file=self._source.name)
        if head.count(0) > len(head) // 10:
            likely = likely_encoding(head)
            raise InputError(
                f"It is not UTF-8: {head.count(0):,} of its first {len(head):,} bytes are zero, "
                f"so it is {likely} or no text at all.",
                hint=f'Set the encoding to "{likely}" if it is text.',
                file=self._source.name,
            )

    def _not_decodable(self, error: UnicodeDecodeError, block: bytes, pending: int) -> InputError:
        start = error.start
        offset = self._offset - pending + start
        line = self._lines + 1 + block[: max(0, start - pending)].count(b"\n")
        window = error.object[max(0, start - 4096) : start + 16384]
        head = self._head or b""
        bom = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
        likely = likely_encoding(head if bom else window)
        if not self._is_utf8 and not bom and _is_utf_8(head):
            likely = "utf-8"
        name = "UTF-8" if self._is_utf8 else self._encoding
        hint = f'It looks like {likely}: set the encoding to "{likely}", or save the file as UTF-8.'
        if likely == "latin-1" and _is_binary(window):
            hint = "It holds bytes that no text does: check that the right file was chosen."
        if codecs.lookup(likely).name == codecs.lookup(self._encoding).name:
            hint = "Save the file as UTF-8."
        problem = f"It is not {name}: byte 0x{error.object[start]:02X} at offset {offset:,} does not fit."
        wide = self._encoding.lower().startswith(
            ("utf-16", "utf-32", "utf16", "utf32")
        )  # lines cannot be told by bytes
        return InputError(problem, hint=hint, file=self._source.name, line=None if wide else line)


@contextmanager
def open_text(source: Source, encoding: str, *, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    """The text of a source. ``newline`` as for ``open``: a line break is ``\\n`` alone, or with ``""`` any of three.

    Reading raises InputError at the first byte that is not in ``encoding``.
    """
    with source.open() as stream:
        checked = io.BufferedReader(_Utf8(source, stream, encoding), BLOCK)
        with io.TextIOWrapper(checked, encoding="utf-8", newline=newline) as text:
            yield text


def numbered_lines(text: io.TextIOWrapper, limit: int = MAX_LINE_CHARACTERS) -> Iterator[tuple[int, str | None]]:
    """(line number from 1, line with its break); None instead of a line of ``limit`` or more characters."""
    number = 0
    while line := text.readline(limit):
        number += 1
        if len(line) < limit or line.endswith("\n"):
            yield number, line
            continue
        while (rest := text.readline(BLOCK)) and not rest.endswith("\n"):
            pass
        yield number, None
