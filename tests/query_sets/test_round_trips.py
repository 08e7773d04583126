"""Exports come back whole, and what other programs write comes in: negatives, scores, ids, log-probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdp import query_sets
from cdp.base.errors import InputError
from cdp.base.workspace import Workspace, write_json, write_jsonl
from cdp.corpus import open_corpus
from cdp.query_sets import ImportedQueries, QuerySet, import_queries
from cdp.query_sets.exports import EXPORTS, export
from cdp.services import queries
from tests.synthesis.conftest import CorpusMaker

CORPUS = 7
# Formats in which a row holds the texts of negatives, and a teacher's scores.
WITH_NEGATIVES = ["sentence-transformers", "sentence-transformers-triplets", "pylate", "flagembedding", "tevatron"]
ROWS = [
    {"query": "one", "document_id": "d1", "negatives": ["d2", "d3"]},
    {"query": "uno", "document_id": "d1", "negatives": ["d3"]},
    {"query": "four", "document_id": "d4", "negatives": ["d6", "d1"]},
]
SCORES = [[9.5, 2.0, -1.5], [8.0, 3.25], [7.0, 0.0, 0.5]]


@pytest.fixture
def corpus(make_corpus: CorpusMaker) -> str:
    return make_corpus(CORPUS).id


@pytest.fixture
def mined(workspace: Workspace, corpus: str, tmp_path: Path) -> QuerySet:
    """Three queries with hard negatives, one of them with fewer, and a teacher's scores."""
    made = _imported(workspace, corpus, tmp_path / "mined.jsonl", ROWS)
    scores = {row["query"]: teacher for row, teacher in zip(ROWS, SCORES, strict=True)}
    return query_sets.derive(
        workspace, made.query_set, lambda line: line.queries, "taught", {"teacher": "some-model"},
        of_each=lambda line: {"teacher": [scores[text] for text in line.queries]},
    ).query_set  # fmt: skip


def _imported(workspace: Workspace, corpus: str, path: Path, rows: list[Any], name: str = "") -> ImportedQueries:
    write_jsonl(path, rows)
    return import_queries(path, workspace, corpus, name)


def _content(workspace: Workspace, query_set: QuerySet) -> list[Any]:
    lines = query_sets.read_queries(workspace, query_set.id)
    return [(line.with_ids(), line.negatives, line.teacher) for line in lines]


@pytest.mark.parametrize("form", WITH_NEGATIVES)
def test_queries_positives_negatives_scores_and_ids_come_back(
    form: str, workspace: Workspace, corpus: str, mined: QuerySet, tmp_path: Path
) -> None:
    target = tmp_path / f"out{EXPORTS[form].suffix}"
    assert export(workspace, mined.id, form, target) == 3
    back = import_queries(target, workspace, corpus, "back")
    assert back.rejected == ()
    assert _content(workspace, back.query_set) == _content(workspace, mined)
    assert (back.query_set.hard_negatives, back.query_set.parameters["teacher"]) == (5, "imported")


def test_a_row_of_sentence_transformers_holds_all_negatives_and_scores(
    workspace: Workspace, corpus: str, mined: QuerySet, tmp_path: Path
) -> None:
    notes: list[str] = []
    export(workspace, mined.id, "sentence-transformers", tmp_path / "out.parquet", notes=notes)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    texts = {id: document.content for id, document in open_corpus(workspace, corpus).get(["d1", "d2", "d3"]).items()}
    assert rows[0] == {
        "anchor": "one", "positive": texts["d1"], "negative_1": texts["d2"], "negative_2": texts["d3"],
        "label": SCORES[0],
    }  # fmt: skip
    assert rows[1]["negative_1"] == rows[1]["negative_2"] == texts["d3"]
    assert rows[1]["label"] == [8.0, 3.25, 3.25]
    assert notes == ["Fewer than 2 hard negatives, so theirs are repeated: 1 query."]


def test_flagembedding_and_tevatron_name_negatives_and_scores(
    workspace: Workspace, mined: QuerySet, tmp_path: Path
) -> None:
    for form in ("flagembedding", "tevatron"):
        export(workspace, mined.id, form, tmp_path / form)
    line = json.loads((tmp_path / "flagembedding").read_text().splitlines()[0])
    assert (line["neg_id"], line["pos_scores"], line["neg_scores"]) == (["d2", "d3"], [9.5], [2.0, -1.5])
    assert len(line["neg"]) == 2
    line = json.loads((tmp_path / "tevatron").read_text().splitlines()[0])
    passages = [*line["positive_passages"], *line["negative_passages"]]
    assert [(passage["docid"], passage["score"]) for passage in passages] == [("d1", 9.5), ("d2", 2.0), ("d3", -1.5)]


def test_a_row_of_pylate_holds_the_documents_with_their_scores(
    workspace: Workspace, corpus: str, mined: QuerySet, tmp_path: Path
) -> None:
    notes: list[str] = []
    export(workspace, mined.id, "pylate", tmp_path / "out.parquet", notes=notes)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["document_ids"], row["scores"]) for row in rows[:2]] == [
        (["d1", "d2", "d3"], SCORES[0]), (["d1", "d3", "d3"], [8.0, 3.25, 3.25]),
    ]  # fmt: skip
    assert {len(row[name]) for row in rows for name in ("documents", "document_ids", "scores")} == {3}
    assert (rows[0]["query_id"], rows[0]["query"]) == ("d1-1", "one")
    assert notes == ["Fewer than 2 hard negatives, so theirs are repeated: 1 query."]
    unscored = _imported(workspace, corpus, tmp_path / "unscored.jsonl", ROWS).query_set
    with pytest.raises(InputError, match="no hard negatives with a teacher's scores"):
        export(workspace, unscored.id, "pylate", tmp_path / "none.parquet")


def test_what_a_format_cannot_hold_is_said(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    rows = [*ROWS, {"query": "five", "document_id": "d5"}]
    some = _imported(workspace, corpus, tmp_path / "some.jsonl", rows).query_set
    none = import_queries([("d1", "one")], workspace, corpus, "none").query_set
    said = {}
    for name, made in (("some", some), ("none", none)):
        for form in ["beir", *(form for form in WITH_NEGATIVES if form != "pylate")]:
            done = queries.export(workspace, made.id, form, tmp_path / f"{name}-{form}{EXPORTS[form].suffix}")
            said[name, form] = (done.n, done.note)
    assert said["some", "beir"] == (4, "Hard negatives left out, for which BEIR has no place: 3 queries.")
    assert said["some", "sentence-transformers-triplets"][0] == 3
    triplets = said["some", "sentence-transformers-triplets"][1]
    assert triplets == "Left out without a hard negative, which each row holds: 1 query."
    assert "needs some in each line, or train_group_size 1: 1 query." in said["some", "flagembedding"][1]
    assert said["none", "beir"] == (1, "")
    for form in ("flagembedding", "tevatron"):
        assert "no hard negatives (queries mine adds them): the trainer needs some in" in said["none", form][1]
    assert "do without" in said["none", "sentence-transformers"][1]


def test_tevatrons_passages_come_in(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    text = open_corpus(workspace, corpus).get(["d5"])["d5"].text
    passage = {"docid": "d1", "title": "Locks", "text": "another edition of this text"}
    rows = [
        # Of another numbering: the text tells the document, and not the id.
        {"query_id": "q1", "query": "by text", "positive_passages": [{"docid": "d2", "title": "", "text": text}],
         "negative_passages": [passage, {"docid": "x", "title": "", "text": "of no document"}]},
        {"query_id": "q2", "query": "nothing", "positive_passages": [], "negative_passages": []},
    ]  # fmt: skip
    done = _imported(workspace, corpus, tmp_path / "tevatron.jsonl", rows)
    assert _content(workspace, done.query_set) == [([("d5-1", "by text")], [["d1"]], [])]
    assert done.rejected == (
        "Line 1: there is no document 'x' with the text 'of no document', named as a negative.",
        "Line 2: no document answers the query.",
    )
    assert "1 documents were found by their ids; their texts here are others." in done.notes


def test_anchors_and_positives_are_found_by_text(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    documents = open_corpus(workspace, corpus).get(["d1", "d2", "d3"])
    rows = [
        {"anchor": "with its title", "positive": documents["d1"].content, "negative": documents["d2"].text},
        {"anchor": "two of them", "positive": documents["d3"].text, "negative": [documents["d1"].text, "none such"]},
        {"anchor": "unmatched", "positive": "nobody's text"},
    ]
    done = _imported(workspace, corpus, tmp_path / "pairs.jsonl", rows)
    assert _content(workspace, done.query_set) == [
        ([("d1-1", "with its title")], [["d2"]], []),
        ([("d3-1", "two of them")], [["d1"]], []),
    ]
    assert done.n_rejected == 2
    assert 'no document with the text "nobody\'s text"' in done.rejected[1]


def test_a_question_set_of_llamaindex(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    texts = {id: document.content for id, document in open_corpus(workspace, corpus).get(["d1", "d2"]).items()}
    questions = {
        "queries": {"q1": "the first", "q2": "both", "q3": "neither"},
        "corpus": {"node-1": texts["d1"], "node-2": texts["d2"]},
        "relevant_docs": {"q1": ["node-1"], "q2": ["node-1", "node-2"], "q3": ["node-9"]},
        "mode": "text",
    }
    write_json(tmp_path / "questions.json", questions)
    done = import_queries(tmp_path / "questions.json", workspace, corpus)
    lines = [(line.document_id, line.queries) for line in query_sets.read_queries(workspace, done.query_set.id)]
    assert lines == [("d1", ["the first", "both"]), ("d2", ["both"])]
    assert done.rejected == ("Line 3: there is no document 'node-9'.",)


def test_records_of_argilla(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    def record(query: str, *answers: str, status: str = "completed") -> dict[str, Any]:
        responses = {"label": [{"value": answer, "user_id": str(n)} for n, answer in enumerate(answers)]}
        return {"id": query, "status": status, "fields": {"query": query}, "metadata": {"doc_id": "d1"},
                "suggestions": {}, "responses": responses if answers else {}}  # fmt: skip

    rows = [record("good", "yes", "yes"), record("bad", "no"), record("torn", "yes", "no"),
            record("away", "yes", status="discarded")]  # fmt: skip
    done = _imported(workspace, corpus, tmp_path / "records.jsonl", rows)
    assert _content(workspace, done.query_set) == [([("d1-1", "good")], [], [])]
    assert done.rejected == (
        "Line 3: disagreement (the answers to 'label' in Argilla differ).",
        "Line 4: discarded (a record that was discarded in Argilla).",
    )


def test_records_for_argilla_keep_queries_documents_negatives_and_ids(
    workspace: Workspace, corpus: str, mined: QuerySet, tmp_path: Path
) -> None:
    notes: list[str] = []
    assert export(workspace, mined.id, "argilla", tmp_path / "out.json", notes=notes) == 3
    assert notes == ["A teacher's scores left out, for which a record has no place: 3 queries."]
    back = import_queries(tmp_path / "out.json", workspace, corpus, "back")
    assert back.rejected == ()
    ours, theirs = _content(workspace, mined), _content(workspace, back.query_set)
    assert theirs == [(queries, negatives, []) for queries, negatives, _ in ours]


def test_a_question_set_for_llamaindex_keeps_queries_documents_and_ids(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    rows = [*ROWS, {"query": "One", "document_id": "d4"}]
    made = _imported(workspace, corpus, tmp_path / "rows.jsonl", rows).query_set
    notes: list[str] = []
    assert export(workspace, made.id, "llamaindex", tmp_path / "out.json", notes=notes) == 3
    assert notes == ["Hard negatives left out, for which LlamaIndex has no place: 3 queries."]
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["relevant_docs"] == {"d1-1": ["d1", "d4"], "d1-2": ["d1"], "d4-1": ["d4"]}
    assert written["corpus"].keys() == {"d1", "d4"}
    back = import_queries(tmp_path / "out.json", workspace, corpus, "back")
    assert [queries for queries, _, _ in _content(workspace, back.query_set)] == [
        [("d1-1", "one"), ("d1-2", "uno")], [("d4-1", "one"), ("d4-2", "four")],
    ]  # fmt: skip


def test_inpars_queries_keep_their_log_probabilities(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    rows = [
        {"query": "sure", "log_probs": [-0.1, -0.3], "prompt_text": "…", "doc_id": "d1"},
        {"query": "unsure", "log_probs": [-2.0], "prompt_text": "…", "doc_id": "d2"},
        {"query": "unknown", "log_probs": [], "prompt_text": "…", "doc_id": "d3"},
    ]
    made = _imported(workspace, corpus, tmp_path / "inpars.jsonl", rows).query_set
    best, without = queries.best(workspace, made.id, 1)
    assert (_content(workspace, best), without) == ([([("d1-1", "sure")], [], [])], 1)
    plain = [{"query": row["query"], "doc_id": row["doc_id"]} for row in rows]
    assert _imported(workspace, corpus, tmp_path / "plain.jsonl", plain, "inpars").query_set.id != made.id


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"query": "q", "positive_passages": "d1"}, '"positive_passages" is no list'),
        ({"query": "q", "positive_passages": ["d1"]}, "no object with docid and text"),
        ({"query": "q", "pos": [1]}, "a document is no text"),
        ({"anchor": "q", "positive": []}, "no document answers the query"),
    ],
)
def test_malformed_rows_are_told(row: Any, reason: str, workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, tmp_path / "bad.jsonl", [row])
    assert reason in str(refused.value.hint)
