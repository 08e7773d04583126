"""Which field is what: guessed, chosen, or missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.corpus import ReadOptions, read_documents
from tests.corpus.files import jsonl, read


@pytest.mark.parametrize("id_field", ["_id", "id", "doc_id", "docid", "pid", "ID"])
@pytest.mark.parametrize("text_field", ["text", "contents", "content", "passage", "body", "document", "Text"])
def test_fields_are_guessed(tmp_path: Path, id_field: str, text_field: str) -> None:
    path = jsonl(tmp_path / "d.jsonl", [{"other": 1, text_field: "some text", id_field: "x", "title": "T"}])
    assert read(path) == [("x", "T", "some text")]


def test_chosen_fields_win_over_guesses(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "d.jsonl", [{"_id": "no", "text": "no", "title": "no", "k": 7, "h": "Head", "t": "yes"}])
    assert read(path, id_field="k", title_field="h", text_field="t") == [("7", "Head", "yes")]


def test_wrong_columns_are_named_with_the_option_to_set(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "d.jsonl", [{"key": "1", "resume": "words"}])
    with pytest.raises(InputError) as caught:
        read_documents(path)
    assert "'key', 'resume'" in str(caught.value)
    assert "Choose the column with the text" in str(caught.value)
    with pytest.raises(InputError, match=r"no field 'body'; the fields found are 'key', 'resume'\. Choose one"):
        read_documents(path, ReadOptions(text_field="body"))


def test_without_an_id_field_documents_are_numbered_and_it_is_said(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "d.jsonl", [{"text": "one"}, {"text": ""}, {"text": "three"}])
    with read_documents(path) as result:
        assert [d.id for d in result.documents] == ["1", "3"]
        assert any("numbered" in note for note in result.notes)
    jsonl(tmp_path / "more" / "a.jsonl", [{"text": "one"}])
    jsonl(tmp_path / "more" / "b.jsonl", [{"text": "one"}])
    assert [id for id, _, _ in read(tmp_path / "more")] == ["a-1", "b-1"]


def test_fields_of_json_objects_are_gathered_from_the_first_rows(tmp_path: Path) -> None:
    rows = [{"text": "no id here"}, {"text": "has one", "id": "x"}]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert [d.id for d in result.documents] == ["x"]
        assert result.rejected_counts == {"no id": 1}
