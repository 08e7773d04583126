"""Damage to small real files: bytes flipped, put in, taken out, doubled, cut off; and what readers fear most."""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

SNIPPETS = (
    b"\x00", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"\xc3", b"\x1f\x8b\x08",
    b"PK\x03\x04", b"\\ud800", b"\\udc00\\ud800", b"\\u0000", b'"', b'""', b"'", b"\\", b"\r", b"\n", b"\r\n",
    b"\t", b",", b";", b"|",
    b"\n\n\n", b"\xe2\x80\xa8", b"\x85", b"{", b"}", b"[", b"]", b"{}", b"[]", b"null", b"true", b"NaN", b"-Infinity",
    b"1e999", b"-0", b"1.5", b"9" * 400, b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"\xc2\xb2", b"\xd9\xa3", b"--3",
    b'"_id":', b'"text":', b'"queries": [', b"_id", b"text", b"query", b"document_id", b",text", b"\ttext", b"+", b"-",
    "\u202e\u200b\ufeff".encode(), "😀".encode(), b" " * 300, b"---\n", b"# ", b"```\n", b"====\n",
)  # fmt: skip

ODD_VALUES: tuple[Any, ...] = (
    "\ud800", "a \udc00 b", "\x00", "", " \n", "\u202e", None, True, 0, -1, 1.5, 10**30, float("nan"), float("inf"), [],
    {}, [None], ["\ud800", "x"], [["d1"]], [{"text": "\ud800"}], {"text": "x"}, "x" * 100_000, "d1", ["d1", 5],
    functools.reduce(lambda inner, _: [inner], range(900), 0),
    functools.reduce(lambda inner, _: {"a": inner}, range(900), 0),
)  # fmt: skip


def odd_lines(rows: Sequence[Mapping[str, Any]], rng: random.Random) -> bytes:
    """JSON Lines in which a value in ten is not what it should be, and a name in fifty neither."""
    lines = []
    for row in rows:
        odd = {
            rng.choice(("\ud800", "", "id", "x" * 500)) if rng.random() < 0.02 else name: rng.choice(ODD_VALUES)
            if rng.random() < 0.1
            else value
            for name, value in row.items()
        }
        lines.append(json.dumps(odd, ensure_ascii=True))
    return "".join(f"{line}\n" for line in lines).encode()


NAMES = (
    "", "/", ".", "..", "../x.jsonl", "a\\b.txt", "C:x.txt", "n" * 300 + ".txt", "ü.txt", "a\x00b.txt", "a\nb.txt",
    "sub/", "corpus.jsonl", "x.jsonl.gz", "x.parquet", "x.csv", "inner.zip", ".hidden", "qrels/test.tsv",
    "queries.jsonl", "x.md", "x.tsv",
)  # fmt: skip


def damaged(data: bytes, rng: random.Random, others: Sequence[bytes] = ()) -> bytes:
    """``data`` after one to eight changes; sometimes none, so that whole files are among them too."""
    work = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 5, 8))):
        _change(work, rng, others)
    return bytes(work)


def _change(work: bytearray, rng: random.Random, others: Sequence[bytes]) -> None:
    size = len(work)
    at, end = sorted((rng.randrange(size + 1), rng.randrange(size + 1)))
    end = min(end, at + rng.choice((1, 4, 64, 4096)))
    kind = rng.randrange(8)
    if kind == 0 and size:
        at = min(at, size - 1)
        work[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and size:
        work[min(at, size - 1)] = rng.randrange(256)
    elif kind == 2:
        work[at:at] = rng.randbytes(rng.choice((1, 2, 8, 100)))
    elif kind == 3:
        work[at:at] = rng.choice(SNIPPETS) * rng.choice((1, 1, 1, 2, 30))
    elif kind == 4:
        del work[at:end]
    elif kind == 5:
        work[at:at] = work[at:end] * rng.choice((1, 1, 2, 50))
    elif kind == 6:
        del work[at:]
    elif others:
        other = rng.choice(others)
        start = rng.randrange(len(other) + 1)
        work[at:end] = other[start : start + rng.choice((4, 100, 5000))]


def gzipped(data: bytes, rng: random.Random) -> bytes:
    """Damaged before or after it is packed, or both."""
    inner = damaged(data, rng) if rng.random() < 0.7 else data
    packed = gzip.compress(inner, 1, mtime=0)
    return damaged(packed, rng) if rng.random() < 0.4 else packed


def zipped(members: Mapping[str, bytes], rng: random.Random) -> bytes:
    """An archive of damaged members, some under names that no archive should hold, damaged itself half of the time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
            known = archive.NameToInfo
            given = rng.choice(NAMES) if rng.random() < 0.1 else name
            try:
                info = zipfile.ZipInfo(given or "x")
                info.filename = given
            except ValueError:
                info = zipfile.ZipInfo(name)
            if info.filename in known:
                continue
            info.compress_type = method
            archive.writestr(info, damaged(data, rng) if rng.random() < 0.5 else data)
    packed = buffer.getvalue()
    return damaged(packed, rng) if rng.random() < 0.5 else packed
