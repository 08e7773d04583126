"""Target queries in a file of any shape, and what follows from queries that hold nothing to count."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.studies import target_queries
from cdp.studies.target_queries import read_queries

TWO = ["Who built the castle?", "Où coule la rivière ?"]
LINES = "\n".join(TWO) + "\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("plain.txt", LINES.encode()),
        ("windows.txt", LINES.replace("\n", "\r\n").encode("utf-8-sig")),
        ("notepad.txt", LINES.encode("utf-16")),
        ("wide.txt", LINES.encode("utf-32")),
        ("with a space ü.txt", b"\n  \n" + LINES.encode()),
        ("objects.jsonl", f'{{"_id": "1", "text": "{TWO[0]}"}}\n{{"query": "{TWO[1]}"}}\n'.encode()),
        ("table.csv", f"id,Query\n1,{TWO[0]}\n2,{TWO[1]}\n".encode()),
        ("excel.csv", f'id;question\n1;"{TWO[0]}"\n2;"{TWO[1]}"\n'.encode("utf-16")),
        ("table.tsv", f"text\tlabel\n{TWO[0]}\t1\n{TWO[1]}\t0\n".encode()),
        ("latin.txt", LINES.encode("latin-1")),
    ],
)
def test_the_queries_of_a_file(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert read_queries(tmp_path / name) == TWO


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("empty.txt", b"", "empty.txt: It holds no query"),
        ("blank.txt", b"\n \n", "blank.txt: It holds no query"),
        ("header.csv", b"query\n", "header.csv: It holds no query"),
        ("lines.csv", LINES.encode(), "no text in a column called query, text or question"),
        ("few.csv", b"id,query\n1,Why?\n2\n", "few.csv, line 3: Wrong number of cells: 1 cell where 2 are expected"),
        ("table.parquet", b"PAR1 and more", "cannot be read as Parquet"),
        ("broken.jsonl", b'{"text": "a"}\n{"text": \n', "broken.jsonl, line 2: Broken JSON: Expecting value"),
        ("number.jsonl", b'{"text": 5}\n', "number.jsonl, line 1: The row has no text in a column"),
    ],
)
def test_a_file_that_holds_no_queries_is_named_with_its_place(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_queries(tmp_path / name)
    assert said in str(caught.value)
    assert "codec" not in str(caught.value)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="It is a folder"):
        read_queries(tmp_path)
    with pytest.raises(InputError, match="There is no file"):
        read_queries(tmp_path / "none.txt")


def test_queries_without_a_content_word_get_no_recommendation() -> None:
    with pytest.raises(InputError, match="No query here has a content word when counted as English"):
        target_queries.profile_texts(["😀😃", "🚀"]).recommend()


def test_a_doubtful_count_is_the_first_limit_of_the_answer() -> None:
    found = target_queries.profile_texts(
        ["სად არის ქალაქი", "ვინ დაწერა წიგნი", "rivers of Asia"], language="en"
    ).recommend()
    assert found.caveats[0].startswith("67% of the queries have no content word when counted as English")


def test_a_query_set_without_queries_says_so(workspace: Workspace) -> None:
    from cdp import query_sets
    from cdp.services import corpora

    file = workspace.root / "one.jsonl"
    workspace.root.mkdir(parents=True, exist_ok=True)
    file.write_text('{"_id": "1", "text": "Salt keeps food."}\n', encoding="utf-8")
    corpus = corpora.add(workspace, file).corpus
    made = query_sets.import_queries([("1", ["Why salt?"])], workspace, corpus.id, name="one").query_set
    query_sets.files(workspace, made.id).queries.write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="has no queries yet"):
        target_queries.profile_query_set(workspace, made.id)
