"""A JSON file that is one array of objects is read as its objects, with their lines and in bounded memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.readers import BadRow, Row
from cdp.corpus.readers.jsonl import json_rows
from cdp.corpus.sources import Budget, Source
from tests.corpus.files import ROWS, jsonl, triples


def rows(path: Path) -> Iterator[Row | BadRow]:
    return json_rows(Source.of_file(path, path.name, Budget(2**30)), ReadOptions())


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["d.json", "d.jsonl", "d.json.gz"])
def test_an_array_gives_the_documents_that_json_lines_give(tmp_path: Path, indent: int | None, name: str) -> None:
    text = json.dumps(ROWS, indent=indent, ensure_ascii=False).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with read_documents(tmp_path / name) as array, read_documents(jsonl(tmp_path / "lines.jsonl", ROWS)) as lines:
        assert triples(array) == triples(lines)
        assert array.content_hash == lines.content_hash


def test_lines_and_values_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '\n [\n{"a": 1},\n\n  12 , "x\\ny",{"b":\n[2]}\n]\n ')
    assert list(rows(path)) == [
        Row(3, {"a": 1}),
        BadRow(5, "not an object", "the line is a number, not a JSON object", "12"),
        BadRow(5, "not an object", "the line is text, not a JSON object", '"x\\ny"'),
        Row(5, {"b": [2]}),
    ]


def test_an_entry_that_is_no_object_is_rejected_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"id": "a", "text": "x"},\n "stray",\n{"id": "b", "text": "y"}]')
    with read_documents(path) as result:
        assert [document.id for document in result.documents] == ["a", "b"]
        assert [(r.line, r.kind, r.excerpt) for r in result.rejected] == [(2, "not an object", '"stray"')]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('[{"id": "a", "text": "x"},\n{"id": "b", "text": "y', 2, "Unterminated string"),
        ('[{"id": "a", "text": "x"}\n{"id": "b", "text": "y"}]', 2, "Expecting ',' delimiter"),
        ('[{"id": "a", "text": "x"}\n', 2, "Expecting ',' delimiter"),
        ('[{"id": "a", "text": "x"},\n\n]', 3, "Expecting value"),
        ('[{"id": "a", "text": "x"}]\n{"id": "b"}', 2, "more after the array's end"),
        ("[" * 100_000, 1, "nested too deeply"),
        ("[", 1, "Expecting value"),
        ('[{"id": "a", "text": "x"},\n\n{"id":\n"b" "c"}]', 4, "Expecting ',' delimiter"),
        (f'[{{"id": "a", "text": "x", "n": {"9" * 5000}}}]', 1, "Exceeds the limit"),
    ],
)
def test_an_array_that_breaks_is_refused_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        read_documents(written(tmp_path / "a.json", text))
    assert f"a.json, line {line}: " in str(refused.value)


def test_an_empty_array_holds_no_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no rows"):
        read_documents(written(tmp_path / "a.json", " [ ] "))


def test_other_encodings(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"id": "a", "text": "déjà vu"}]', "utf-16")
    with read_documents(path, ReadOptions(encoding="utf-16")) as result:
        assert [document.text for document in result.documents] == ["déjà vu"]


@pytest.mark.slow
@pytest.mark.parametrize("newline", ["", "\n"])
def test_memory_is_bounded_by_an_entry_and_not_by_the_file(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "large.json"
    entry = json.dumps({"text": "salt " * 2000})
    with open(path, "w", encoding="utf-8") as file:
        file.write("[" + f",{newline}".join([entry] * 3000) + "]")
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in rows(path)) == 3000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000


def test_an_entry_across_many_blocks_is_whole(tmp_path: Path) -> None:
    long = "a" * 5_000_000
    path = written(tmp_path / "a.json", json.dumps([{"text": "first"}, {"text": long}, {"text": "last"}]))
    assert [len(row.values["text"]) for row in rows(path) if isinstance(row, Row)] == [5, 5_000_000, 4]
