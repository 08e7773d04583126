"""``documents.parquet`` of a workspace that came from somebody else is no larger in memory than our own files are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import WorkspaceError
from cdp.corpus import documents
from cdp.corpus.documents import SCHEMA, DocumentFile, DocumentWriter

ROWS = 1000
LONG = "x" * 10_000


def written(path: Path, title: str, text: str, dictionary: list[str]) -> Path:
    columns = [[str(number) for number in range(ROWS)], [title] * ROWS, [text] * ROWS]
    table = pa.Table.from_arrays([pa.array(values) for values in columns], schema=SCHEMA)
    pq.write_table(table, path, compression="zstd", use_dictionary=dictionary)
    return path


@pytest.mark.parametrize("column", ["id", "text"])
def test_texts_that_the_file_holds_once_and_memory_a_thousand_times_are_refused(tmp_path: Path, column: str) -> None:
    path = written(tmp_path / "documents.parquet", "t", LONG, [column])
    assert path.stat().st_size < 100_000
    with pytest.raises(WorkspaceError, match=f"{column} was not written by this program"):
        DocumentFile(path)


def test_titles_count_as_they_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "documents.parquet", LONG, "t", ["title"])
    monkeypatch.setattr(documents, "MAX_BYTES", len(LONG) * ROWS - 1)
    file = DocumentFile(path)
    for read in (lambda: list(file), lambda: file.table(), lambda: file.get(["5"])):
        with pytest.raises(WorkspaceError, match="its titles have more"):
            read()
    monkeypatch.setattr(documents, "MAX_BYTES", len(LONG) * ROWS)
    assert len(list(file)) == ROWS


def test_what_compression_hides_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_BYTES", len(LONG) * ROWS // 2)
    with pytest.raises(WorkspaceError, match="text was not written"):
        DocumentFile(written(tmp_path / "documents.parquet", "t", LONG, []))


def test_a_file_of_other_columns_is_one_sentence(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["1"], "body": ["a"]}), tmp_path / "documents.parquet")
    with pytest.raises(WorkspaceError, match="its columns are not id, title, text"):
        DocumentFile(tmp_path / "documents.parquet")


def test_our_own_files_are_read_with_their_titles(tmp_path: Path) -> None:
    writer = DocumentWriter(tmp_path / "documents.parquet")
    writer.write(["1", "2", "3"], ["Sea", "", "Sea"], ["a", "b", "c"])
    writer.close()
    file = DocumentFile(tmp_path / "documents.parquet")
    assert [document.title for document in file] == ["Sea", "", "Sea"]
    assert file.table().schema == SCHEMA
    assert file.get(["3"])["3"].title == "Sea"
