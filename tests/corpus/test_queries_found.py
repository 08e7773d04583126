"""Queries that come with the documents."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cdp.corpus import read_documents
from tests.corpus.files import ROWS, jsonl, reasons


def test_a_list_per_document_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    rows = [
        {"doc_id": "x", "title": "T", "text": "one", "queries": ["first?", "second?"]},
        {"doc_id": "y", "title": "T", "text": "two", "queries": []},
        {"doc_id": "z", "title": "T", "text": "three", "queries": ["third?"]},
    ]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert list(result.queries.items()) == [("x", ["first?", "second?"]), ("z", ["third?"])]
        assert (len(result.queries), result.n_queries) == (2, 3)


def test_without_queries_there_are_none(tmp_path: Path) -> None:
    with read_documents(jsonl(tmp_path / "d.jsonl", ROWS)) as result:
        assert list(result.queries.items()) == []
        assert (len(result.queries), result.n_queries) == (0, 0)


def test_a_query_per_row_gathers_under_its_document(tmp_path: Path) -> None:
    rows = [
        {"pid": 1, "passage": "one", "query": "a?"},
        {"pid": 2, "passage": "two"},
        {"pid": 3, "passage": "three", "query": "b?"},
        {"pid": 1, "passage": "one", "query": "c?"},
        {"pid": 2, "passage": "two", "query": "d?"},
        {"pid": 3, "passage": "other text", "query": "lost with its row"},
    ]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert result.queries == {"1": ["a?", "c?"], "2": ["d?"], "3": ["b?"]}
        assert (len(result.queries), result.n_queries) == (3, 4)
        assert reasons(result) == [(4, "duplicate id"), (5, "duplicate id"), (6, "duplicate id")]
        assert ["queries were kept" in r.reason for r in result.rejected] == [True, True, False]


def test_unusable_entries_are_counted(tmp_path: Path) -> None:
    rows = [{"id": "x", "text": "one", "queries": ["good?", "", None, 7, {"text": "also?"}, {"query": "too?"}]}]
    with read_documents(jsonl(tmp_path / "d.jsonl", rows)) as result:
        assert list(result.queries.items()) == [("x", ["good?", "also?", "too?"])]
        assert any(note.startswith("3 entries among the queries") for note in result.notes)


def test_queries_in_tables_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('id,text,queries\nx,one,"[""a?"", ""b?""]"\ny,two,[c?\n', encoding="utf-8")
    pq.write_table(pa.table({"id": ["x"], "text": ["one"], "queries": [["a?", "b?"]]}), tmp_path / "d.parquet")
    with read_documents(tmp_path / "d.csv") as result:
        assert list(result.queries.items()) == [("x", ["a?", "b?"]), ("y", ["[c?"])]
    with read_documents(tmp_path / "d.parquet") as result:
        assert list(result.queries.items()) == [("x", ["a?", "b?"])]
