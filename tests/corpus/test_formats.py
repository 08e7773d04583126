"""Every format gives the same documents for the same content."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import uuid
import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.corpus import ReadOptions, read_documents
from cdp.corpus.documents import count_words
from tests.corpus.files import ROWS, TRIPLES, jsonl, read, reasons, triples


def table(path: Path, delimiter: str) -> Path:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:  # type: ignore[operator]
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(ROWS[0])
        writer.writerows(row.values() for row in ROWS)
    return path


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.ndjson", "docs.jsonl.gz", "DOCS.JSONL"])
def test_jsonl(tmp_path: Path, name: str) -> None:
    assert read(jsonl(tmp_path / name, ROWS)) == TRIPLES


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("d.csv", ","),
        ("d.csv", ";"),
        ("d.csv", "\t"),
        ("d.csv", "|"),
        ("d.csv.gz", ","),
        ("d.tsv", "\t"),
        ("d.tsv.gz", "\t"),
    ],
)
def test_tables(tmp_path: Path, name: str, delimiter: str) -> None:
    assert read(table(tmp_path / name, delimiter)) == TRIPLES


@pytest.mark.slow
def test_parquet_reads_only_the_columns_that_matter(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    rows = [{**row, "vector": [0.5] * 3} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(rows), path)
    with read_documents(path) as result:
        assert triples(result) == TRIPLES
        assert result.found_fields == ("vector", "_id", "title", "text")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_text_types(tmp_path: Path, kind: pa.DataType) -> None:
    columns = {"id": pa.array([7, 8]), "text": pa.array(["x one", "x two"]).cast(kind)}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    assert read(tmp_path / "d.parquet") == [("7", "", "x one"), ("8", "", "x two")]


@pytest.mark.slow
def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and then nothing of the kind")
    with pytest.raises(InputError, match=r"d\.parquet: It cannot be read as Parquet"):
        read_documents(tmp_path / "d.parquet")


def test_plain_text_is_one_document_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\r\nFirst line.\r\n\r\nSecond.\r\n")
    assert read(tmp_path / "notes.txt") == [("notes.txt", "notes", "First line.\n\nSecond.")]


def test_long_plain_text_becomes_passages_of_whole_sentences(tmp_path: Path) -> None:
    sentences = [f"Sentence {n} has “eight words” in it, just so." for n in range(100)]
    (tmp_path / "notes.txt").write_text("\n\n".join(sentences), encoding="utf-8")
    made = read(tmp_path / "notes.txt", passages=70)
    assert [id for id, _, _ in made[:2]] == ["notes.txt#1", "notes.txt#2"]
    assert all(text.endswith("so.") and 35 <= len(text.split()) <= 90 for _, _, text in made)
    parts = [text.split("\n\n") for _, _, text in made]
    assert list(dict.fromkeys(part for passage in parts for part in passage)) == sentences
    assert all(before[-1] == after[0] for before, after in itertools.pairwise(parts))
    assert read(tmp_path / "notes.txt", passages="off") == [("notes.txt", "notes", "\n\n".join(sentences))]


@pytest.mark.parametrize(
    "text", ["这是一个很长的句子，没有空格。" * 60, "ประโยคยาวที่ไม่มีช่องว่าง" * 60, "긴 한국어 문장이다. " * 150]
)
def test_passages_are_as_long_in_languages_without_spaces(tmp_path: Path, text: str) -> None:
    (tmp_path / "d.txt").write_text(text, encoding="utf-8")
    made = [text for _, _, text in read(tmp_path / "d.txt", passages=100, keep_repeated=True)]
    assert len(made) >= 4
    assert all(40 <= count_words(text) <= 130 for text in made)


MARKDOWN = """---
author: someone
---
Before any heading.

# Guide

Welcome.

## Install ##

```sh
# this is no heading
make
```

Under
-----
Text under an underlined heading.

- a list
---
after a rule

### Empty
#### Deep
End.
"""


def test_markdown_is_one_document_titled_by_its_heading(tmp_path: Path) -> None:
    (tmp_path / "g.md").write_text(MARKDOWN, encoding="utf-8")
    ((id, title, text),) = read(tmp_path / "g.md")
    assert (id, title) == ("g.md", "Guide")
    assert text.startswith("Before any heading.")
    assert text.endswith("End.")
    (tmp_path / "plain.md").write_text("No heading at all.", encoding="utf-8")
    assert read(tmp_path / "plain.md") == [("plain.md", "plain", "No heading at all.")]


def test_markdown_is_cut_at_its_headings(tmp_path: Path) -> None:
    (tmp_path / "g.md").write_text(MARKDOWN, encoding="utf-8")
    assert read(tmp_path / "g.md", passages=8) == [
        ("g.md#1", "Guide", "Before any heading."),
        ("g.md#2", "Guide", "Welcome."),
        ("g.md#3", "Guide › Install", "```sh\n# this is no heading\nmake\n```"),
        ("g.md#4", "Guide › Under", "Text under an underlined heading."),
        ("g.md#5", "Guide › Under", "- a list\n---\nafter a rule"),
        ("g.md#6", "Guide › Under › Empty › Deep", "End."),
    ]


def test_markdown_front_matter_must_close(tmp_path: Path) -> None:
    (tmp_path / "g.md").write_text("---\nA rule, then text.\n", encoding="utf-8")
    assert read(tmp_path / "g.md") == [("g.md", "g", "---\nA rule, then text.")]


def test_folder_and_zip_of_mixed_files_agree(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    jsonl(folder / "deep" / "er" / "rows.jsonl", ROWS)
    for n in (10, 9):
        (folder / f"{n}.txt").write_text(f"Number {n}.", encoding="utf-8")
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    (folder / ".DS_Store").write_bytes(b"\0")
    with zipfile.ZipFile(tmp_path / "docs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder))
    expected = [("9.txt", "9", "Number 9."), ("10.txt", "10", "Number 10."), *TRIPLES]
    hashes = set()
    for path in (folder, tmp_path / "docs.zip"):
        with read_documents(path) as result:
            assert triples(result) == expected
            assert set(result.formats) == {"text", "jsonl"}
            assert [(r.file, r.kind) for r in result.rejected] == [("photo.jpg", "unknown format")]
            assert (result.n_files, result.n_files_failed) == (3, 1)
            assert any(".DS_Store" in note for note in result.notes)
            hashes.add(result.content_hash)
    assert len(hashes) == 1


@pytest.mark.slow
def test_a_zip_holds_every_row_format(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": "p", "text": "In Parquet."}]), tmp_path / "p.parquet")
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(tmp_path / "p.parquet", "a/p.parquet")
        archive.writestr("b.csv", "id,text\nc,In CSV.\n")
        archive.writestr("c.jsonl.gz", gzip.compress(b'{"id": "j", "text": "In JSON."}\n'))
        archive.writestr("d.md", "# M\nIn Markdown.")
    assert [id for id, _, _ in read(tmp_path / "all.zip")] == ["p", "c", "j", "d.md"]


@pytest.mark.parametrize("corpus", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_of_a_beir_folder_only_the_corpus_is_read(tmp_path: Path, corpus: str) -> None:
    folder = tmp_path / "scifact"
    jsonl(folder / corpus, ROWS)
    jsonl(folder / "queries.jsonl", [{"_id": "q", "text": "not a document"}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "scifact.zip", "w") as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(tmp_path))
    for path in (folder, tmp_path, tmp_path / "scifact.zip"):
        with read_documents(path) as result:
            assert triples(result) == TRIPLES
            assert any("queries.jsonl" in note and "test.tsv" in note for note in result.notes)


def test_a_chosen_format_reads_files_of_any_ending(tmp_path: Path) -> None:
    jsonl(tmp_path / "x" / "dump.data", ROWS)
    assert read(tmp_path / "x" / "dump.data", format="jsonl") == TRIPLES
    assert read(tmp_path / "x", format="jsonl") == TRIPLES
    with pytest.raises(InputError, match="does not tell the format"):
        read_documents(tmp_path / "x" / "dump.data")


def test_formats_and_encodings_that_are_not_known_are_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "d.jsonl", ROWS)
    with pytest.raises(ConfigError, match="must be one of"):
        read_documents(path, ReadOptions(format="rtf"))
    with pytest.raises(ConfigError, match="not a text encoding"):
        read_documents(path, ReadOptions(encoding="utf-99"))


def test_ids_of_parquet_that_are_whole_numbers_or_uuids(tmp_path: Path) -> None:
    name = uuid.UUID("6f9619ff-8b86-d011-b42d-00cf4fc964ff")
    columns = {
        "floats": (pa.array([1.0, 2.5, None, float("nan"), -7.0]), {0: "1", 4: "-7"}),
        "decimals": (pa.array([Decimal("3.00"), Decimal("2.50"), None, None, Decimal(9)]), {0: "3", 4: "9"}),
        "long decimals": (pa.array([Decimal("9" * 38), *[None] * 4], pa.decimal128(38, 0)), {0: "9" * 38}),
        "uuids": (pa.array([name.bytes, None, None, None, None], pa.uuid()), {0: str(name)}),
    }
    texts = [f"text {i}" for i in range(5)]
    for column, (values, kept) in columns.items():
        pq.write_table(pa.table({"id": values, "text": texts}), tmp_path / f"{column}.parquet")
        with read_documents(tmp_path / f"{column}.parquet") as result:
            assert [(d.id, d.text) for d in result.documents] == [(id, texts[i]) for i, id in kept.items()]
            assert len(result.rejected) == 5 - len(kept)


def test_a_json_column_holds_its_texts(tmp_path: Path) -> None:
    cells = ['"A \\"quoted\\" text."', '"Zweite Zeile\\nhier"', "no JSON", '{"a": 1}', None]
    table = pa.table({"id": list("abcde"), "text": pa.array(cells, pa.json_())})
    pq.write_table(table, tmp_path / "d.parquet")
    with read_documents(tmp_path / "d.parquet") as result:
        assert [d.text for d in result.documents] == ['A "quoted" text.', "Zweite Zeile\nhier", "no JSON"]
        assert reasons(result) == [(4, "text is not text"), (5, "empty text")]


@pytest.mark.parametrize("indent", [1, 2, "\t"])
def test_objects_over_several_lines_are_rows(tmp_path: Path, indent: int | str) -> None:
    objects = [json.dumps(row, indent=indent) for row in ROWS]
    (tmp_path / "one.json").write_text(objects[0], encoding="utf-8")
    assert read(tmp_path / "one.json") == TRIPLES[:1]
    (tmp_path / "all.json").write_text("\n".join(objects), encoding="utf-8")
    assert read(tmp_path / "all.json") == TRIPLES
    broken = objects[1].replace(",", "", 1)
    (tmp_path / "bad.jsonl").write_text("\n".join([objects[0], broken, objects[2]]), encoding="utf-8")
    with read_documents(tmp_path / "bad.jsonl") as result:
        assert triples(result) == [TRIPLES[0], TRIPLES[2]]
        assert reasons(result) == [(6, "broken JSON")]


def test_an_indented_file_of_another_shape_is_named_by_its_fields(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text(json.dumps({"queries": {"q1": "?"}, "mode": "text"}, indent=2), encoding="utf-8")
    with pytest.raises(InputError, match=r"'queries', 'mode'"):
        read_documents(tmp_path / "d.json")
