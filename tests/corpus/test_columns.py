"""Rows read as columns are those that are read one by one: documents, order, rejections, notes, counts, hash."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.corpus import read_documents
from cdp.corpus.collector import Collector
from cdp.corpus.readers import jsonl

FINE = [{"_id": f"d{i}", "title": f"t{i}", "text": f"A text, the {i}th."} for i in range(300)]

# Before the first block and in it: the first hundred rows are always read one by one.
PLACES = (1, 150, 163, 290)

ODD: dict[str, str | list[str]] = {
    "broken JSON": '{"_id": "x", "text": "a"',
    "an array": '["x"]',
    "two objects": '{"_id": "x", "text": "a"}{"_id": "y", "text": "b"}',
    "two objects, and one on two lines": ['{"_id": "x", "text": "a"}{"text": "b"}', '{"_id": "z",', '"text": "c"}'],
    "blank": "  ",
    "a number as id": '{"_id": 7, "text": "a"}',
    "a number too long for Python": '{"_id": "x", "text": "a", "n": ' + "7" * 5000 + "}",
    "nested deeper than Python goes": '{"_id": "x", "text": "a", "n": ' + "[" * 5000 + "]" * 5000 + "}",
    "NaN, which Python takes": '{"_id": "x", "text": "a", "n": NaN}',
    "Inf, which Arrow takes": '{"_id": "x", "text": "a", "n": [-Inf ]}',
    "half of a surrogate pair": r'{"_id": "x", "text": "a \ud800 b"}',
    "the other half": r'{"_id": "x", "text": "a \udc00 b"}',
    "a pair": r'{"_id": "x", "text": "a \ud83d\ude00 b"}',
    "NUL": r'{"_id": "x", "text": "a \u0000 b"}',
    "a control character in a string": '{"_id": "x", "text": "a \x01 b"}',
    "a bare NUL": '{"_id": "x", "text": "a"}\0}',
    "an empty text": '{"_id": "x", "text": " \\u2003 "}',
    "a text that is none": '{"_id": "x", "text": ["a"]}',
    "a title that is a number": '{"_id": "x", "title": 1.50, "text": "a"}',
    "no title": '{"_id": "x", "title": null, "text": "a"}',
    "no id": '{"_id": " ", "text": "a"}',
    "a long id": '{"_id": "' + "x" * 513 + '", "text": "a"}',
    "an id with a tab": r'{"_id": "a\tb", "text": "a"}',
    "a date as text": '{"_id": "2020-01-01", "text": "2020-01-01 10:00:00"}',
    "an id that came before": '{"_id": "d3", "text": "other"}',
    "the same document again": '{"_id": "d3", "title": "t3", "text": "A text, the 3th."}',
    "a field twice": '{"_id": "x", "text": "a", "text": "b"}',
    "another field twice": '{"_id": "x", "n": 1, "n": "b", "text": "b"}',
    "an escaped field": r'{"_id": "x", "te\u0078t": "b"}',
    "spaces around": ' {"_id": "x", "text": "b"} ',
    "a Windows line break": '{"_id": "x", "text": "b"}\r',
    "line breaks that are none": '{"_id": "x", "text": "b\u2028c\u0085d"}',
}  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    with read_documents(path) as result:
        return {
            "documents": [(d.id, d.title, d.text) for d in result.documents],
            "hash": result.content_hash,
            "rejected": result.rejected,
            "counts": result.rejected_counts,
            "notes": result.notes,
            "lengths": (result.characters, result.words),
            "languages": result.languages,
            "fields": result.found_fields,
        }


def one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    with monkeypatch.context() as patch:
        patch.setattr(jsonl, "FEW", 10**9)
        return read(path)


def lines_with(odd: str | list[str], place: int) -> list[str]:
    lines = [json.dumps(row) for row in FINE]
    lines[place:place] = [odd] if isinstance(odd, str) else odd
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_one_odd_row_among_good_ones(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in PLACES:
        path = tmp_path / f"{place}.jsonl"
        path.write_bytes("\n".join(lines_with(ODD[name], place)).encode())
        assert read(path) == one_by_one(path, monkeypatch)


def test_good_rows_come_as_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not taken together would be right as well, and slow."""
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(lines_with(ODD["broken JSON"], 290)))
    taken: list[int] = []
    add = Collector.add_rows
    monkeypatch.setattr(
        Collector,
        "add_rows",
        lambda self, file, lines, *rest: taken.append(len(lines)) or add(self, file, lines, *rest),
    )
    assert read(path)["counts"] == {"broken JSON": 1}
    assert max(taken) == 100, "the first hundred tell the fields, of the rest the half without the broken one"
    assert sum(taken) == 300


@pytest.mark.slow
def test_rows_of_which_none_can_be_taken_together_are_soon_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    parsed = jsonl._parsed
    monkeypatch.setattr(jsonl, "_parsed", lambda data, schema: tried.append(1) or parsed(data, schema))
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(json.dumps({"_id": i, "text": f"text {i}"}) for i in range(10_000)))
    assert len(read(path)["documents"]) == 10_000
    assert len(tried) <= jsonl.FUTILE * 31, "a block of 1,024 lines is halved down to 64"


@pytest.mark.slow
def test_a_broken_off_file_keeps_the_rows_before_the_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    packed = gzip.compress(
        "\n".join(json.dumps({**row, "text": row["text"] * 900}) for row in FINE * 3).encode(), mtime=0
    )
    (folder / "a.jsonl").write_text(json.dumps({"_id": "first", "text": "of another file"}))
    (folder / "b.jsonl.gz").write_bytes(packed[: len(packed) - 200])
    assert read(folder) == one_by_one(folder, monkeypatch)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES = st.none() | TEXTS | st.integers() | st.lists(TEXTS, max_size=2) | st.booleans()
ROWS = st.fixed_dictionaries(
    {"_id": TEXTS | VALUES, "text": TEXTS | VALUES}, optional={"title": TEXTS | VALUES, "more": VALUES}
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ROWS, st.booleans()), min_size=1, max_size=8))
def test_any_rows_among_good_ones(rows: list[tuple[dict[str, Any], bool]]) -> None:
    lines = [json.dumps(row) for row in FINE[:230]]
    for i, (row, escaped) in enumerate(rows):
        lines.insert(120 + 13 * i, json.dumps(row, ensure_ascii=escaped))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        path = Path(folder) / "documents.jsonl"
        path.write_bytes("\n".join(lines).encode())
        monkeypatch.setattr(jsonl, "FEW", 4)
        together = read(path)
        assert together == one_by_one(path, monkeypatch)
