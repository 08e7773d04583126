"""A JSON file that is one array of objects is read as its objects."""

from __future__ import annotations

import gzip
import itertools
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.readers import BadRow, Row
from cdp.corpus.readers import jsonl as jsonl_format
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


def test_entries_are_numbered(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '\n [\n{"a": 1},\n\n  12 , "x\\ny",{"b":\n[2]}\n]\n ')
    assert list(rows(path)) == [
        Row(1, {"a": 1}),
        BadRow(2, "not an object", "the line is a number, not a JSON object", "12"),
        BadRow(3, "not an object", "the line is text, not a JSON object", '"x\\ny"'),
        Row(4, {"b": [2]}),
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
        ('[{"id": "a", "text": "x"}]\n{"id": "b"}', 2, "Extra data"),
        ("[" * 100_000, None, "nested too deeply"),
        (f'[{{"id": "a", "text": "x", "n": {"9" * 5000}}}]', None, "Exceeds the limit"),
    ],
)
def test_an_array_that_breaks_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as refused:
        read_documents(written(tmp_path / "a.json", text))
    assert refused.value.line == line


@pytest.mark.parametrize("block", [7, 8, 64])
@pytest.mark.parametrize(
    "text", [json.dumps(ROWS), ' [1,-2.5e3 , true,null,\n"a\\u00e9]",[[],{}], 12345 ] ', "[]", "[{}]"]
)
def test_entries_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, block: int) -> None:
    monkeypatch.setattr(jsonl_format, "BLOCK", block)
    found = list(rows(written(tmp_path / "a.json", text)))
    values = [row.values if isinstance(row, Row) else row.excerpt for row in found]
    assert values == [value if isinstance(value, dict) else json.dumps(value) for value in json.loads(text)]


def test_an_entry_too_long_for_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_format, "MAX_LINE_CHARACTERS", 1000)
    monkeypatch.setattr(jsonl_format, "BLOCK", 100)
    long = {"id": "b", "text": "y" * 5000}
    with pytest.raises(InputError, match="an entry is longer than 1,000 characters"):
        read_documents(written(tmp_path / "a.json", json.dumps([{"id": "a", "text": "x"}, long])))


def test_a_broken_entry_is_named_long_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_format, "MAX_LINE_CHARACTERS", 1000)
    monkeypatch.setattr(jsonl_format, "BLOCK", 100)
    text = '[{"id": "a", "text": "x"},\n{"id": "b" "text"},' + ',\n{"id": "c"}' * 500 + "]"
    with pytest.raises(InputError, match="Expecting ',' delimiter") as refused:
        read_documents(written(tmp_path / "a.json", text))
    assert refused.value.line == 2


@pytest.mark.slow
def test_an_array_takes_no_more_memory_than_its_entries(tmp_path: Path) -> None:
    """Held as a whole, the ten million entries of this array of 30 MB took 0.9 GB."""
    path = tmp_path / "a.json"
    path.write_text("[" + "{}," * 10_000_000 + "{}]", encoding="utf-32")
    tracemalloc.start()
    try:
        n = sum(1 for _ in itertools.islice(rows(path), 200_000))
        assert n == 200_000
        assert tracemalloc.get_traced_memory()[1] < 40e6
    finally:
        tracemalloc.stop()


def test_an_empty_array_holds_no_rows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is empty, or holds no rows"):
        read_documents(written(tmp_path / "a.json", " [ ] "))


def test_other_encodings(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", '[{"id": "a", "text": "déjà vu"}]', "utf-16")
    with read_documents(path, ReadOptions(encoding="utf-16")) as result:
        assert [document.text for document in result.documents] == ["déjà vu"]


@pytest.mark.parametrize(
    "value", [{"data": ROWS, "total": 3}, {"d1": {"text": "one"}}, {"columns": ["id", "text"], "data": [["a", "one"]]}]
)
def test_documents_within_an_object_are_refused_with_the_way_to_read_them(tmp_path: Path, value: object) -> None:
    with pytest.raises(InputError, match="one document per line: jq"):
        read_documents(written(tmp_path / "d.json", json.dumps(value)))
