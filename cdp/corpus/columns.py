"""Rows parsed together as Arrow columns: blocks of whole lines, words counted, which rows are odd.

A reader hands over blocks whose rows it could parse together; what is odd in them (a value that is no plain text,
an id with unusual characters) is read again as a row, by the code that says what is wrong with it.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdp.base.errors import InputError
from cdp.corpus.checks import FieldMap, resolve_fields
from cdp.corpus.documents import count_words
from cdp.corpus.options import MAX_DOCUMENT_CHARACTERS, MAX_ID_CHARACTERS, ROWS_FOR_FIELDS, ReadOptions
from cdp.corpus.readers import BadRow, Chunk, Item, Row
from cdp.corpus.sources import BLOCK, ROW_BYTES, Source, is_utf8

# Bytes that are parsed together, and where one of their rows has a fault, row by row.
BLOCK_BYTES = BLOCK
# A row that is longer is left to the readers of rows.
LONGEST_BLOCK = 8 * BLOCK
# Bytes whose words are counted together: what lies in a processor's cache.
CACHE_BYTES = 1 << 18
_NEWLINE = 10


Ends = NDArray[np.int64]


def _blocks(
    source: Source, ends_of: Callable[[bytes, Ends], Ends | None]
) -> Generator[tuple[bytes, Ends, Ends | None], None, None]:
    """The bytes of a source, without a byte order mark, in blocks of whole rows, where each line ends, and each row.

    The last row ends with a line break, too. None, and no more, where the rows' ends are unclear or rows are too long.
    """
    with source.open() as stream:
        rest = b""
        first = True
        while data := stream.read(BLOCK_BYTES):
            if first:
                data, first = data.removeprefix(codecs.BOM_UTF8), False

            data = rest + data
            lines = ends_of_lines(data)
            ends = ends_of(data, lines)
            if ends is None or (not len(ends) and len(data) > LONGEST_BLOCK):
                yield data, lines, None
                return

            cut = int(ends[-1]) if len(ends) else 0
            if cut:
                yield data[:cut], lines[: np.searchsorted(lines, cut, side="right")], ends

            rest = data[cut:]

        if rest:
            rest = rest if rest.endswith(b"\n") else rest + b"\n"
            lines = ends_of_lines(rest)
            ends = ends_of(rest, lines)
            yield rest, lines, ends if ends is not None and len(ends) and ends[-1] == len(rest) else None


def ends_of_lines(block: bytes) -> Ends:
    """Where each line of a block ends: the position behind its break."""
    return np.concatenate([begin + 1 + np.flatnonzero(part == _NEWLINE) for begin, part in in_parts(block)])


def in_parts(block: bytes) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """The bytes of a block, at least one, a few at a time, and where each part begins.

    What is computed of a whole block would be memory that the system has to give, and takes back, each time.
    """
    data = np.frombuffer(block, np.uint8)
    for begin in range(0, len(data), CACHE_BYTES):
        yield begin, data[begin : begin + CACHE_BYTES]


class Layout(NamedTuple):
    """How a format lies in bytes. ``ends_of(block, ends of its lines)`` says where each whole row of a block ends,
    None if it cannot tell.

    ``parse(block, ends)`` gives the columns of all rows of a block, None where one is not as the others;
    ``singly(block, line)`` reads rows as the row reader does, from the line with that number on.
    """

    ends_of: Callable[[bytes, Ends], Ends | None]
    parse: Callable[[bytes, Ends], dict[str, pa.StringArray] | None]
    singly: Callable[[bytes, int], Iterator[Row | BadRow]]
    # Rows at the beginning that name the columns.
    n_header: int = 0


def in_columns(source: Source, layout: Layout, rows: Callable[[], Iterator[Row | BadRow]]) -> Iterator[Item]:
    """The rows of a source, most of them as columns. ``rows`` reads the same ones singly.

    It is asked for the rest where a block is no UTF-8, a row too long, or the file damaged: it says what is wrong, or
    finds the encoding.
    """
    spent, n, line, n_header = source.budget.spent, 0, 1, layout.n_header
    told = source.encoding
    source.encoding = told or "utf-8"
    blocks = _blocks(source, layout.ends_of)
    while True:
        try:
            block, lines, ends = next(blocks, (b"", np.empty(0, np.int64), None))
        except InputError:
            block, lines, ends = b"damaged", np.empty(0, np.int64), None

        if not block:
            return

        # As they are counted singly.
        cost = ROW_BYTES * len(lines) if source.packed else 0
        if ends is None or not is_utf8(block) or source.budget.spent + cost > source.budget.limit:
            blocks.close()
            source.budget.spent, source.encoding = spent, told
            yield from itertools.islice(rows(), n, None)
            return

        source.budget.spend(cost)
        begins = np.concatenate(([0], ends[:-1]))
        numbers = line + np.searchsorted(lines, begins, side="right")
        line += len(lines)

        if n_header:
            cut, n_header = int(ends[n_header - 1]), 0
            block, ends, numbers = block[cut:], ends[layout.n_header :] - cut, numbers[layout.n_header :]

        if not len(ends):
            continue

        columns = layout.parse(block, ends)
        if columns is None:
            for row in layout.singly(block, int(numbers[0])):
                n += 1
                yield row
        else:
            n += len(numbers)
            yield _chunk(columns, block, ends, numbers, layout)


def _chunk(
    columns: dict[str, pa.StringArray], block: bytes, ends: NDArray[np.int64], lines: NDArray[np.int64], layout: Layout
) -> Chunk:
    def row(i: int) -> Row:
        begin = int(ends[i - 1]) if i else 0
        found = next(layout.singly(block[begin : int(ends[i])], int(lines[i])))
        assert isinstance(found, Row), "what Arrow parsed is a row"
        return found

    return Chunk(lines, columns, row)


def resolved(
    source: Source, options: ReadOptions, rows: Callable[[], Iterator[Row | BadRow]]
) -> tuple[list[Row], FieldMap | None]:
    """(the rows from which fields are taken, the fields). Nothing is counted as read.

    None for the fields where rows are wanted singly: they hold queries or are cut, or the text is not UTF-8.
    """
    spent = source.budget.spent
    head = list(itertools.islice((row for row in rows() if isinstance(row, Row)), ROWS_FOR_FIELDS))
    source.budget.spent = spent
    utf8 = codecs.lookup(source.encoding or "utf-8").name in ("utf-8", "utf-8-sig")
    if not head or not utf8 or options.passages:
        return head, None
    names = list(dict.fromkeys(name for row in head for name in row.values))
    fields = resolve_fields(names, options, source.name)
    return head, None if fields.queries else fields


def texts_of(column: pa.Array | pa.ChunkedArray) -> pa.StringArray | None:
    """A column of texts or whole numbers as texts, beginning at its buffers' beginning; None for other types."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    type = column.type
    if pa.types.is_null(type):
        return pa.nulls(len(column), pa.string())
    if not (pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_integer(type)):
        return None
    return column.cast(pa.string())


def buffers(texts: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """(offsets, one more than there are texts; bytes) of an array of texts. The first offset need not be 0."""
    _, offsets, data = texts.buffers()
    n, at = len(texts), texts.offset
    if not n:
        return np.zeros(1, np.int32), np.empty(0, np.uint8)
    return np.frombuffer(offsets, np.int32)[at : at + n + 1], np.frombuffer(data or b"", np.uint8)


def word_counts(texts: pa.StringArray) -> NDArray[np.int64]:
    """``count_words`` of each text; 0 for null. Shape (n,)."""
    offsets, data = buffers(texts)
    counts = np.zeros(len(texts), np.int64)
    steps = np.arange(int(offsets[0]), int(offsets[-1]), CACHE_BYTES)
    begins = dict.fromkeys((np.searchsorted(offsets[:-1], steps, side="right") - 1).tolist())  # of each part, its first
    for begin, end in itertools.pairwise((*begins, len(texts))):
        part = offsets[begin : end + 1]
        counts[begin:end] = _word_counts(part - part[0], data[part[0] : part[-1]])
    singly = np.flatnonzero(counts < 0)
    for i in singly.tolist():
        counts[i] = count_words(texts[i].as_py())
    return counts


def _word_counts(offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The words of some texts; -1 for those with letters of three bytes, whose words may stand without spaces."""
    if not len(data):
        return np.zeros(len(offsets) - 1, np.int64)

    space = data == 32
    if data.min() < 32:
        space |= data - 9 < 5  # of unsigned bytes: 9 to 13
        space |= data - 28 < 4

    starts = np.zeros((len(data) // 64 + 1) * 64, bool)
    starts[1 : len(data)] = space[:-1] & ~space[1:]
    begins = offsets[:-1][np.diff(offsets) > 0]
    starts[begins] = ~space[begins]
    counts = np.diff(_counted_before(starts, offsets))

    if data.max() >= 0x80:
        beyond = np.flatnonzero(data >= 0x80)
        odd = beyond[_maybe_spaces(data, beyond)]
        counts[np.diff(np.searchsorted(odd, offsets)) > 0] = -1

    return counts


def _counted_before(flags: NDArray[np.bool_], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many of the flags before each place are set; 64 in a word of bits, which is a fifth of the time of a sum."""
    bits = np.packbits(flags, bitorder="little").view(np.uint64)
    before = np.concatenate(([0], np.cumsum(np.bitwise_count(bits), dtype=np.int64)))
    word, within = np.divmod(places.astype(np.uint64), np.uint64(64))
    below = (np.uint64(1) << within) - np.uint64(1)
    counts: NDArray[np.int64] = before[word] + np.bitwise_count(bits[word] & below)
    return counts


def _maybe_spaces(data: NDArray[np.uint8], beyond: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which bytes ``beyond`` ASCII begin white space, or a letter whose words may stand without spaces.

    White space is U+0085, U+00A0, or among U+2000 to 206F, where dashes and quotation marks are left aside. Letters of
    two bytes are Latin, Greek, Cyrillic, Hebrew, Arabic.
    """
    first = data[beyond]
    second, third = (data[np.minimum(beyond + n, len(data) - 1)] for n in (1, 2))
    no_break = (first == 0xC2) & ((second == 0x85) | (second == 0xA0))
    general = (first == 0xE2) & ((second == 0x80) & ((third < 0x90) | (third > 0xA7)) | (second == 0x81))
    return no_break | general | (first >= 0xE0) & (first != 0xE2)


def odd_rows(
    ids: pa.StringArray | None, titles: pa.StringArray, texts: pa.StringArray, words: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The rows that have to be looked at one by one.

    The others have an id of printable ASCII (or are numbered), a text with ``words``, maybe a title, and no NUL.
    """
    import pyarrow.compute as pc

    odd = words == 0
    if ids is not None:
        offsets, data = buffers(ids)
        data = data[offsets[0] : offsets[-1]]
        if ids.null_count or not (data - 0x21 <= 0x7E - 0x21).all() or not np.diff(offsets).all():
            odd |= ~_flags(pc.match_substring_regex(ids, r"^[ -~]*[!-~][ -~]*$"))
        odd |= np.diff(offsets) > MAX_ID_CHARACTERS
    for column in (titles, texts):
        offsets, data = buffers(column)
        if data[offsets[0] : offsets[-1]].min(initial=1) == 0:
            odd |= _flags(pc.match_substring(column, "\0"))
    odd |= np.diff(offsets) > MAX_DOCUMENT_CHARACTERS  # of bytes: no text with fewer is too long
    return np.flatnonzero(odd)


def _flags(values: Any) -> NDArray[np.bool_]:
    """Arrow's truth values, null as False."""
    return np.fromiter(map(bool, values.to_pylist()), bool, len(values))
