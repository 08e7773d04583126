"""Rows that are parsed together give what they give singly: documents, hash, rejected rows, notes, in every format."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus import collector as collecting
from cdp.corpus import columns as together
from cdp.corpus.columns import word_counts
from cdp.corpus.documents import count_words
from cdp.corpus.readers import READERS, Chunk, RowFormat
from tests.support import REPOSITORY

pytestmark = pytest.mark.slow

FORMATS = ("jsonl", "csv", "tsv", "parquet")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks, parts and row groups of a few rows, so that each of their edges is met."""
    sizes = {"BLOCK_BYTES": 1_500, "CACHE_BYTES": 300, "LONGEST_BLOCK": 12_000}
    for name, value in sizes.items():
        monkeypatch.setattr(together, name, value)
    monkeypatch.setattr(collecting, "ROW_GROUP_ROWS", 19)
    monkeypatch.setattr(collecting, "ROW_GROUP_CHARACTERS", 4_000)


def outcome(path: Path, **options: Any) -> Any:
    """Everything that an import says, with its documents and the sizes of their row groups; or its error."""
    try:
        with read_documents(path, ReadOptions.from_dict(options)) as result:
            left_out = ("documents", "folder")
            said = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in left_out}
            groups = pq.read_metadata(result.documents.path)
            sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
            return said, list(said["rejected_counts"]), list(result.documents), sizes
    except InputError as error:
        return str(error), error.hint


def both(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    """The outcome of an import in columns, and of one row by row."""
    columns = outcome(path, **options)
    with monkeypatch.context() as patched:
        for name in FORMATS:
            reader = READERS[name]
            assert isinstance(reader, RowFormat)
            patched.setitem(READERS._items, name, dataclasses.replace(reader, stream=None))
        return columns, outcome(path, **options)


WORDS = ["alpha", "naïve", "Straße", "мир", "語", "“quoted”", "tab\there", "two\nlines", "\u2028", "\x85", "é\xa0z",
         '"q"', "x" * 70, "5\" wide", "\u3000", "{", "]", "\\", "😀", "null", "-0", "<i>a</i>"]  # fmt: skip
ODD_VALUES = [None, 5, 1.5, 3.0, True, ["a"], {"a": 1}, 10**30, "  ", "", "a\0b", "\ud800", "\ud83d\ude00", "z" * 600,
              "a\tb", "ключ", "i\u2028d"]  # fmt: skip


def ODD_LINES(line: str) -> list[str]:  # noqa: N802 (a table that needs a line)
    return [
        line[:-1], f"{line} ", f" {line}", f"{line}x", "", "   ", "[1]", "5", "null", line.replace('"', "'", 1),
        f"{line}\r", f'{line[:-1]},"text":"again"}}', f'{line[:-1]},"n":NaN}}', f'{line[:-1]},"n":01}}',
        f'{line[:-1]},"d":{"[" * 150}{"]" * 150}}}', f'{line[:-1]},"d":{"[" * 2000}{"]" * 2000}}}',
        f'{line[:-1]},"n":{"9" * 4400}}}', '{"a":1}{"b":2}', "\x0c", f"\ufeff{line}", "{", f'{line[:-1]},"n":1e400}}',
    ]  # fmt: skip


def words(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.choice([1, 2, 5, 20])))


def json_lines(draw: random.Random, faults: float) -> bytes:
    lines = []
    for n in range(draw.choice([3, 60, 250])):
        row: dict[str, Any] = {
            "_id": f"d{draw.randrange(10**6)}",
            "title": words(draw),
            "text": words(draw),
            "more": [n],
        }
        if draw.random() < faults:
            row[draw.choice(["_id", "title", "text"])] = draw.choice(ODD_VALUES)
        line = json.dumps(row, ensure_ascii=draw.random() < 0.5)
        lines.append(draw.choice(ODD_LINES(line)) if draw.random() < faults else line)
    return draw.choice(["\n", "\r\n"]).join(lines).encode("utf-8", "replace") + draw.choice([b"", b"\n", b"\n\n"])


def cells(draw: random.Random, faults: float, delimiter: str) -> bytes:
    file = io.StringIO(newline="")
    names = draw.choice([["id", "title", "text"], ["text"], ["id", "text", "more"]])
    ending = draw.choice(["\n", "\r\n"])
    writer = csv.writer(file, delimiter=delimiter, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
                        lineterminator=ending)  # fmt: skip
    writer.writerow(names)
    for _ in range(draw.choice([3, 60, 250])):
        row = [f"d{draw.randrange(10**6)}" if name == "id" else words(draw) for name in names]
        if draw.random() < faults:
            row = draw.choice([row[:-1], [*row, "more"], ["" for _ in row], [*row[:-1], " \t"]])
        writer.writerow(row)
        if draw.random() < faults / 4:
            odd = ["\n", "  \n", 'a"b,c\n', '"x"y,z\n', ' "a",b\n', '""\n', '"a""b",c\n', "a\rb\n", '"open\n', "\r\r\n"]
            file.write(draw.choice(odd))
    return file.getvalue().encode()


def cases(draw: random.Random) -> tuple[str, bytes]:
    kind, faults = draw.choice(["jsonl", "csv", "tsv"]), draw.choice([0.0, 0.02, 0.3])
    data = json_lines(draw, faults) if kind == "jsonl" else cells(draw, faults, "," if kind == "csv" else "\t")
    if draw.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data = data[:at] + draw.choice([b"\xff", b"\xed\xa0\x80", b"\xc3"]) + data[at:]
    return kind, data


@pytest.mark.parametrize("seed", range(60))
def test_nasty_rows_give_the_same_in_columns_and_singly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    kind, data = cases(draw)
    packed = draw.random() < 0.2
    path = tmp_path / (f"d.{kind}.gz" if packed else f"d.{kind}")
    path.write_bytes(gzip.compress(data) if packed else data)
    options = draw.choice([{}, {}, {"id_field": "-"}, {"header": False}, {"passages": 20}])
    columns, singly = both(path, monkeypatch, **options)
    assert columns == singly


def test_parquet_gives_the_same_in_columns_and_singly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    texts = [draw.choice([words(draw), None, "", " ", "a\0b"]) for _ in range(200)]
    ids = [draw.choice([f"d{i}", None, "d1", "ключ"]) for i in range(200)]
    for number, column in enumerate([pa.array(ids), pa.array(range(200)), pa.array([i / 2 for i in range(200)])]):
        pq.write_table(pa.table({"id": column, "title": texts, "text": texts}), tmp_path / f"{number}.parquet")
        columns, singly = both(tmp_path / f"{number}.parquet", monkeypatch)
        assert columns == singly


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Counts of rows that came as columns and singly."""
    counts = {"columns": 0, "singly": 0}
    for name in FORMATS:
        reader = READERS[name]
        assert isinstance(reader, RowFormat)
        assert reader.stream is not None

        def stream(*given: Any, of: Any = reader.stream) -> Iterator[Any]:
            for item in of(*given):
                counts["columns" if isinstance(item, Chunk) else "singly"] += (
                    len(item.lines) if isinstance(item, Chunk) else 1
                )
                yield item

        monkeypatch.setitem(READERS._items, name, dataclasses.replace(reader, stream=stream))
    return counts


@pytest.mark.parametrize("name", FORMATS)
def test_plain_rows_come_as_columns_and_one_bad_line_costs_its_neighbours_alone(
    tmp_path: Path, seen: dict[str, int], name: str
) -> None:
    rows = [{"_id": f"d{i}", "title": "A title", "text": f"Text {i} of a “plain” row."} for i in range(400)]
    path = tmp_path / f"d.{name}"
    if name == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name == "jsonl":
        lines = [json.dumps(row) for row in rows]
        path.write_text("\n".join([*lines[:200], "{broken", *lines[200:]]), encoding="utf-8")
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if name == "csv" else "\t")
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows[:200])
            writer.writerow(["one cell"])
            writer.writerows(row.values() for row in rows[200:])
    with read_documents(path) as result:
        assert result.n_documents == 400
        assert result.n_rejected == (name != "parquet")
    assert seen["columns"] > 350
    assert seen["columns"] + seen["singly"] == 400 + (name != "parquet")


def test_words_are_counted_as_one_by_one() -> None:
    draw = random.Random(0)
    pieces = [*" \t\n\x1c\x0bab", "é", "\x85", "\xa0", "\u2003", "\u2028", "\u202f", "\u205f", "\u3000", "\u1680", "語",
              "ก", "–", "“", "я", "😀", "ሀ", "\u200b", "\0", "\x1b", "한", ""]  # fmt: skip
    for _ in range(500):
        texts = ["".join(draw.choices(pieces, k=draw.choice([0, 1, 3, 40]))) for _ in range(draw.randrange(1, 30))]
        first = draw.randrange(len(texts))
        counts = word_counts(pa.array(texts, pa.string())[first:]).tolist()
        assert counts == [count_words(text) for text in texts[first:]]


@pytest.mark.parametrize("ending", FORMATS)
def test_reading_a_table_does_not_import_pandas(ending: str, tmp_path: Path) -> None:
    """Arrow would for a list, a number or an array: a quarter of a second of each command. Odd rows are among these."""
    path = tmp_path / f"some.{ending}"
    rows = [{"_id": id, "title": None, "text": "some words"} for id in ("a", "b", "a", "ключ")]
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if ending == "csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)

    code = (
        "import sys; from pathlib import Path; from cdp.corpus import read_documents\n"
        "with read_documents(Path(sys.argv[1])) as result: print(result.n_documents, 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    assert done.stdout.split() == ["3", "False"]
