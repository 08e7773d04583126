"""Documents that are stored already: what this reading left out, and the queries that came with it, are not lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, NotFoundError, WorkspaceError
from cdp.base.workspace import Workspace
from cdp.corpus import ReadOptions, iter_documents, load_manifest, looking
from cdp.query_sets import usable
from cdp.query_sets.given import AddOptions
from cdp.services import adding, corpora, queries
from tests.cli.support import run as cli
from tests.corpus.test_office_files import pdf

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
        queries.export(workspace, query_set, "beir", blocked)
    with pytest.raises(ConfigError, match="At least 1 query"):
        queries.export(workspace, query_set, "beir", tmp_path / "none", per_doc=0)
    with pytest.raises(ConfigError, match="No method is named"):
        queries.preview(workspace, "salt", "1", methods=[])


@pytest.mark.slow
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
    assert "18 documents stayed; new or changed: 2; of the earlier version changed or removed: 2." in again.stated[0]
    [carried] = [q for q in queries.list_query_sets(workspace) if q.id not in sets]
    assert (carried.corpus_id, carried.n_queries, carried.kind) == (again.corpus.id, 18, "human")
    assert "18 queries; 2 are stale" in " ".join(again.stated)
    assert again.benchmark is not None
    assert again.benchmark.name == f"{first.benchmark.name}-v2"
    assert again.benchmark.judged == {"dev": 18}
    assert "Not judged yet: 2 new documents." in " ".join(again.stated)
    assert load_manifest(workspace, first.corpus.id).n_documents == 20, "the earlier version stays"
    assert adding.add(workspace, folder).existed


def lights(folder: Path, n: int = 20) -> Path:
    for i in range(n):
        written(folder, f"{i}.txt", f"The lighthouse {i} of harbour {i * 7} shines.")
    return folder


@pytest.mark.slow
def test_what_was_carried_over_is_known_and_said(workspace: Workspace, tmp_path: Path) -> None:
    folder = lights(tmp_path / "sea")
    asked = written(tmp_path, "asked.csv", "query,doc_id,split", *(f"Where is {i}?,{i}.txt,train" for i in range(20)))
    [first] = adding.add(workspace, folder, asked).query_sets
    written(folder, "3.txt", "Another text stands here now.")
    second = adding.add(workspace, folder)
    [carried] = second.query_sets
    assert carried.name == f"{first.name} v2"
    assert not any("training queries" in lacking for lacking in second.missing)
    assert usable.origin(carried) == (
        f"Carried over from {first.id} to the new version of its documents: 19 queries, 1 stale."
    )
    assert "No new project: sea has the earlier version, and was joined." in second.stated
    (folder / "4.txt").unlink()
    [third] = adding.add(workspace, folder).query_sets
    assert third.name == f"{first.name} v3"


def test_queries_of_a_model_are_no_training_queries_of_people(workspace: Workspace, tmp_path: Path) -> None:
    rows = [{"_id": f"{i}", "text": f"The lighthouse {i} shines.", "queries": [f"Where is {i}?"]} for i in range(20)]
    added = adding.add(workspace, written(tmp_path, "x.jsonl", *rows), options=AddOptions(origin="llm"))
    assert added.query_sets
    assert any("No human training queries" in lacking for lacking in added.missing)


def test_a_name_means_the_newest_version(workspace: Workspace, tmp_path: Path) -> None:
    folder = lights(tmp_path / "sea")
    first = adding.add(workspace, folder).corpus
    written(folder, "new.txt", "A new buoy was laid out.")
    second = adding.add(workspace, folder).corpus
    assert corpora.resolve_corpus(workspace, "sea").id == second.id
    assert corpora.resolve_corpus(workspace, first.id).id == first.id
    assert corpora.resolve_corpus(workspace, first.id[:-2]).id == first.id
    assert looking.titles([second, first]) == {
        second.id: "sea (newest version)",
        first.id: f"sea (earlier version of {first.created[:10]}, 20 documents)",
    }
    listed = json.loads(cli("corpus", "list", "--json").stdout)
    assert {row["id"]: (row["name"], row["title"]) for row in listed} == {
        manifest.id: ("sea", looking.titles([first, second])[manifest.id]) for manifest in (first, second)
    }


def test_passages_that_stayed_are_passages(workspace: Workspace, tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {n} tells of the lighthouse {n} and its keepers at sea." for n in range(60))
    folder = tmp_path / "sea"
    written(folder, "a.txt", text)
    options = ReadOptions.from_dict({"passages": 50})
    adding.add(workspace, folder, reading=options)
    written(folder, "b.txt", "A new buoy was laid out.")
    assert "passages stayed" in adding.add(workspace, folder, reading=options).stated[0]


def test_texts_that_repeat_another_one_are_announced(workspace: Workspace, tmp_path: Path) -> None:
    folder = lights(tmp_path / "sea", 5)
    for name in ("copy", "other copy"):
        written(folder, f"{name}.txt", "The lighthouse 2 of harbour 14 shines.")
    added = adding.add(workspace, folder)
    assert added.left_out == {"documents that repeat another one": 2}
    assert looking.problem(added.corpus) == ""


def test_rows_are_cut_only_where_a_length_is_named(workspace: Workspace, tmp_path: Path) -> None:
    text = " ".join(f"Sentence {n} of a long note about lighthouses at sea." for n in range(100))
    rows = [{"_id": "a", "title": "Sea", "text": text, "queries": ["What shines?"]}, {"_id": "b", "text": "A buoy."}]
    path = written(tmp_path, "long.jsonl", *rows)
    assert json.loads(cli("corpus", "add", str(path), "--json").stdout)["n_documents"] == 2
    added = json.loads(cli("corpus", "add", str(path), "--passages", "100", "--json").stdout)
    manifest = load_manifest(workspace, added["id"])
    documents = list(iter_documents(workspace, manifest.id))
    assert [document.id for document in documents[:2] + documents[-1:]] == ["a#1", "a#2", "b"]
    assert {document.title for document in documents[:-1]} == {"Sea"}
    assert max(len(document.text.split()) for document in documents) <= 125
    assert (manifest.unit, manifest.n_cut, manifest.n_queries) == ("passage", 1, 0)
    assert any("1 query of rows that were cut" in note for note in manifest.notes)
    assert added["n_documents"] > 8


@pytest.mark.parametrize(
    ("title", "body"),
    [("Subject", "Description"), ("name", "Abstract"), ("Titel", "Body Text"), ("Bezeichnung", "full_text"),
     ("Betreff", "Antwort"), ("TITLE", "Abschnitt")],
)  # fmt: skip
def test_columns_are_known_by_common_names(workspace: Workspace, tmp_path: Path, title: str, body: str) -> None:
    path = written(tmp_path, "x.jsonl", {"Doc ID": "7", title: "Light", body: "It shines."})
    [document] = iter_documents(workspace, corpora.add(workspace, path).corpus.id)
    assert (document.id, document.title, document.text) == ("7", "Light", "It shines.")


@pytest.mark.slow
def test_a_wrong_password_is_told_from_none(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    pdf(tmp_path / "r" / "secret.pdf", password="geheim")
    pdf(tmp_path / "r" / "other.pdf", password="anders")
    assert adding.examine(workspace, tmp_path / "r").documents.locked == ("other.pdf", "secret.pdf")
    added = adding.add(workspace, tmp_path / "r", passwords=["geheim"])
    assert added.not_read == ["other.pdf: the given password does not open it"]
    assert {document.id.split("#")[0] for document in iter_documents(workspace, added.corpus.id)} == {"secret.pdf"}


def test_a_new_file_that_repeats_a_document_with_queries_is_the_repeat(workspace: Workspace, tmp_path: Path) -> None:
    folder = lights(tmp_path / "sea")
    asked = written(tmp_path, "asked.csv", "query,doc_id,split", *(f"Where is {i}?,{i}.txt,train" for i in range(20)))
    adding.add(workspace, folder, asked)
    written(folder, "0 copy of 7.txt", "The lighthouse 7 of harbour 49 shines.")
    written(folder, "new.txt", "A new buoy was laid out.")
    again = adding.add(workspace, folder)
    assert again.query_sets[0].n_queries == 20
    assert [rejected.file for rejected in again.corpus.rejected] == ["0 copy of 7.txt"]
