"""Files as other programs write them: each query comes with its own document, negatives and scores, or is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace, write_json, write_jsonl
from cdp.corpus import ReadOptions, read_documents, store
from cdp.query_sets import ImportedQueries, ImportOptions, import_queries
from cdp.services import adding
from tests.fuzz.files import odd_text

N = 5
TEXTS = [f"Text number {n} tells of subject {7 * n}." for n in range(N)]
TITLES = [f"Title {n}" for n in range(N)]
QUERIES = [f"what is subject {7 * n}?" for n in range(N)]
# Of the documents. Those of others' queries begin in their midst, so that one of a query is that of another's document.
IDS = [str(100 + n) for n in range(N)]
OWN = [103 + n for n in range(N)]
NEXT = [(n + 1) % N for n in range(N)]


@pytest.fixture
def corpus(workspace: Workspace, tmp_path: Path) -> str:
    documents = tmp_path / "documents.jsonl"
    write_jsonl(documents, [{"_id": IDS[n], "title": TITLES[n], "text": TEXTS[n]} for n in range(N)])
    with read_documents(documents) as result:
        return store(result, "numbered", workspace).id


def _rows(make: Any) -> list[Any]:
    return [make(n) for n in range(N)]


def _passage(n: int, **more: Any) -> dict[str, Any]:
    return {"title": TITLES[n], "text": TEXTS[n], **more}


def _with_dpr(n: int) -> dict[str, Any]:
    first = {"score": 1000, "title_score": 1, "passage_id": IDS[n]}
    return {
        "dataset": "nq", "question": QUERIES[n], "answers": ["seven"],
        "positive_ctxs": [_passage(n, **first)], "negative_ctxs": [_passage(0)],
        "hard_negative_ctxs": [_passage(NEXT[n], score=12.5, psg_id=IDS[NEXT[n]])],
    }  # fmt: skip


def _task(n: int | None, at: int, question: str, *answers: dict[str, Any], skipped: bool = False) -> dict[str, Any]:
    """Return a task of Label Studio about document ``at``, asked with query ``n`` beside it or without one."""
    data = {"text": TEXTS[at], "doc_id": int(IDS[at]), **({} if n is None else {"query": QUERIES[n]})}
    given = [{"was_cancelled": skipped, "result": [{"from_name": question, "value": answer}]} for answer in answers]
    return {"id": 7, "data": data, "annotations": given, "predictions": []}


ROWS: dict[str, list[Any]] = {
    "dpr": _rows(_with_dpr),
    "contriever, without ids and titles": _rows(
        lambda n: {"question": QUERIES[n], "positive_ctxs": [{"title": "", "text": TEXTS[n]}],
                   "hard_negative_ctxs": [{"text": TEXTS[NEXT[n]]}]}
    ),
    "tevatron 2": _rows(
        lambda n: {"query_id": OWN[n], "query_text": QUERIES[n], "query_image": None,
                   "positive_document_ids": [IDS[n]], "negative_document_ids": [IDS[NEXT[n]]]}
    ),
    "tevatron, a list of objects column by column": _rows(
        lambda n: {"query": QUERIES[n],
                   "positive_passages": {"docid": [IDS[n]], "title": [TITLES[n]], "text": [TEXTS[n]]},
                   "negative_passages": {"docid": [int(IDS[NEXT[n]])], "title": [""], "text": [TEXTS[NEXT[n]]]}}
    ),
    "n-tuple of columns that its maker named": _rows(
        lambda n: {"query": QUERIES[n], "answer": TEXTS[n], "negative_1": TEXTS[NEXT[n]]}
    ),
    "labeled-list": _rows(
        lambda n: {"anchor": QUERIES[n], "positive": [TEXTS[n], TEXTS[NEXT[n]]], "labels": [1, 0]}
    ),
    "listwise": _rows(lambda n: {"query": QUERIES[n], "docs": [TEXTS[NEXT[n]], TEXTS[n]], "labels": [0, 3]}),
    "contrastors": _rows(
        lambda n: {"query": QUERIES[n], "document": TEXTS[n], "negatives": [TEXTS[NEXT[n]]], "metadata": {"o": {}}}
    ),
}  # fmt: skip

WITHOUT_NEGATIVES: dict[str, list[Any]] = {
    "squad, ids of questions": _rows(
        lambda n: {"id": OWN[n], "title": TITLES[n], "context": TEXTS[n], "question": QUERIES[n], "answers": {}}
    ),
    "swim-ir": _rows(lambda n: {"_id": IDS[n], "lang": "en", "query": QUERIES[n], "text": TEXTS[n]}),
    "ragas": _rows(
        lambda n: {"user_input": QUERIES[n], "reference_contexts": [f"<1-hop>\n\n{TEXTS[n]}"], "reference": "seven"}
    ),
    "ragas 0.1": _rows(lambda n: {"question": QUERIES[n], "contexts": [TEXTS[n]], "ground_truth": "seven"}),
    "ragas, ids of its own chunks beside the texts": _rows(
        lambda n: {"user_input": QUERIES[n], "reference_contexts": [TEXTS[n]], "reference_context_ids": [f"c{n}"]}
    ),
    "ragas, by id alone": _rows(
        lambda n: {"user_input": QUERIES[n], "retrieved_contexts": [TEXTS[0]], "reference_context_ids": [int(IDS[n])]}
    ),
    "flexrag": _rows(
        lambda n: {"question": QUERIES[n], "golden_answers": [], "meta_data": {}, "golden_contexts": [
            {"context_id": IDS[n], "data": {"title": TITLES[n], "text": TEXTS[n]}, "source": None, "meta_data": {}}]}
    ),
    "goldens of deepeval": _rows(
        lambda n: {"input": QUERIES[n], "expected_output": "", "context": [TEXTS[n]], "name": None}
    ),
    "doccano, a label of one word": [
        {"id": 900 + n, "text": QUERIES[n], "doc_id": int(IDS[at]), "label": [word], "Comments": []}
        for n in range(N) for at, word in ((n, "relevant"), (NEXT[n], "irrelevant"))
    ],
    "label studio": [
        _task(n, at, "relevance", {"choices": [word]})
        for n in range(N) for at, word in ((n, "relevant"), (NEXT[n], "irrelevant"))
    ],
    "label studio, questions that people wrote": _rows(lambda n: _task(None, n, "question", {"text": [QUERIES[n]]})),
    "label studio, an annotation a row": [
        {"query": QUERIES[n], "text": TEXTS[at], "id": n, "relevance": word, "annotation_id": n, "lead_time": 3.2}
        for n in range(N) for at, word in ((n, "relevant"), (NEXT[n], "irrelevant"))
    ],
    "label studio, questions a row": _rows(
        lambda n: {"text": TEXTS[n], "id": n, "question": {"text": [QUERIES[n]]}, "annotation_id": n, "lead_time": 3.2}
    ),
    "labeled-pair": [
        {"anchor": QUERIES[n], "positive": TEXTS[at], "label": int(at == n)} for n in range(N) for at in (n, NEXT[n])
    ],
    "squad, nested": [
        {"version": "2.0", "data": [{"title": TITLES[n], "paragraphs": [
            {"context": TEXTS[n], "qas": [{"id": OWN[n], "question": QUERIES[n]}]}]} for n in range(N)]}
    ],
    "examples of llamaindex": [
        {"examples": _rows(lambda n: {"query": QUERIES[n], "reference_contexts": [TEXTS[n]], "reference_answer": "7"})}
    ],
}  # fmt: skip


def _imported(workspace: Workspace, corpus: str, path: Path, **options: Any) -> ImportedQueries:
    return import_queries(path, workspace, corpus, options=ImportOptions(**options))


def _content(workspace: Workspace, done: ImportedQueries) -> dict[str, tuple[str, list[str]]]:
    """Return {query: (document id, negatives)}."""
    found = {}
    for line in query_sets.read_queries(workspace, done.query_set.id):
        for at, query in enumerate(line.queries):
            found[query] = line.document_id, line.negatives[at] if line.negatives else []
    return found


ALONE = {QUERIES[n]: (IDS[n], []) for n in range(N)}
MINED = {QUERIES[n]: (IDS[n], [IDS[NEXT[n]]]) for n in range(N)}


@pytest.mark.parametrize("name", [*ROWS, *WITHOUT_NEGATIVES])
@pytest.mark.parametrize("form", ["lines", "array"])
def test_each_query_comes_with_its_document(
    workspace: Workspace, corpus: str, tmp_path: Path, name: str, form: str
) -> None:
    rows = ROWS.get(name) or WITHOUT_NEGATIVES[name]
    if form == "lines":
        write_jsonl(tmp_path / "theirs.jsonl", rows)
    else:
        write_json(tmp_path / "theirs.jsonl", rows)

    done = _imported(workspace, corpus, tmp_path / "theirs.jsonl")
    assert _content(workspace, done) == (MINED if name in ROWS else ALONE)
    assert done.rejected == ()
    assert "teacher" not in done.query_set.parameters


@pytest.mark.parametrize("name", [*ROWS, *WITHOUT_NEGATIVES])
def test_a_project_takes_the_same_files_as_queries(
    workspace: Workspace, corpus: str, tmp_path: Path, name: str
) -> None:
    write_jsonl(tmp_path / "theirs.jsonl", ROWS.get(name) or WITHOUT_NEGATIVES[name])
    added = adding.add(workspace, tmp_path / "documents.jsonl", tmp_path / "theirs.jsonl", name="numbered")
    assert added.corpus.id == corpus
    (training,) = added.query_sets
    found = query_sets.read_queries(workspace, training.id)
    assert {query: line.document_id for line in found for query in line.queries} == dict(zip(QUERIES, IDS, strict=True))
    left = {"hard negatives, which queries import takes": N} if name in ROWS else {}
    assert added.left_out == left


@pytest.mark.parametrize("column", ["label", "scores"])
def test_scores_beside_negatives_are_a_teachers(workspace: Workspace, corpus: str, tmp_path: Path, column: str) -> None:
    rows = _rows(
        lambda n: {"anchor": QUERIES[n], "positive": TEXTS[n], "negative_1": TEXTS[NEXT[n]], column: [0.9, 0.25]}
    )
    write_jsonl(tmp_path / "mined.jsonl", rows)
    done = _imported(workspace, corpus, tmp_path / "mined.jsonl")
    assert _content(workspace, done) == MINED
    taught = [line.teacher for line in query_sets.read_queries(workspace, done.query_set.id)]
    assert taught == [[[0.9, 0.25]]] * N


def test_a_column_of_texts_can_be_chosen_with_the_negatives_beside_it(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    rows = _rows(lambda n: {"query": QUERIES[n], "solution": TEXTS[n], "negative": TEXTS[NEXT[n]]})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "answers.parquet")
    done = _imported(workspace, corpus, tmp_path / "answers.parquet", document_field="solution")
    assert _content(workspace, done) == MINED

    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, tmp_path / "answers.parquet")
    assert refused.value.hint == (
        "Line 1: there is no document id (choose its field among query, solution, negative)."
    )  # fmt: skip

    # An answer may be a passage, and may be one word.
    write_jsonl(
        tmp_path / "answers.jsonl", [{"question": QUERIES[n], "answer": TEXTS[n] if n else "7"} for n in range(N)]
    )
    done = _imported(workspace, corpus, tmp_path / "answers.jsonl")
    assert _content(workspace, done) == {QUERIES[n]: (IDS[n], []) for n in range(1, N)}
    assert done.rejected == ("Line 1: there is no document '7'.",)


def test_a_column_of_lists_of_ids_can_be_chosen(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "qas.jsonl", [{"qid": 7, "query": "two of them", "answer_pids": [100, 104]}])
    done = _imported(workspace, corpus, tmp_path / "qas.jsonl", document_field="answer_pids")
    lines = [(line.document_id, line.queries) for line in query_sets.read_queries(workspace, done.query_set.id)]
    assert lines == [("100", ["two of them"]), ("104", ["two of them"])]


@pytest.mark.parametrize("written", [repr, json.dumps])
def test_cells_of_a_table_may_hold_lists(workspace: Workspace, corpus: str, tmp_path: Path, written: Any) -> None:
    path = tmp_path / "testset.tsv"
    rows = [f"{QUERIES[n]}\t{written([TEXTS[n]])}\tseven" for n in range(N)]
    path.write_text("\n".join(["user_input\treference_contexts\treference", *rows, ""]))
    assert _content(workspace, _imported(workspace, corpus, path)) == ALONE

    rows = [f"{written([QUERIES[n]])}\t{written([TEXTS[n]])}\t{written([TEXTS[NEXT[n]]])}" for n in range(N)]
    path.write_text("\n".join(["queries\tpos\tneg", *rows, ""]))
    assert _content(workspace, _imported(workspace, corpus, path)) == MINED

    cells = [[{"docid": int(IDS[n]), "text": TEXTS[n]}] for n in range(N)]
    path.write_text(
        "\n".join(["query\tpositive_passages", *(f"{QUERIES[n]}\t{written(cells[n])}" for n in range(N)), ""])
    )
    assert _content(workspace, _imported(workspace, corpus, path)) == ALONE

    path.write_text(
        "\n".join(["user_input\treference_context_ids", *(f"{QUERIES[n]}\t[{IDS[n]}]" for n in range(N)), ""])
    )
    assert _content(workspace, _imported(workspace, corpus, path)) == ALONE

    path.write_text(f"doc_id\tqueries\n100\t{written(['one', 'two'])}\n101\t['three' 'four']\n")
    done = _imported(workspace, corpus, path)
    assert [line.queries for line in query_sets.read_queries(workspace, done.query_set.id)] == [["one", "two"]]
    assert "a list has no commas, as NumPy writes it" in done.rejected[0]


def test_a_table_without_a_header(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "doc2query.tsv"
    path.write_text("".join(f"{IDS[n]}\t{QUERIES[n]}\n" for n in range(N)))
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, path)
    assert "among 100, what is subject 0?; or say that the first row is no header" in str(refused.value.hint)
    with pytest.raises(ConfigError, match="without a header"):
        ImportOptions(header=False)
    done = _imported(workspace, corpus, path, header=False, document_field="1", query_field="2")
    assert _content(workspace, done) == ALONE

    triples = tmp_path / "triples.tsv"
    triples.write_text("".join(f"{QUERIES[n]}\t{TEXTS[n]}\t{TEXTS[NEXT[n]]}\n" for n in range(N)))
    done = _imported(workspace, corpus, triples, header=False, document_field="2", query_field="1")
    assert (_content(workspace, done), done.notes) == (ALONE, ("Columns that were not taken: 3.",))


def test_a_table_of_documents_without_a_header_keeps_its_first(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "collection.tsv"
    path.write_text("".join(f"{IDS[n]}\t{TEXTS[n]}\n" for n in range(N)))
    with pytest.raises(InputError) as refused:
        adding.add(workspace, path)
    assert "say that the file has no header row" in str(refused.value.hint)
    assert adding.add(workspace, path, reading=ReadOptions(header=False)).corpus.n_documents == N


def test_the_ids_of_queries_are_not_taken_for_those_of_documents(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    path = tmp_path / "queries.jsonl"
    write_jsonl(path, _rows(lambda n: {"_id": str(OWN[n]), "text": QUERIES[n], "metadata": {}}))
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, path)
    assert "projects add reads a BEIR folder" in str(refused.value.hint)
    with pytest.raises(InputError, match="No row of queries can be taken: there is no document id"):
        adding.add(workspace, tmp_path / "documents.jsonl", path)

    # Nothing in the file tells which ids these are.
    write_jsonl(path, [{"id": 103, "question": "whose id?"}])
    done = _imported(workspace, corpus, path)
    assert done.notes == ("Taken for the document's id: id. If it is the query's own, choose another.",)


def test_what_a_row_means_but_does_not_say_is_told(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    write_jsonl(path, [{"query": QUERIES[0], "pos": [TEXTS[0]], "neg": [TEXTS[0], TEXTS[1]]}])
    done = _imported(workspace, corpus, path)
    assert _content(workspace, done) == {QUERIES[0]: (IDS[0], [IDS[1]])}
    assert done.rejected == ("Line 1: the document that answers the query is named as a negative, too.",)

    write_jsonl(path, _rows(lambda n: {"anchor": QUERIES[n], "positive": TEXTS[n], "label": n / 10 + 0.05}))
    assert "label holds no grades: every row counts as an answer." in _imported(workspace, corpus, path).notes

    write_jsonl(path, [{"doc_id": 100, "query": "1. who?\n2. when?"}])
    assert _imported(workspace, corpus, path).notes == ("Each taken as one query, though of several lines: 1.",)


def test_records_that_argilla_gave_as_a_table(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    def record(n: int) -> dict[str, Any]:
        answers = {1: ["no"], 2: ["yes", "no"]}.get(n, ["yes"])
        return {"id": OWN[n], "status": "discarded" if n == 3 else "completed", "query": QUERIES[n], "text": TEXTS[n],
                "label.responses": answers, "label.responses.users": ["u"], "label.suggestion": None}  # fmt: skip

    table = pa.Table.from_pylist(_rows(record))
    pq.write_table(table, tmp_path / "records.parquet")
    table.to_pandas().map(lambda cell: cell.tolist() if hasattr(cell, "tolist") else cell).to_csv(
        tmp_path / "records.csv", index=False
    )
    for name, bad in (("records.parquet", 3), ("records.csv", 4)):
        done = _imported(workspace, corpus, tmp_path / name)
        assert _content(workspace, done) == {QUERIES[n]: (IDS[n], []) for n in (0, 4)}
        reasons = [reason.partition(" (")[0] for reason in done.rejected]
        assert reasons == [f"Line {bad}: disagreement", f"Line {bad + 1}: discarded"]
        assert "1 row judged not relevant" in done.notes[0]


def test_what_several_people_answered_in_label_studio(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    yes, no = {"choices": ["relevant"]}, {"choices": ["irrelevant"]}
    tasks = [
        _task(0, 0, "relevance", yes, yes),
        _task(1, 1, "relevance", yes, no),
        _task(2, 2, "relevance", yes, skipped=True),
        _task(3, 3, "relevance"),
        _task(4, 4, "relevance", no),
    ]
    write_json(tmp_path / "tasks.json", tasks)
    done = _imported(workspace, corpus, tmp_path / "tasks.json")
    assert _content(workspace, done) == {QUERIES[0]: (IDS[0], [])}
    assert [reason.partition(" (")[0].partition(" in ")[0] for reason in done.rejected] == [
        "Line 2: disagreement", "Line 3: discarded", "Line 4: no grade"
    ]  # fmt: skip

    path = tmp_path / "asked.csv"
    cells = [json.dumps({"text": [f"first {n}?", QUERIES[n]]}).replace('"', '""') for n in range(N)]
    rows = [f'{n},2.5,{IDS[n]},"{cells[n]}"' for n in range(N)]
    path.write_text("\n".join(["annotation_id,lead_time,doc_id,question", *rows, ""]))
    done = _imported(workspace, corpus, path)
    assert sorted(_content(workspace, done)) == sorted([*QUERIES, *(f"first {n}?" for n in range(N))])


def test_drafts_and_discarded_answers_of_argilla_do_not_count(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    states = [["submitted"], ["draft"], ["discarded"], ["draft", "submitted"], ["submitted", "submitted"]]
    answers = [["relevant"], ["relevant"], ["relevant"], ["irrelevant", "relevant"], ["irrelevant", "relevant"]]
    rows = _rows(
        lambda n: {"id": n, "query": QUERIES[n], "text": TEXTS[n], "label.responses": answers[n],
                   "label.responses.users": ["u", "v"][: len(answers[n])], "label.responses.status": states[n]}
    )  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "records.parquet")
    done = _imported(workspace, corpus, tmp_path / "records.parquet")
    assert _content(workspace, done) == {QUERIES[n]: (IDS[n], []) for n in (0, 3)}
    assert [line.split()[1] for line in done.rejected] == ["2:", "3:", "5:"]

    # As datasets writes it to CSV: lists of one by repr, of more as NumPy.
    lines = [f"{QUERIES[n]},{IDS[n]},{['relevant']},{['submitted']}" for n in range(2)]
    lines.append(f"{QUERIES[2]},{IDS[2]},['relevant' 'relevant'],['submitted' 'submitted']")
    header = "query,doc_id,label.responses,label.responses.status"
    (tmp_path / "records.csv").write_text("\n".join([header, *lines, ""]))
    done = _imported(workspace, corpus, tmp_path / "records.csv")
    assert _content(workspace, done) == {QUERIES[n]: (IDS[n], []) for n in (0, 1)}
    assert "a list has no commas, as NumPy writes it" in done.rejected[0]


@pytest.mark.parametrize(
    ("classes", "kept"),
    [
        (["relevant", "irrelevant"], [0, 2, 4]),
        (["irrelevant", "relevant"], [1, 3]),
        (["not_duplicate", "duplicate"], [1, 3]),
        (["0", "1"], [1, 3]),
    ],
)
def test_the_names_of_classes_say_what_their_numbers_mean(
    workspace: Workspace, corpus: str, tmp_path: Path, classes: list[str], kept: list[int]
) -> None:
    rows = _rows(lambda n: {"query": QUERIES[n], "text": TEXTS[n], "label": n % 2})
    features = {"features": {"label": {"names": classes, "_type": "ClassLabel"}}}
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": json.dumps({"info": features})})
    pq.write_table(table, tmp_path / "labelled.parquet")
    done = _imported(workspace, corpus, tmp_path / "labelled.parquet")
    assert _content(workspace, done) == {QUERIES[n]: (IDS[n], []) for n in kept}


def test_three_classes_that_are_no_grades_judge_nothing(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    rows = _rows(lambda n: {"query": QUERIES[n], "text": TEXTS[n], "label": n % 3})
    classes = {"names": ["entailment", "neutral", "contradiction"], "_type": "ClassLabel"}
    info = json.dumps({"info": {"features": {"label": classes}}})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": info})
    pq.write_table(table, tmp_path / "entailed.parquet")
    done = _imported(workspace, corpus, tmp_path / "entailed.parquet")
    assert "label holds no grades: every row counts as an answer." in done.notes

    # Nothing that the file says of itself may stop its rows.
    for broken in ("[" * 10_000, "{", '{"info": 7}', '{"info": {"features": {"label": {"names": [1, 2, 3]}}}}'):
        pq.write_table(table.replace_schema_metadata({"huggingface": broken}), tmp_path / "broken.parquet")
        assert _imported(workspace, corpus, tmp_path / "broken.parquet").query_set.n_queries == 3


def test_a_document_is_not_its_own_query(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "asked.jsonl"
    write_jsonl(path, _rows(lambda n: {"id": 900 + n, "text": TEXTS[n], "doc_id": IDS[n], "label": [QUERIES[n]]}))
    with pytest.raises(InputError, match="no query to import") as refused:
        _imported(workspace, corpus, path)
    assert "the query is the text of its document" in str(refused.value.hint)

    added = adding.add(workspace, tmp_path / "documents.jsonl", path, name="numbered")
    assert added.query_sets == ()
    assert added.left_out == {"rows of queries not taken (the query is the text of its document)": N}
    assert _content(workspace, _imported(workspace, corpus, path, query_field="label")) == ALONE

    # Queries may stand in a field of this name.
    write_jsonl(path, _rows(lambda n: {"text": QUERIES[n], "doc_id": IDS[n]}))
    assert _content(workspace, _imported(workspace, corpus, path)) == ALONE


def test_fields_that_stand_the_other_way_round_are_told(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "generated.jsonl"
    write_jsonl(path, _rows(lambda n: {"anchor": TEXTS[n], "positive": QUERIES[n], "model_name": "m"}))
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, path)
    assert "choose the two fields the other way round" in str(refused.value.hint)
    done = _imported(workspace, corpus, path, query_field="positive", document_field="anchor")
    assert _content(workspace, done) == ALONE


def test_ids_in_place_of_queries_are_told(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    path = tmp_path / "gpl-training-data.tsv"
    path.write_text("".join(f"genQ{n}\t{IDS[n]}\t{IDS[NEXT[n]]}\t7.5\n" for n in range(N)))
    done = _imported(workspace, corpus, path, header=False, query_field="1", document_field="2")
    assert "No query has two words: if these are ids, choose another field." in done.notes


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"anchor": "q", "positive": [TEXTS[0], TEXTS[1]], "scores": [0.9, 0.1]}, "do not say which of them answer"),
        ({"anchor": "q", "positive": [TEXTS[0]], "labels": ["good"]}, '"labels" holds what is no grade'),
        ({"anchor": "q", "positive": [TEXTS[0]], "labels": [0]}, "no document answers the query"),
        ({"query": ["Represent it:", "q"], "pos": ["Represent it:", TEXTS[0]], "neg": []}, "leave out the instruction"),
        ({"question": QUERIES, "context": TEXTS}, "many queries and many documents: save a row for each query"),
        ({"query_id": "q1", "doc_id": 100, "relevance": 1}, "a BEIR folder, whose qrels name them"),
        ({"qid": "q1", "pos": [100], "neg": {"bm25": [101]}}, "there is no query"),
        ({"query": {"0": "q", "1": "r"}, "doc_id": {"0": 100, "1": 101}}, "one object holds all rows"),
        ({"question": QUERIES, "contexts": [[text] for text in TEXTS]}, "save a row for each query"),
        ({"conversations": [{"from": "human", "value": "q"}]}, "choose its field among conversations"),
        ({"id": 103, "question": "q", "context": "of no document"}, "no document with the text 'of no document'"),
    ],
)
def test_what_does_not_say_its_document_is_refused(
    workspace: Workspace, corpus: str, tmp_path: Path, row: dict[str, Any], reason: str
) -> None:
    write_jsonl(tmp_path / "theirs.jsonl", [row])
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, tmp_path / "theirs.jsonl")
    assert reason in str(refused.value.hint)


HUGE = int("9" * 400)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"anchor": QUERIES[0], "positive": TEXTS[0], "negative": TEXTS[1], "scores": [HUGE, 0]}, ""),
        ({"query": QUERIES[0], "pos": [TEXTS[0]], "neg": [TEXTS[1]], "pos_scores": [HUGE], "neg_scores": [1]}, ""),
        ({"query": QUERIES[0], "positive_passages": [{"docid": IDS[0], "text": TEXTS[0], "score": HUGE}],
          "negative_passages": [{"docid": IDS[1], "text": TEXTS[1], "title": 1984}]}, ""),
        ({"query": QUERIES[0], "docid": IDS[0], "negatives": [IDS[1]], "logprobs": [HUGE]}, ""),
        ({"query": QUERIES[0], "docid": IDS[0], "negatives": [IDS[1]], "logprobs": [1.7e308, 1.7e308]}, ""),
        ({"fields": {"text": TEXTS[0], "query": QUERIES[0]}, "metadata": {"negatives": [IDS[1]]},
          "responses": {"note": 5}}, ""),
        ({"text": TEXTS[0], "query": QUERIES[0], "label.responses": "yes", "negatives": [IDS[1]]}, ""),
        ({"\ud800": QUERIES[0], "docid": IDS[0]}, "choose its field among ?, docid"),
    ],
)  # fmt: skip
def test_odd_values_cost_no_more_than_what_they_say(
    workspace: Workspace, corpus: str, tmp_path: Path, row: dict[str, Any], says: str
) -> None:
    (tmp_path / "theirs.jsonl").write_text(json.dumps(row), encoding="utf-8")
    if says:
        with pytest.raises(InputError) as refused:
            _imported(workspace, corpus, tmp_path / "theirs.jsonl")
        assert says in str(refused.value)
        return

    done = _imported(workspace, corpus, tmp_path / "theirs.jsonl")
    assert _content(workspace, done) == {QUERIES[0]: (IDS[0], [IDS[1]])}
    assert "teacher" not in done.query_set.parameters


def test_parquet_whose_text_is_no_utf8_is_refused_in_a_sentence(
    workspace: Workspace, corpus: str, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"docid": IDS[:2], "query": odd_text([b"what?", b"wh\xff"])}), tmp_path / "theirs.parquet")
    with pytest.raises(InputError, match=r"theirs\.parquet: It cannot be read as Parquet: it is damaged"):
        _imported(workspace, corpus, tmp_path / "theirs.parquet")


def test_lines_of_arrays_have_no_names(workspace: Workspace, corpus: str, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "pairs.jsonl", [[QUERIES[n], TEXTS[n]] for n in range(N)])
    with pytest.raises(InputError) as refused:
        _imported(workspace, corpus, tmp_path / "pairs.jsonl")
    assert "an array has no names" in str(refused.value.hint)
