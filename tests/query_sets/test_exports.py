"""Exports that other tools read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdp import query_sets
from cdp.base.errors import InputError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.corpus import read_documents
from cdp.query_sets import QuerySet, import_queries
from cdp.query_sets.exports import EXPORTS, export
from cdp.services import adding
from tests.synthesis.conftest import CorpusMaker

# PyLate's distillation has no row without a teacher's scores, which these queries lack.
FORMATS = [name for name, kind in EXPORTS.items() if kind.write is not None and name != "pylate"]


@pytest.fixture
def query_set(workspace: Workspace, make_corpus: CorpusMaker) -> QuerySet:
    """Queries for d1 and d3 of five documents, one of them in another script."""
    corpus = make_corpus(5)
    return import_queries([("d3", ["three a", "трёшка"]), ("d1", "one")], workspace, corpus.id, "few").query_set


def test_beir_reads_back_as_the_same_corpus_and_queries(
    workspace: Workspace, query_set: QuerySet, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    assert export(workspace, query_set.id, "beir", target) == 3
    with read_documents(target) as result:
        assert [document.id for document in result.documents] == ["d1", "d3"]
    qrels = (target / "qrels" / "train.tsv").read_text().splitlines()
    assert qrels == ["query-id\tcorpus-id\tscore", "d1-1\td1\t1", "d3-1\td3\t1", "d3-2\td3\t1"]
    assert [q.content_hash for q in adding.add(workspace, target).query_sets] == [query_set.content_hash]


def test_sentence_transformers_pairs(workspace: Workspace, query_set: QuerySet, tmp_path: Path) -> None:
    target = tmp_path / "pairs.parquet"
    assert export(workspace, query_set.id, "sentence-transformers", target) == 3
    rows = pq.read_table(target).to_pylist()
    assert [row["anchor"] for row in rows] == ["one", "three a", "трёшка"]
    assert rows[1]["positive"] == rows[2]["positive"]
    assert rows[0]["positive"].startswith("Thing1 Thing1 is device")


def test_flagembedding_lines(workspace: Workspace, query_set: QuerySet, tmp_path: Path) -> None:
    target = tmp_path / "train.jsonl"
    assert export(workspace, query_set.id, "flagembedding", target) == 3
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [line["query"] for line in lines] == ["one", "three a", "трёшка"]
    assert all(set(line) == {"query", "pos", "neg", "pos_id", "neg_id"} for line in lines)
    assert [(line["pos_id"], line["neg"]) for line in lines] == [(["d1"], []), (["d3"], []), (["d3"], [])]


@pytest.mark.parametrize("form", FORMATS)
def test_the_first_queries_of_each_document(
    workspace: Workspace, query_set: QuerySet, tmp_path: Path, form: str
) -> None:
    assert export(workspace, query_set.id, form, tmp_path / f"x{EXPORTS[form].suffix}", per_doc=1) == 2
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_nothing_is_overwritten_and_unknown_names_are_told(
    workspace: Workspace, query_set: QuerySet, tmp_path: Path
) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    with pytest.raises(InputError, match="already"):
        export(workspace, query_set.id, "flagembedding", tmp_path / "there.jsonl")
    with pytest.raises(NotFoundError, match="beir, sentence-transformers, sentence-transformers-triplets, "):
        export(workspace, query_set.id, "csv", tmp_path / "new")
    with pytest.raises(NotFoundError):
        export(workspace, "nope", "beir", tmp_path / "new")
    assert query_sets.load(workspace, query_set.id) == query_set


@pytest.mark.parametrize("form", FORMATS)
def test_what_comes_to_bear_the_name_meanwhile_is_not_overwritten(
    form: str, workspace: Workspace, query_set: QuerySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / f"out{EXPORTS[form].suffix}"
    kind = EXPORTS[form]
    write = kind.write
    assert write is not None

    def and_another_export_ends_first(*arguments: Any) -> int:
        monkeypatch.setitem(EXPORTS._items, form, kind)
        assert export(workspace, query_set.id, form, target, per_doc=1) == 2
        return write(*arguments)

    monkeypatch.setitem(EXPORTS._items, form, dataclasses.replace(kind, write=and_another_export_ends_first))
    with pytest.raises(InputError, match="is there already"):
        export(workspace, query_set.id, form, target)
    export(workspace, query_set.id, form, tmp_path / f"alone{EXPORTS[form].suffix}", per_doc=1)
    assert _files(target) == _files(tmp_path / f"alone{EXPORTS[form].suffix}")
    assert len(list(tmp_path.glob(".*"))) == 0, "nothing half-made is left"


def _files(path: Path) -> list[bytes]:
    return [f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()] if path.is_dir() else [path.read_bytes()]


def test_beir_has_a_query_of_several_documents_once(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path
) -> None:
    corpus = make_corpus(5)
    made = import_queries(
        [("d1", ["who wrote it?", "one"]), ("d3", ["three", "Who wrote it"])], workspace, corpus.id, "shared"
    ).query_set
    assert (made.n_queries, made.n_shared) == (4, 1)
    assert export(workspace, made.id, "beir", tmp_path / "out") == 3
    rows = [json.loads(line) for line in (tmp_path / "out" / "queries.jsonl").read_text().splitlines()]
    assert {row["_id"]: row["text"] for row in rows} == {"d1-1": "who wrote it?", "d1-2": "one", "d3-1": "three"}
    judged = (tmp_path / "out" / "qrels" / "train.tsv").read_text().splitlines()[1:]
    assert judged == ["d1-1\td1\t1", "d1-2\td1\t1", "d3-1\td3\t1", "d1-1\td3\t1"]
