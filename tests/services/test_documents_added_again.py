"""Documents that are stored already: what this reading left out, and the queries that came with it, are not lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.workspace import Workspace
from cdp.corpus import load_manifest
from cdp.services import adding, corpora, queries, synthesis

DOCUMENT = {"_id": "1", "text": "Salt keeps food."}


def written(folder: Path, name: str, *rows: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_rejected_rows_are_reported_again(workspace: Workspace, tmp_path: Path) -> None:
    corpora.add(workspace, written(tmp_path, "first.jsonl", DOCUMENT))
    added = corpora.add(workspace, written(tmp_path, "second.jsonl", DOCUMENT, '{"_id": ', DOCUMENT))
    assert added.existed
    assert [(row.file, row.line) for row in added.corpus.rejected] == [("second.jsonl", 2), ("second.jsonl", 3)]
    assert added.corpus.n_rejected == 2
    assert corpora.resolve_corpus(workspace, added.corpus.id).n_rejected == 0


def test_queries_of_a_corpus_that_was_there_become_a_set_once(workspace: Workspace, tmp_path: Path) -> None:
    assert corpora.add(workspace, written(tmp_path, "plain.jsonl", DOCUMENT)).query_set is None
    file = written(tmp_path, "with queries.jsonl", {**DOCUMENT, "queries": ["Why salt?", "What keeps food?"]})
    made = [corpora.add(workspace, file) for _ in range(2)]
    assert made[0].query_set is not None
    assert made[0].query_set == made[1].query_set
    assert [q.n_queries for q in queries.list_query_sets(workspace)] == [2]


def test_query_sets_of_a_corpus_by_its_name(workspace: Workspace, tmp_path: Path) -> None:
    for name in ("salt", "pepper"):
        row = {"_id": "1", "text": f"About {name}.", "queries": [f"Why {name}?"]}
        corpora.add(workspace, written(tmp_path, f"{name}.jsonl", row))
    every = {q.corpus_id: q.id for q in queries.list_query_sets(workspace)}
    for corpus_id, query_set in every.items():
        for name in (corpus_id, corpus_id.rpartition("-")[0], corpus_id[:3]):
            assert [q.id for q in queries.list_query_sets(workspace, corpus=name)] == [query_set], name
    with pytest.raises(NotFoundError):
        queries.list_query_sets(workspace, corpus="sugar")


def test_a_place_that_cannot_be_written_and_no_queries_are_said(workspace: Workspace, tmp_path: Path) -> None:
    row = {**DOCUMENT, "queries": ["Why salt?"]}
    query_set = corpora.add(workspace, written(tmp_path, "salt.jsonl", row)).query_set
    assert query_set is not None
    blocked = written(tmp_path, "a file", "x") / "below"
    with pytest.raises(WorkspaceError, match="cannot be written"):
        synthesis.export(workspace, query_set, "beir", blocked)
    with pytest.raises(ConfigError, match="At least 1 query"):
        synthesis.export(workspace, query_set, "beir", tmp_path / "none", per_doc=0)
    with pytest.raises(ConfigError, match="No method is named"):
        queries.preview(workspace, "salt", "1", methods=[])


def test_a_folder_added_again_keeps_the_queries_and_judgments_of_what_stayed(
    workspace: Workspace, tmp_path: Path
) -> None:
    rows = [(i, f"The lighthouse {i} of harbour {i * 7} shines.", f"Where is lighthouse {i}?") for i in range(20)]
    folder = tmp_path / "sea"
    for i, text, _ in rows:
        written(folder, f"{i}.txt", text)
    asked = written(tmp_path, "asked.csv", "query,doc_id,split", *(f"{q},{i}.txt,dev" for i, _, q in rows))
    first = adding.add(workspace, folder, asked)
    assert first.benchmark is not None
    sets = {q.id for q in queries.list_query_sets(workspace)}

    written(folder, "3.txt", "Another text stands here now.")
    (folder / "4.txt").unlink()
    written(folder, "new.txt", "A new buoy was laid out.")
    again = adding.add(workspace, folder)
    assert again.corpus.previous == first.corpus.id
    assert (again.corpus.n_documents, again.project.id) == (20, first.project.id)
    assert "18 documents stayed, 2 are new or changed, 2 of the earlier version" in again.stated[0]
    [carried] = [q for q in queries.list_query_sets(workspace) if q.id not in sets]
    assert (carried.corpus_id, carried.n_queries, carried.kind) == (again.corpus.id, 18, "human")
    assert "18 queries; 2 are stale" in " ".join(again.stated)
    assert again.benchmark is not None
    assert again.benchmark.name == f"{first.benchmark.name}-v2"
    assert again.benchmark.judged == {"dev": 18}
    assert "2 new documents are not judged" in " ".join(again.stated)
    assert load_manifest(workspace, first.corpus.id).n_documents == 20, "the earlier version stays"
    assert adding.add(workspace, folder).existed
