"""Every family's own files, in the layout in which they are published, become the same kind of benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import add_benchmark, load_benchmark, manifests, remove_benchmark
from cdp.benchmarks.download import download_benchmark
from cdp.benchmarks.registry import find
from cdp.benchmarks.schemas.records import rows
from cdp.corpus.options import MAX_LINE_CHARACTERS
from tests.benchmarks import published
from tests.benchmarks.folders import write_benchmark
from tests.benchmarks.published import put
from tests.support import shared


def stored(workspace: Workspace, name: str, folder: Path) -> Path:
    entry = find(name)
    assert entry is not None
    _, existed = download_benchmark(entry, workspace, folder=folder)
    assert not existed
    return workspace.benchmarks / name


@pytest.mark.slow
@pytest.mark.parametrize("publish", [published.beir_jsonl, published.beir_parquet])
def test_beir_from_json_lines_and_from_parquet(workspace: Workspace, tmp_path: Path, publish: object) -> None:
    collection, qrels = publish()  # type: ignore[operator]
    put(tmp_path / "BeIR" / "scifact", collection)
    put(tmp_path / "BeIR" / "scifact-qrels", qrels)
    found = load_benchmark(stored(workspace, "scifact", tmp_path))
    assert found.split == "test"
    assert found.document_ids == ["d1", "d2", "d3"]
    assert found.documents[0] == "Tides The moon pulls the water of the sea."
    assert found.query_ids == ["q1", "q2"]
    assert found.qrels == {"q1": {"d1": 2}, "q2": {"d3": 1, "d2": 0}}
    manifest = manifests.read(found.folder)
    assert manifest.counts["unjudged_queries"] == 1
    assert any("Documents here: 3; stated by the paper: 5,183" in note for note in manifest.notes)
    assert found.licence.startswith("cc-by-sa-4.0 (hub card of BEIR")


def test_repositories_may_lie_in_one_folder_too(workspace: Workspace, tmp_path: Path) -> None:
    collection, qrels = published.beir_jsonl()
    folder = put(tmp_path / "all", {**collection, **qrels})
    assert load_benchmark(stored(workspace, "scifact", folder)).n_documents == 3


def test_a_forum_of_cqadupstack(workspace: Workspace, tmp_path: Path) -> None:
    folder = put(tmp_path / "forum", published.mteb_forum())
    found = load_benchmark(stored(workspace, "cqadupstack-android", folder))
    assert found.qrels["q2"] == {"d3": 1, "d2": 0}


def test_nanobeir_has_no_grades_no_titles_and_a_split_called_train(workspace: Workspace, tmp_path: Path) -> None:
    found = load_benchmark(stored(workspace, "nanoscifact", put(tmp_path / "n", published.nano())))
    assert found.split == "test"
    assert found.qrels == {"q1": {"d1": 1}, "q2": {"d3": 1}}
    assert found.documents[0] == "The moon pulls the water of the sea."


def test_bright_excludes_documents_and_not_available_is_none(workspace: Workspace, tmp_path: Path) -> None:
    found = load_benchmark(stored(workspace, "bright-biology", put(tmp_path / "BRIGHT", published.bright())))
    assert found.document_ids == ["moon/a_1.txt", "moon/b_2.txt", "bees/c_3.txt", "bees/d_4.txt"]
    assert found.documents[0] == "Tides follow the moon."
    assert found.excluded == {"1": ("bees/d_4.txt", "moon/b_2.txt")}
    assert found.qrels == {"0": {"moon/a_1.txt": 1}, "1": {"bees/c_3.txt": 1}}
    assert manifests.read(found.folder).counts["repeated_documents"] == 1


def test_bright_counts_what_is_excluded_without_not_available(workspace: Workspace, tmp_path: Path) -> None:
    target = stored(workspace, "bright-biology", put(tmp_path / "b", published.bright()))
    assert manifests.read(target).counts["exclusions"] == 2


def test_miracl_passages_have_titles_and_judgments_four_columns(workspace: Workspace, tmp_path: Path) -> None:
    topics, corpus = published.miracl()
    put(tmp_path / "miracl", topics)
    put(tmp_path / "miracl-corpus", corpus)
    found = load_benchmark(stored(workspace, "miracl-ko", tmp_path))
    assert found.split == "dev"
    assert found.document_ids == ["7#0", "7#1", "9#0"]
    assert found.documents[0] == "조석 달이 바닷물을 끌어당긴다."
    assert found.queries == ["바다는 왜 오르내리나요?", "벌은 어떻게 말하나요?"]
    assert found.qrels == {"0": {"7#0": 1, "7#1": 0}, "3": {"9#0": 1}}
    assert manifests.read(found.folder).language == "ko"


@pytest.mark.parametrize("with_collection", [False, True])
def test_trec_dl_keeps_its_grades_and_only_the_judged_queries(
    workspace: Workspace, tmp_path: Path, with_collection: bool
) -> None:
    passages, elsewhere = published.trec_dl()
    put(tmp_path, elsewhere)
    if with_collection:
        rows = "".join(f"{i}\tpassage {i} on {what}\n" for i, what in published.PASSAGES)
        (tmp_path / "collection.tsv").write_text(rows)
    else:
        put(tmp_path / "BeIR" / "msmarco", passages)
    found = load_benchmark(stored(workspace, "trec-dl-2019", tmp_path))
    assert found.query_ids == ["156493", "1110199"]
    assert found.qrels["156493"] == {"1": 3, "2": 1, "3": 0}
    assert found.documents[0] == "passage 1 on goldfish"
    assert found.relevant_from == 2
    assert found.excluded == {}  # a passage has a query's number by chance
    assert manifests.read(found.folder).counts["unjudged_queries"] == 1


@pytest.mark.parametrize("as_text", [False, True])
def test_2wiki_paragraphs_become_documents_once_each(workspace: Workspace, tmp_path: Path, as_text: bool) -> None:
    found = load_benchmark(stored(workspace, "2wikimultihopqa", put(tmp_path, published.two_wiki(as_text=as_text))))
    assert found.documents == [
        "North Sea It is shallow. It is cold.",
        "Black Sea It is deep.",
        "Tea Hot.",
        "Tea A plant of China.",
        "China A country.",
    ]
    assert found.qrels == {"a1": {"p1": 1, "p2": 1}, "a2": {"p5": 1}}


def test_2wiki_as_hotpotqa_lays_it_out_in_parquet(workspace: Workspace, tmp_path: Path) -> None:
    row = {
        "id": "a1",
        "question": "Which is deeper?",
        "context": {"title": ["North Sea", "Black Sea"], "sentences": [["Shallow."], ["Deep."]]},
        "supporting_facts": {"title": ["Black Sea"], "sent_id": [0]},
    }
    folder = put(tmp_path, {"data/validation-00000-of-00001.parquet": published.parquet([row])})
    assert load_benchmark(stored(workspace, "2wikimultihopqa", folder)).qrels == {"a1": {"p2": 1}}


def test_musique_supporting_paragraphs_are_relevant(workspace: Workspace, tmp_path: Path) -> None:
    found = load_benchmark(stored(workspace, "musique", put(tmp_path, published.musique())))
    assert found.documents == ["Green An album by Steve.", "Steve Plays guitar.", "Blue A colour."]
    assert found.qrels == {"2hop__1_2": {"p1": 1, "p2": 1}, "3hop1__3": {"p3": 1}}


@pytest.mark.parametrize("converted", [False, True])
def test_novelhopqa_passages_are_told_apart_by_book(workspace: Workspace, tmp_path: Path, converted: bool) -> None:
    files = published.novelhop()
    if converted:  # as the hub itself converts a repository, at the revision refs/convert/parquet
        files = {f"default/{path[5:10]}/0000.parquet": data for path, data in files.items()}
    found = load_benchmark(stored(workspace, "novelhopqa", put(tmp_path, files)))
    assert found.document_ids == ["the-sea#1", "the-sea#2", "the-hill#1"]
    assert found.query_ids == ["hop_1-1", "hop_1-2", "hop_1-3", "hop_2-1", "hop_3-1", "hop_4-1"]
    assert found.qrels["hop_4-1"] == {"the-sea#1": 1}


@pytest.mark.slow
def test_a_json_file_may_be_one_long_line(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(json.dumps([{"question": "x" * MAX_LINE_CHARACTERS}, {"question": "y"}]))
    assert [len(row["question"]) for row in rows(path)] == [MAX_LINE_CHARACTERS, 1]


def test_a_quoted_passage_keeps_its_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "hop_1.csv"
    path.write_text('book,context,question\nThe Sea,"They sailed.\n\nAt dawn.",When?\n\nThe Hill,He climbed.,Who?\n')
    assert [row["context"] for row in rows(path)] == ["They sailed.\n\nAt dawn.", "He climbed."]


def test_what_is_missing_is_named(workspace: Workspace, tmp_path: Path) -> None:
    topics, _ = published.miracl()
    put(tmp_path / "miracl", topics)
    with pytest.raises(InputError) as caught:
        stored(workspace, "miracl-ko", tmp_path)
    assert "no corpus (miracl-corpus-v1.0-ko/docs-*.jsonl.gz)" in str(caught.value)
    assert "qrels" not in str(caught.value)
    assert not (workspace.benchmarks / "miracl-ko").exists()


@pytest.mark.parametrize(
    ("file", "data", "said"),
    [
        ("scifact-qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\thigh\n", "The grade 'high' is not a whole"),
        ("scifact-qrels/test.tsv", b"query-id\tcorpus-id\tscore\n", "There is no judgment in it"),
        ("scifact-qrels/test.tsv", b"query-id\tcorpus-id\tscore\nz\td1\t1\n", "Not one query of the source is judged"),
        ("scifact/corpus.jsonl.gz", b"not gzip", "corpus.jsonl.gz"),
        ("scifact/queries.jsonl.gz", published.lines([{"_id": "q1"}], packed=True), "There is no field 'text'"),
    ],
)
def test_a_damaged_source_is_refused_and_leaves_nothing(
    workspace: Workspace, tmp_path: Path, file: str, data: bytes, said: str
) -> None:
    collection, qrels = published.beir_jsonl()
    put(tmp_path / "scifact", collection)
    put(tmp_path / "scifact-qrels", qrels)
    (tmp_path / file).write_bytes(data)
    with pytest.raises(InputError) as caught:
        stored(workspace, "scifact", tmp_path)
    assert said in str(caught.value)
    assert not (workspace.benchmarks / "scifact").exists()


def test_judgments_of_documents_that_the_corpus_lacks_are_kept_and_told(workspace: Workspace, tmp_path: Path) -> None:
    collection, qrels = published.beir_jsonl()
    folder = put(tmp_path / "s", {**collection, **qrels, "test.tsv": published.TEST + b"q1\tgone\t1\n"})
    found = load_benchmark(stored(workspace, "scifact", folder))
    assert found.qrels["q1"] == {"d1": 2, "gone": 1}
    assert any("'gone'" in warning for warning in found.warnings)
    notes = manifests.read(found.folder).notes
    assert "Judged documents that the corpus lacks; they count as never retrieved: 1." in notes


def test_a_query_that_comes_twice_is_counted(workspace: Workspace, tmp_path: Path) -> None:
    forum = published.mteb_forum()
    forum["queries.jsonl"] += published.lines([{"_id": "q1", "text": "another text"}])
    target = stored(workspace, "cqadupstack-unix", put(tmp_path / "forum", forum))
    assert load_benchmark(target).queries[0] == "why does the sea rise"
    assert "Queries with the id of an earlier one, left out: 1." in manifests.read(target).notes


def test_the_manifest_holds_the_hash_of_every_file(workspace: Workspace, tmp_path: Path) -> None:
    folder = put(tmp_path / "n", published.nano())
    target = stored(workspace, "nanoscifact", folder)
    value = json.loads((target / "manifest.json").read_text(encoding="utf-8"))
    assert value["entry"] == "nanoscifact"
    assert value["source"] == {"kind": "folder", "folder": str(folder)}
    assert [len(file["sha256"]) for file in value["files"]] == [64, 64, 64]


def test_a_name_that_is_taken_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    folder = put(tmp_path / "n", published.nano())
    entry = find("nanoscifact")
    assert entry is not None
    stored(workspace, "nanoscifact", folder)
    assert download_benchmark(entry, workspace, folder=folder)[1]
    remove_benchmark("nanoscifact", workspace)
    add_benchmark(write_benchmark(tmp_path / "nanoscifact"), workspace)
    with pytest.raises(ConfigError, match="another benchmark called 'nanoscifact'"):
        download_benchmark(entry, workspace, folder=folder)


@pytest.mark.slow
def test_the_whole_scifact_has_the_paper_s_sizes(workspace: Workspace) -> None:
    folder = shared("data/scifact")
    found = load_benchmark(stored(workspace, "scifact", folder))
    assert (found.n_documents, found.n_queries) == (5183, 300)
    assert sum(grade > 0 for grades in found.qrels.values() for grade in grades.values()) == 339
    assert found.documents_hash == load_benchmark(folder).documents_hash
    assert manifests.read(found.folder).notes == ("Queries without a judgment in this split, left out: 809.",)
