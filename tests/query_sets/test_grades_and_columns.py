"""Judged rows: what is no grade, what is not relevant, and which columns were taken, in every shape of a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.corpus import CorpusManifest
from cdp.corpus.grades import grade_of
from cdp.query_sets import ImportedQueries, ImportOptions, import_queries

RELEVANT = ["1", "2", 2, 3.0, "1.0", "yes", "Yes ", "TRUE", True, "relevant", "ja", "oui", "да", "是"]
NOT_RELEVANT = ["0", 0, -1, "-1", "\u22121", "no", "FALSE", False, "not relevant", "irrelevant", "nein", "否"]


@pytest.mark.parametrize("value", RELEVANT)
def test_a_relevant_grade(value: object) -> None:
    grade = grade_of(value)
    assert grade is not None
    assert grade > 0


@pytest.mark.parametrize("value", NOT_RELEVANT)
def test_a_grade_that_is_not_relevant(value: object) -> None:
    grade = grade_of(value)
    assert grade is not None
    assert grade <= 0


@pytest.mark.parametrize("value", ["", "maybe", "0.5", 0.5, None, "nan", float("inf"), [1], "1e12"])
def test_no_grade(value: object) -> None:
    assert grade_of(value) is None


def pairs(workspace: Workspace, done: ImportedQueries) -> dict[str, list[str]]:
    return {line.document_id: line.queries for line in query_sets.read_queries(workspace, done.query_set.id)}


TWO = {"d1": ["how high?"], "d2": ["how loud?"]}
FILES = {
    "label.csv": "query,doc_id,label\nhow high?,d1,1\nhow high?,d2,0\nhow loud?,d2,2\nhow loud?,d3,-1\n",
    "words.tsv": "query\tdoc_id\trelevant\nhow high?\td1\tyes\nhow high?\td2\tno\nhow loud?\td2\tYES\n",
    "columns.jsonl": "".join(
        json.dumps(row) + "\n"
        for row in (
            {"query": "how high?", "doc_id": "d1", "score": 1},
            {"query": "how high?", "doc_id": "d4", "score": 0},
            {"query": "how loud?", "doc_id": "d2", "is_relevant": True},
            {"query": "bad", "doc_id": "d3", "relevance": -1},
        )
    ),
    "german.csv": "Frage;doc_id;Relevanz\nhow high?;d1;ja\nhow loud?;d2;ja\nhow loud?;d3;nein\n",
}


@pytest.mark.parametrize("name", FILES)
def test_rows_judged_not_relevant_are_no_pairs(
    workspace: Workspace, make_corpus: Callable[[int], CorpusManifest], tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(5)
    path = tmp_path / name
    path.write_text(FILES[name], encoding="utf-8")
    done = import_queries(path, workspace, corpus.id)
    assert pairs(workspace, done) == TWO
    assert done.n_rejected == 0
    (note,) = done.notes
    assert "judged not relevant: no training pairs" in note


def test_a_similarity_is_no_grade_and_unused_columns_are_named(
    workspace: Workspace, make_corpus: Callable[[int], CorpusManifest], tmp_path: Path
) -> None:
    corpus = make_corpus(5)
    path = tmp_path / "scored.csv"
    path.write_text("query,doc_id,score,source\nhow high?,d1,0.83,log\nhow loud?,d2,0,log\n", encoding="utf-8")
    done = import_queries(path, workspace, corpus.id)
    assert pairs(workspace, done) == TWO
    assert done.notes == (
        "Columns that were not taken: score, source.", "score holds no grades: every row counts as an answer."
    )  # fmt: skip
    with pytest.raises(InputError, match="1 judged not relevant") as refused:
        import_queries(path, workspace, corpus.id, options=ImportOptions(grade_field="score"))
    assert "Line 2: no grade in score" in refused.value.hint


def test_one_odd_grade_costs_its_row_alone(
    workspace: Workspace, make_corpus: Callable[[int], CorpusManifest], tmp_path: Path
) -> None:
    corpus = make_corpus(5)
    path = tmp_path / "odd.csv"
    path.write_text("query,doc_id,label\nhow high?,d1,1\nhow loud?,d2,1\nwho?,d3,0\nwho?,d4,maybe\n", encoding="utf-8")
    done = import_queries(path, workspace, corpus.id)
    assert pairs(workspace, done) == TWO
    assert done.rejected[0].startswith("Line 5: no grade in label")


def test_a_file_without_a_relevant_row_says_so(
    workspace: Workspace, make_corpus: Callable[[int], CorpusManifest], tmp_path: Path
) -> None:
    path = tmp_path / "none.csv"
    path.write_text("query,doc_id,label\nhow high?,d1,0\n", encoding="utf-8")
    with pytest.raises(InputError, match="1 judged not relevant"):
        import_queries(path, workspace, make_corpus(5).id)


def test_ids_are_read_as_those_of_documents(workspace: Workspace, tmp_path: Path) -> None:
    from cdp.corpus import read_documents, store

    documents = tmp_path / "d.jsonl"
    documents.write_text('{"_id": 1.0, "text": "one"}\n{"_id": 2, "text": "two"}\n')
    with read_documents(documents) as result:
        corpus = store(result, "numbers", workspace)
    path = tmp_path / "q.jsonl"
    path.write_text('{"query": "how high?", "doc_id": 1}\n{"query": "how loud?", "doc_id": 2.0}\n')
    assert pairs(workspace, import_queries(path, workspace, corpus.id)) == {"1": ["how high?"], "2": ["how loud?"]}
