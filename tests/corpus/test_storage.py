"""Corpora in the workspace: once per content, whole or not at all, found by name, read page by page."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError, NotFoundError, WorkspaceError
from cdp.base.records import Document
from cdp.base.workspace import Workspace, sha256_file
from cdp.corpus import (
    CorpusManifest,
    ReadOptions,
    delete_corpus,
    iter_documents,
    list_corpora,
    load_manifest,
    open_corpus,
    read_documents,
    resolve_corpus,
    store,
)
from tests.corpus.files import ROWS, jsonl

N = 16_500


def stored(workspace: Workspace, path: Path, name: str = "My corpus") -> CorpusManifest:
    with read_documents(path) as result:
        return store(result, name, workspace)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, CorpusManifest]:
    """A workspace with 16,500 documents in three row groups, to be read only."""
    folder = tmp_path_factory.mktemp("large")
    workspace = Workspace(folder / "workspace")
    rows = ({"_id": f"d{i}", "title": f"Title {i % 7}", "text": f"Text number {i}"} for i in range(N))
    return workspace, stored(workspace, jsonl(folder / "many.jsonl", rows), "many")


def test_a_second_import_may_say_the_licence_and_one_that_says_none_changes_nothing(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = jsonl(tmp_path / "docs.jsonl", ROWS)
    assert stored(workspace, path).licence == ""
    with read_documents(path, options=ReadOptions(licence="CC BY 4.0")) as result:
        manifest = store(result, "again", workspace)
    assert manifest.licence == "CC BY 4.0"
    assert manifest == load_manifest(workspace, manifest.id)
    assert stored(workspace, path).licence == "CC BY 4.0"


def test_the_manifest_tells_what_was_read(workspace: Workspace, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "docs.jsonl", [*ROWS, "{", {"_id": "a", "text": "again"}])
    with read_documents(path) as result:
        manifest = store(result, "  Letters & more ", workspace, source="upload.jsonl", licence="CC0")
    assert manifest == load_manifest(workspace, manifest.id)
    assert manifest.id == f"letters-more-{manifest.content_hash[:8]}"
    assert (manifest.name, manifest.licence, manifest.source) == ("Letters & more", "CC0", "upload.jsonl")
    assert manifest.source_sha256 == sha256_file(path)
    assert (manifest.n_documents, manifest.n_rejected) == (3, 2)
    assert [(r.line, r.kind) for r in manifest.rejected] == [(4, "broken JSON"), (5, "duplicate id")]
    lengths = [len(row["text"]) for row in ROWS]
    assert (manifest.characters.min, manifest.characters.max) == (min(lengths), max(lengths))
    assert manifest.characters.total == sum(lengths)
    assert manifest.words.median == 3
    assert manifest.options["encoding"] == "auto"
    assert sum(manifest.languages.values()) == pytest.approx(1)


def test_the_same_content_is_stored_once_whatever_its_form(workspace: Workspace, tmp_path: Path) -> None:
    first = stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS))
    again = stored(workspace, jsonl(tmp_path / "b.jsonl.gz", ROWS), "another name")
    assert again == first
    assert len(list_corpora(workspace)) == 1
    reordered = stored(workspace, jsonl(tmp_path / "c.jsonl", ROWS[::-1]))
    assert reordered.id != first.id


def test_the_hash_sees_where_a_field_ends(workspace: Workspace, tmp_path: Path) -> None:
    one = stored(workspace, jsonl(tmp_path / "a.jsonl", [{"_id": "1", "title": "ab", "text": "c"}]))
    two = stored(workspace, jsonl(tmp_path / "b.jsonl", [{"_id": "1", "title": "a", "text": "bc"}]))
    assert one.content_hash != two.content_hash


def test_a_result_can_be_used_after_it_was_stored(workspace: Workspace, tmp_path: Path) -> None:
    with read_documents(jsonl(tmp_path / "a.jsonl", ROWS), scratch=workspace.uploads) as result:
        manifest = store(result, "x", workspace)
        assert len(list(result.documents)) == 3
    assert len(list(iter_documents(workspace, manifest.id))) == 3
    assert sorted(p.name for p in workspace.corpus(manifest.id).iterdir()) == ["documents.parquet", "manifest.json"]


def test_names_of_any_script_become_ids(workspace: Workspace, tmp_path: Path) -> None:
    assert stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS), "日本語 コーパス").id.startswith("日本語-コーパス-")
    assert stored(workspace, jsonl(tmp_path / "b.jsonl", ROWS[:1]), "///").id.startswith("corpus-")


def _store_together(root: str, path: str, name: str, both_ready: Barrier) -> None:
    both_ready.wait(60)
    with read_documents(Path(path)) as result:
        store(result, name, Workspace(Path(root)))


@pytest.mark.slow
def test_processes_that_store_the_same_content_make_one_corpus(workspace: Workspace, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", ({"_id": i, "text": f"text {i}"} for i in range(500)))
    context = multiprocessing.get_context("spawn")
    both_ready = context.Barrier(2)
    child = context.Process(target=_store_together, args=(str(workspace.root), str(path), "theirs", both_ready))
    child.start()
    _store_together(str(workspace.root), str(path), "ours", both_ready)
    child.join(60)
    assert child.exitcode == 0
    assert len(list_corpora(workspace)) == 1


def test_what_a_killed_process_left_behind_is_no_corpus(workspace: Workspace, tmp_path: Path) -> None:
    leftover = workspace.corpora / ".incoming-killed"
    leftover.mkdir(parents=True)
    leftover.with_name(".incoming-killed.lock").touch()  # and nobody holds it
    (leftover / "manifest.json").write_text("{}", encoding="utf-8")
    (workspace.corpora / ".incoming-killed-earlier.lock").touch()  # killed before it made its folder
    assert list_corpora(workspace) == []
    stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS))
    assert not list(workspace.corpora.glob(".incoming-*"))


@pytest.mark.slow
def test_documents_come_in_order_from_anywhere(large: tuple[Workspace, CorpusManifest]) -> None:
    workspace, many = large
    assert [d.id for d in iter_documents(workspace, many.id)] == [f"d{i}" for i in range(N)]
    for start, limit in ((0, 1), (8191, 3), (N - 2, 10), (N, 5), (5, 0), (16_380, None)):
        end = N if limit is None else min(N, start + limit)
        expected = [f"d{i}" for i in range(start, end)]
        assert [d.id for d in iter_documents(workspace, many.id, start=start, limit=limit)] == expected
    assert open_corpus(workspace, many.id).table(8190, 4).column("id").to_pylist() == [
        f"d{i}" for i in range(8190, 8194)
    ]
    assert open_corpus(workspace, many.id).table(N, 4).num_rows == 0
    table = open_corpus(workspace, many.id).table(columns=["text", "id"], limit=2)
    assert table.to_pydict() == {"text": ["Text number 0", "Text number 1"], "id": ["d0", "d1"]}


@pytest.mark.slow
def test_documents_by_id_and_by_content(large: tuple[Workspace, CorpusManifest]) -> None:
    workspace, many = large
    found = open_corpus(workspace, many.id).get(["d16499", "d3", "absent", "d3"])
    assert list(found) == ["d16499", "d3"]
    assert found["d3"] == Document("d3", "Text number 3", "Title 3")
    corpus = open_corpus(workspace, many.id)
    assert [d.id for d in corpus.search("NUMBER 1649")] == ["d1649", *(f"d{i}" for i in range(16490, N))]
    assert len(corpus.search("title 3", limit=7)) == 7
    assert corpus.search(".*") == []


def test_a_corpus_is_found_by_id_name_or_beginning(workspace: Workspace, tmp_path: Path) -> None:
    fairy = stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS), "Fairy tales")
    fact = stored(workspace, jsonl(tmp_path / "b.jsonl", ROWS[:2]), "Facts")
    facts2 = stored(workspace, jsonl(tmp_path / "c.jsonl", ROWS[:1]), "Facts two")
    for given in (fairy.id, "Fairy tales", "fairy TALES", "fairy-t", "Fairy t"):
        assert resolve_corpus(workspace, given) == fairy
    assert resolve_corpus(workspace, "facts") == fact, "a whole name is before a beginning"
    with pytest.raises(ConfigError, match="more than one corpus") as caught:
        resolve_corpus(workspace, "fac")
    assert fact.id in str(caught.value)
    assert facts2.id in str(caught.value)
    for given in ("nothing", "", " "):
        with pytest.raises(NotFoundError, match=fairy.id):
            resolve_corpus(workspace, given)


def test_the_newest_stands_first(workspace: Workspace, tmp_path: Path) -> None:
    first = stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS))
    second = stored(workspace, jsonl(tmp_path / "b.jsonl", ROWS[:2]))
    path = workspace.corpus(first.id) / "manifest.json"
    path.write_text(path.read_text(encoding="utf-8").replace(first.created, "2001-01-01T00:00:00+00:00"), "utf-8")
    assert [m.id for m in list_corpora(workspace)] == [second.id, first.id]


@pytest.mark.slow
def test_deleting(workspace: Workspace, large: tuple[Workspace, CorpusManifest]) -> None:
    source, many = large
    shutil.copytree(source.root, workspace.root)
    reading = iter_documents(workspace, many.id)
    assert next(reading).id == "d0"
    delete_corpus(workspace, many.id)
    assert list_corpora(workspace) == []
    assert sum(1 for _ in reading) == N - 1, "who is reading reads on"
    for act in (delete_corpus, load_manifest, open_corpus):
        with pytest.raises(NotFoundError, match="no corpus yet"):
            act(workspace, many.id)
    with pytest.raises(InputError):
        delete_corpus(workspace, "../escape")


def test_damage_is_named_and_does_not_hide_the_others(workspace: Workspace, tmp_path: Path) -> None:
    broken = stored(workspace, jsonl(tmp_path / "a.jsonl", ROWS))
    whole = stored(workspace, jsonl(tmp_path / "b.jsonl", ROWS[:2]))
    path = workspace.corpus(broken.id)
    value = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    del value["characters"]
    (path / "manifest.json").write_text(json.dumps(value), encoding="utf-8")
    (path / "documents.parquet").write_bytes(b"PAR1")
    assert [m.id for m in list_corpora(workspace)] == [whole.id]
    with pytest.raises(WorkspaceError, match="damaged"):
        load_manifest(workspace, broken.id)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        open_corpus(workspace, broken.id)
