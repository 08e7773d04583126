"""Rows that cannot become documents: each is rejected with its line and a reason, the others are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.checks import Rejected
from cdp.corpus.options import KEPT_REJECTIONS, MAX_DOCUMENT_CHARACTERS, MAX_LINE_CHARACTERS
from tests.corpus.files import jsonl, reasons, triples

GOOD = {"_id": "good", "text": "fine"}


@pytest.mark.parametrize(
    ("row", "kind", "says"),
    [
        ('{"_id": "x", "text": "cut', "broken JSON", "Unterminated string starting at column 22"),
        ("[" * 100_000, "broken JSON", "nested too deeply"),
        ('{"_id": ' + "9" * 5000 + ', "text": "t"}', "broken JSON", "Exceeds the limit"),
        ('["a", "list"]', "not an object", "the line is a list"),
        ('"text"', "not an object", "the line is text"),
        ("null", "not an object", "the line is null"),
        ({"_id": "x", "text": None}, "empty text", "missing or null"),
        ({"_id": "x"}, "empty text", "missing or null"),
        ({"_id": "x", "text": " \n\t\u3000"}, "empty text", "is empty"),
        ({"_id": "x", "text": {"a": {"b": "nested"}}}, "text is not text", "is an object, not text"),
        ({"_id": "x", "text": ["a", "b"]}, "text is not text", "is a list"),
        ({"_id": "x", "text": 3.5}, "text is not text", "is a number"),
        ({"_id": "x", "text": "t", "title": {"a": 1}}, "title is not text", "is an object"),
        ({"_id": None, "text": "t"}, "no id", "'_id' is empty"),
        ({"_id": "  ", "text": "t"}, "no id", "'_id' is empty"),
        ({"text": "t"}, "no id", "'_id' is empty"),
        ({"_id": True, "text": "t"}, "unusable id", "true or false"),
        ({"_id": 1.5, "text": "t"}, "unusable id", "a number"),
        ({"_id": ["x"], "text": "t"}, "unusable id", "a list"),
        ({"_id": "a\tb", "text": "t"}, "unusable id", "tab"),
        ({"_id": "a\udc80", "text": "t"}, "unusable id", "control character"),
        ({"_id": "x" * 600, "text": "t"}, "unusable id", "longer than 512"),
        ({"_id": "good", "text": "other"}, "duplicate id", "another document has this id on line 1"),
        ({"_id": "good", "text": "fine"}, "duplicate id", "the same document stands on line 1"),
    ],
)
def test_a_bad_row_is_rejected_alone(tmp_path: Path, row: object, kind: str, says: str) -> None:
    path = jsonl(tmp_path / "d.jsonl", [GOOD, "", row, {"_id": "last", "text": "also fine"}])  # type: ignore[list-item]
    with read_documents(path) as result:
        assert [id for id, _, _ in triples(result)] == ["good", "last"]
        assert reasons(result) == [(3, kind)]
        assert says in result.rejected[0].reason
        assert result.rejected[0].file == "d.jsonl"
        assert len(result.rejected[0].excerpt) <= 120
        assert result.rejected_counts == {kind: 1}


def test_integers_are_ids_and_numbers_are_titles(tmp_path: Path) -> None:
    rows = [{"_id": 12345678901234567890, "text": "t", "title": 1917}, {"_id": -1, "text": "t", "title": None}]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert triples(result) == [("12345678901234567890", "1917", "t"), ("-1", "", "t")]


def test_characters_that_cannot_be_stored_are_replaced_and_counted(tmp_path: Path) -> None:
    rows = [
        {"_id": "a", "text": "nul \0 and half \ud83d pair", "title": "x\udc00"},
        {"_id": "b", "text": "whole pair \U0001f600"},
    ]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert triples(result) == [
            ("a", "x\ufffd", "nul \ufffd and half \ufffd pair"),
            ("b", "", "whole pair \U0001f600"),
        ]
        assert any(note.startswith("1 document held") for note in result.notes)


def test_many_rejections_are_counted_and_the_first_thousand_kept(tmp_path: Path) -> None:
    rows = [GOOD, *({"_id": "good", "text": f"{i}"} for i in range(KEPT_REJECTIONS + 500))]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert result.n_rejected == KEPT_REJECTIONS + 500
        assert [r.line for r in result.rejected] == list(range(2, KEPT_REJECTIONS + 2))


@pytest.mark.slow
def test_duplicates_are_found_across_batches_and_files(tmp_path: Path) -> None:
    jsonl(tmp_path / "x" / "1.jsonl", ({"_id": i, "text": f"text {i}"} for i in range(9_000)))
    jsonl(tmp_path / "x" / "2.jsonl", [{"_id": "8999", "text": "again"}, {"_id": 0, "text": "text 0"}, GOOD, GOOD])
    with read_documents(tmp_path / "x") as result:
        assert result.n_documents == 9_001
        assert [(r.file, r.line, r.reason) for r in result.rejected] == [
            ("2.jsonl", 1, "another document has this id in 1.jsonl on line 9000"),
            ("2.jsonl", 2, "the same document stands in 1.jsonl on line 1"),
            ("2.jsonl", 4, "the same document stands on line 3"),
        ]


def test_rejections_stand_in_the_order_of_lines(tmp_path: Path) -> None:
    rows = [GOOD, {"_id": "x", "text": ""}, GOOD, "{", {"_id": "y", "text": ""}]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert [r.line for r in result.rejected] == [2, 3, 4, 5]


def test_if_no_row_survives_the_first_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_documents(jsonl(tmp_path / "d.jsonl", ["", "not JSON", "neither"]))
    assert "2 rows were rejected (2 broken JSON)" in str(caught.value)
    assert "the first, d.jsonl, line 2: Expecting value at column 1. Check" in str(caught.value)


def test_more_bad_rows_than_are_looked_at_for_fields_may_come_first(tmp_path: Path) -> None:
    with read_documents(jsonl(tmp_path / "d.jsonl", ["{"] * 250 + [{"text": "at last"}])) as result:
        assert triples(result) == [("251", "", "at last")]
        assert result.rejected_counts == {"broken JSON": 250}


@pytest.mark.slow
def test_a_line_of_forty_megabytes_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"_id": "a", "text": "fine"}\n{"_id": "b", "text": "')
        for _ in range(40):
            file.write(b"x" * 10**6)
        file.write(b'"}\n{"_id": "c", "text": "fine too"}\n')
    with read_documents(path) as result:
        assert [id for id, _, _ in triples(result)] == ["a", "c"]
        assert reasons(result) == [(2, "too long")]
        assert f"{MAX_LINE_CHARACTERS:,}" in result.rejected[0].reason


@pytest.mark.slow
def test_a_document_too_long_to_use_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(f"{'x' * 100_000}\n" * (MAX_DOCUMENT_CHARACTERS // 100_000), encoding="utf-8")
    with pytest.raises(InputError, match="split the document"):
        read_documents(tmp_path / "book.txt", ReadOptions(passages=0))
    rows = [GOOD, {"_id": "b", "text": "x" * (MAX_DOCUMENT_CHARACTERS + 1)}]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert reasons(result) == [(2, "too long")]


def test_a_place_is_a_page_where_the_file_has_pages() -> None:
    places = [Rejected(file, line, "empty", "").where for file, line in (("a.csv", 3), ("b.PDF", 3), ("c.zip", None))]
    assert places == ["a.csv, line 3", "b.PDF, page 3", "c.zip"]
