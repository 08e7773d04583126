"""Query sets: made, found, read, deleted; and queries that exist already, imported with every rejected row named."""

from __future__ import annotations

import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError, NotFoundError
from cdp.base.workspace import Workspace, append_jsonl
from cdp.query_sets import ImportOptions, QuerySet, import_queries
from tests.support import iter_queries, shared
from tests.synthesis.conftest import CorpusMaker


def made(workspace: Workspace, set_id: str, name: str, created: str = "2026-01-01T00:00:00+00:00") -> QuerySet:
    query_set = QuerySet(id=set_id, name=name, corpus_id="c", corpus_hash="h", created=created)
    return query_sets.create(workspace, query_set)


def test_a_set_is_created_updated_and_loaded(workspace: Workspace) -> None:
    original = made(workspace, "one-1234", "One")
    assert query_sets.load(workspace, "one-1234") == original
    changed = query_sets.update(workspace, "one-1234", complete=True, n_queries=5)
    assert query_sets.load(workspace, "one-1234") == changed
    assert (changed.complete, changed.n_queries, changed.name) == (True, 5, "One")
    with pytest.raises(ConfigError, match="already"):
        made(workspace, "one-1234", "again")


def test_sets_are_found_by_id_name_or_beginning(workspace: Workspace) -> None:
    made(workspace, "demo-diverse-11", "Demo diverse")
    made(workspace, "demo-para-22", "Twice", created="2026-01-02T00:00:00+00:00")
    made(workspace, "other-33", "Twice")
    assert query_sets.resolve_query_set(workspace, "demo-diverse-11").id == "demo-diverse-11"
    assert query_sets.resolve_query_set(workspace, "Demo diverse").id == "demo-diverse-11"
    assert query_sets.resolve_query_set(workspace, "oth").id == "other-33"
    with pytest.raises(ConfigError, match="demo-para-22, other-33"):
        query_sets.resolve_query_set(workspace, "Twice")
    with pytest.raises(ConfigError, match="demo-para-22, demo-diverse-11"):
        query_sets.resolve_query_set(workspace, "demo-")
    with pytest.raises(NotFoundError, match="demo-para-22"):
        query_sets.resolve_query_set(workspace, "nothing")
    assert [item.id for item in query_sets.list_query_sets(workspace)] == [
        "demo-para-22",
        "other-33",
        "demo-diverse-11",
    ]


def test_queries_have_ids_by_place_and_smaller_sets_are_nested(workspace: Workspace) -> None:
    made(workspace, "s-1", "S")
    append_jsonl(
        workspace.query_set("s-1") / "queries.jsonl",
        [{"document_id": "a", "queries": ["q1", "q2", "q3"]}, {"document_id": "b", "queries": ["r1"]}],
    )
    listed = [(query.id, query.text, query.document_id) for query in iter_queries(workspace, "s-1", 2)]
    assert listed == [("a-1", "q1", "a"), ("a-2", "q2", "a"), ("b-1", "r1", "b")]
    assert len(list(iter_queries(workspace, "s-1"))) == 4


def test_deleting_removes_all_of_it(workspace: Workspace) -> None:
    made(workspace, "s-1", "S")
    query_sets.delete(workspace, "s-1")
    assert query_sets.list_query_sets(workspace) == []
    assert list(workspace.queries.iterdir()) == []
    with pytest.raises(NotFoundError):
        query_sets.delete(workspace, "s-1")


def test_names_cannot_leave_the_workspace(workspace: Workspace) -> None:
    with pytest.raises(InputError):
        query_sets.load(workspace, "../corpora/x")


def test_jsonl_is_imported_in_corpus_order(workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path) -> None:
    corpus = make_corpus(3)
    path = tmp_path / "own.jsonl"
    path.write_text(
        '{"document_id": "d2", "queries": ["two a", "two  b", "two a"]}\n'
        "\n"
        '{"doc_id": "d0", "query": "zero"}\n'
        '{"_id": "d2", "question": "two c"}\n'
        '{"id": "nope", "query": "lost"}\n'
        '{"document_id": "d1"}\n'
        "not json\n"
        '{"document_id": "d1", "query": "  "}\n'
        '["d1"]\n',
        encoding="utf-8",
    )
    imported = import_queries(path, workspace, corpus.id)
    lines = list(query_sets.iter_lines(workspace, imported.query_set.id))
    assert [(line["document_id"], line["queries"]) for line in lines] == [
        ("d0", ["zero"]),
        ("d2", ["two a", "two b", "two c"]),
    ]
    assert imported.n_rejected == 6
    assert "Line 5: there is no document 'nope'." in imported.rejected
    assert any(reason.startswith("Line 7: broken JSON (Expecting value") for reason in imported.rejected)
    assert any("repeated" in reason for reason in imported.rejected)
    stored = query_sets.load(workspace, imported.query_set.id)
    assert (stored.kind, stored.complete, stored.n_documents, stored.n_queries) == ("unknown", True, 2, 4)
    assert (stored.n_failures, stored.per_doc, stored.corpus_hash) == (6, 3, corpus.content_hash)
    assert len(list(query_sets.iter_failures(workspace, stored.id))) == 6


def test_importing_the_same_again_gives_the_same_set(workspace: Workspace, make_corpus: CorpusMaker) -> None:
    corpus = make_corpus(2)
    pairs = [("d0", "a question"), ("d1", "another")]
    first = import_queries(pairs, workspace, corpus.id, "human").query_set
    assert import_queries(pairs, workspace, corpus.id, "human").query_set == first
    assert len(query_sets.list_query_sets(workspace)) == 1
    assert len(list(workspace.queries.iterdir())) == 1


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t"), ("csv.gz", ",")])
def test_tables(workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path, suffix: str, delimiter: str) -> None:
    corpus = make_corpus(2)
    lonely = "" if suffix == "tsv" else "lonely\n"  # quotes in TSV count only where all rows are equally wide
    text = f'query{delimiter}document_id\n"what, or\nwhich?"{delimiter}d1\nwhy{delimiter}d9\n{lonely}'
    path = tmp_path / f"q.{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    imported = import_queries(path, workspace, corpus.id)
    assert [query.text for query in iter_queries(workspace, imported.query_set.id)] == ["what, or which?"]
    rejected = ["Line 4: there is no document 'd9'."]
    rejected += ["Line 5: wrong number of cells (1 cell where 2 are expected)."] if lonely else []
    assert list(imported.rejected) == rejected


FOREIGN = [
    {"text": "not this", "passage_no": "d1", "ask": "one?"},
    {"text": "d0", "passage_no": "d0", "ask": ["a", "b"]},
]


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv", "q.tsv"])
def test_the_fields_of_an_import_can_be_chosen(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path, name: str
) -> None:
    corpus = make_corpus(2)
    path = tmp_path / name
    if name == "q.json":
        path.write_text(json.dumps(FOREIGN), encoding="utf-8")
    elif name == "q.jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in FOREIGN), encoding="utf-8")
    else:
        mark = "," if name == "q.csv" else "\t"
        rows = [["text", "Passage_No", "ask"], ["not this", "d1", "one?"], ["d0", "d0", "a"]]
        path.write_text("".join(mark.join(row) + "\n" for row in rows), encoding="utf-8")
    options = ImportOptions(query_field="ask", document_field="passage_no" if "json" in name else "PASSAGE_no")
    imported = import_queries(path, workspace, corpus.id, options=options)
    lines = {line["document_id"]: line["queries"] for line in query_sets.iter_lines(workspace, imported.query_set.id)}
    assert lines == {"d0": ["a", "b"] if "json" in name else ["a"], "d1": ["one?"]}
    assert imported.n_rejected == 0
    with pytest.raises(InputError, match=r"passage_on.*[Dd]id you mean [Pp]assage_[Nn]o\?"):
        import_queries(
            path, workspace, corpus.id, options=ImportOptions(query_field="ask", document_field="passage_on")
        )


def test_a_field_that_was_chosen_is_not_guessed_to_hold_the_other(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path
) -> None:
    path = tmp_path / "q.csv"
    path.write_text("text,question\nd0,why?\n", encoding="utf-8")
    options = ImportOptions(document_field="text")
    imported = import_queries(path, workspace, make_corpus(1).id, options=options)
    assert [query.text for query in iter_queries(workspace, imported.query_set.id)] == ["why?"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", b"", "no query to import"),
        ("q.jsonl", b'{"document_id": "x1", "query": "a"}\n{"document_id": "x2", "query": "b"}\n', "None of the 2"),
        ("q.csv", b"a,b\n1,2\n", "no query to import"),
        ("q.xlsx", b"PK", "are read from .jsonl"),
        ("q.json", b'[{"document_id": "d0", "query": "a"},', "JSON array cannot be read"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(
    workspace: Workspace, make_corpus: CorpusMaker, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    corpus = make_corpus(2)
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        import_queries(path, workspace, corpus.id)
    assert not workspace.queries.exists() or list(workspace.queries.iterdir()) == []


@pytest.mark.slow
def test_queries_that_came_with_the_documents(workspace: Workspace, tmp_path: Path) -> None:
    from cdp.corpus import read_documents, store

    path = tmp_path / "fairytales.jsonl"
    with gzip.open(shared("data/multiquery/fairytaleqa_train_en.jsonl.gz"), "rb") as lines:
        path.write_bytes(b"".join(islice(lines, 200)))
    with read_documents(path) as result:
        corpus = store(result, "fairytales", workspace)
        imported = import_queries(result.queries.items(), workspace, corpus.id, "fairytales human")
    assert imported.query_set.n_queries + imported.n_rejected == result.n_queries
    assert imported.query_set.n_documents > 150
    assert imported.query_set.language == "en"
