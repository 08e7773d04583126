"""Benchmarks are read strictly: what fits is read whole, what does not gets one clear sentence."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from cdp.base.errors import InputError, NotFoundError
from cdp.base.workspace import Workspace
from cdp.benchmarks import (
    add_benchmark,
    choose_split,
    describe,
    list_benchmarks,
    load_benchmark,
    remove_benchmark,
    resolve_benchmark,
)
from cdp.benchmarks.benchmark import qrels_files
from tests.benchmarks.folders import DOCUMENTS, QRELS, QUERIES, write_benchmark
from tests.support import shared


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "small")


def failure(folder: Path, split: str = "") -> str:
    with pytest.raises(InputError) as caught:
        load_benchmark(folder, split)
    return str(caught.value)


def test_reads_documents_queries_and_judgments(folder: Path) -> None:
    found = load_benchmark(folder)
    assert (found.name, found.split) == ("small", "test")
    assert found.document_ids == ["d1", "d2", "d3", "d4"]
    assert found.documents[0] == "Tides The moon pulls the water of the sea towards itself."
    assert found.documents[1] == "Bakers let dough rise before it goes into the oven."
    assert found.query_ids == ["q1", "q2", "q3"]
    assert found.qrels["q1"] == {"d1": 2, "d2": 0}
    assert found.warnings == ()


def test_compressed_files_and_trec_judgments_give_the_same_benchmark(folder: Path, tmp_path: Path) -> None:
    trec = "q1 0 d1 2\nq1 0 d2 0\nq2\t0\td3\t1\nq3 0 d4 1.0\n"
    other = write_benchmark(tmp_path / "other", qrels={"test": trec}, compressed=True)
    first, second = load_benchmark(folder), load_benchmark(other)
    assert second.qrels == first.qrels
    assert second.documents == first.documents
    assert second.documents_hash == first.documents_hash


def test_byte_order_marks_and_windows_line_breaks(folder: Path) -> None:
    expected = load_benchmark(folder)
    for path in [folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels" / "test.tsv"]:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_benchmark(folder).qrels == expected.qrels
    assert load_benchmark(folder).hash == expected.hash


def test_only_the_queries_of_the_split_are_taken(tmp_path: Path) -> None:
    header = "query-id\tcorpus-id\tscore\n"
    folder = write_benchmark(tmp_path / "b", qrels={"dev": header + "q2\td3\t1\n", "train": header + "q1\td1\t1\n"})
    assert list(qrels_files(folder)) == ["dev", "train"]
    assert load_benchmark(folder, "dev").query_ids == ["q2"]
    assert "several splits" in failure(folder)
    assert "dev, train" in failure(folder, "test")


def test_the_hash_follows_the_content(folder: Path, tmp_path: Path) -> None:
    first = load_benchmark(folder)
    again = load_benchmark(write_benchmark(tmp_path / "copy", compressed=True))
    changed = load_benchmark(write_benchmark(tmp_path / "c", qrels={"test": QRELS.replace("d1\t2", "d1\t1")}))
    longer = load_benchmark(write_benchmark(tmp_path / "l", documents=[*DOCUMENTS, {"_id": "x", "text": "More."}]))
    assert first.hash == again.hash
    assert len({first.hash, changed.hash, longer.hash}) == 3
    assert first.documents_hash == changed.documents_hash != longer.documents_hash


@pytest.mark.parametrize(
    ("missing", "said"),
    [("corpus.jsonl", "corpus.jsonl"), ("queries.jsonl", "queries.jsonl"), ("qrels/test.tsv", "qrels/<split>.tsv")],
)
def test_a_missing_part_is_named(folder: Path, missing: str, said: str) -> None:
    (folder / missing).unlink()
    assert said in failure(folder)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "no folder" in failure(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("corpus.jsonl", '{"_id": "d5", "text": "cut', "corpus.jsonl, line 5: Broken JSON"),
        ("corpus.jsonl", '["d5"]', "corpus.jsonl, line 5: Not an object"),
        ("corpus.jsonl", '{"text": "no id"}', 'corpus.jsonl, line 5: There is no "_id"'),
        ("corpus.jsonl", '{"_id": "d5"}', "corpus.jsonl, line 5: 'd5' has no \"text\""),
        ("corpus.jsonl", '{"_id": "d5", "text": "x", "title": ["T"]}', "line 5: The title of 'd5' is not text"),
        ("corpus.jsonl", '{"_id": "d5", "text": "x", "title": true}', "line 5: The title of 'd5' is not text"),
        ("corpus.jsonl", '{"_id": "d2", "text": "x"}', "corpus.jsonl, line 5: The id 'd2' was already used in line 2"),
        ("queries.jsonl", '{"_id": "q9", "text": "  "}', "queries.jsonl, line 4: The text of query 'q9' is empty"),
        ("qrels/test.tsv", "q1\td3\thigh", "test.tsv, line 6: The grade 'high' is not a whole number"),
        ("qrels/test.tsv", "q1\td3\t0.5", "test.tsv, line 6: The grade '0.5' is not a whole number"),
        ("qrels/test.tsv", "q1\td3", "test.tsv, line 6: This is not a query id"),
        ("qrels/test.tsv", "q1\td1\t1", "test.tsv, line 6: 'q1' and 'd1' were judged 2 before, here 1"),
        ("qrels/test.tsv", "q1\td99\t1", "test.tsv: The judgments name 1 document id that corpus.jsonl does not have"),
        ("qrels/test.tsv", "q77\td1\t1", "('q77' in line 6)"),
    ],
)
def test_a_bad_line_is_named_with_its_file_and_number(folder: Path, file: str, line: str, said: str) -> None:
    with open(folder / file, "a", encoding="utf-8") as opened:
        opened.write(line + "\n")
    assert said in failure(folder)


def test_a_title_may_be_a_number_or_null(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b")
    lines = [{"_id": "d1", "title": 1984, "text": "x"}, {"_id": "d2", "title": None, "text": "y"}]
    lines.append({"_id": "d3", "title": 1.5, "text": "z"})
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert list(load_benchmark(folder, allow_unknown=True).documents) == ["1984 x", "y", "1.5 z"]


@pytest.mark.parametrize("first", ["q1\td1\thigh", "q1\td1\t0.5", "q1\td1\t1\t"])
def test_a_bad_first_line_is_not_taken_for_a_header(tmp_path: Path, first: str) -> None:
    folder = write_benchmark(tmp_path / "b", qrels={"test": f"{first}\nq2\td3\t1\n"})
    assert "test.tsv, line 1: " in failure(folder)


@pytest.mark.parametrize("header", ["query-id\tcorpus-id\tscore\n", "qid 0 docid relevance\n", ""])
def test_a_header_may_be_there_or_not(tmp_path: Path, header: str) -> None:
    folder = write_benchmark(tmp_path / "b", qrels={"test": f"{header}q2\td3\t1\n"})
    assert load_benchmark(folder).qrels == {"q2": {"d3": 1}}


def test_many_bad_lines_are_reported_together(folder: Path) -> None:
    with open(folder / "corpus.jsonl", "a", encoding="utf-8") as opened:
        opened.write("not json\n" * 35)
    said = failure(folder)
    assert "35 lines cannot be used" in said
    assert "line 24:" in said
    assert "line 25:" not in said
    assert "15 more" in said


def test_bytes_that_are_not_utf8_are_placed(folder: Path) -> None:
    path = folder / "corpus.jsonl"
    path.write_bytes(path.read_bytes() + b'{"_id": "d5", "text": "caf\xe9"}\n')
    said = failure(folder)
    assert "line 5" in said
    assert "0xE9" in said


@pytest.mark.parametrize("file", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_an_empty_file_is_refused(folder: Path, file: str) -> None:
    (folder / file).write_bytes(b"\n\n")
    assert "There is no" in failure(folder)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", compressed=True)
    path = folder / "corpus.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-12])
    assert "corpus.jsonl.gz" in failure(folder)


def test_unknown_ids_become_a_warning_where_they_are_allowed(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", qrels={"test": QRELS + "q1\tgone\t1\nnobody\td1\t1\n"})
    found = load_benchmark(folder, allow_unknown=True)
    assert found.query_ids == ["q1", "q2", "q3"]
    assert found.qrels["q1"] == {"d1": 2, "d2": 0, "gone": 1}
    assert any("'gone' in line 6" in warning for warning in found.warnings)
    assert any("'nobody' in line 7" in warning for warning in found.warnings)


def test_judgments_of_another_benchmark_are_refused_even_where_unknown_ids_are_allowed(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "b", qrels={"test": "q1\tx1\t1\nq2\tx2\t1\n"})
    with pytest.raises(InputError, match="Not one is known"):
        load_benchmark(folder, allow_unknown=True)


def test_a_query_does_not_retrieve_the_document_of_its_own_id(tmp_path: Path) -> None:
    queries = [{"_id": "d1", "text": "counter this"}, {"_id": "q2", "text": "other"}]
    folder = write_benchmark(tmp_path / "b", queries=queries, qrels={"test": "d1\td3\t1\nq2\td2\t1\n"})
    assert load_benchmark(folder).excluded == {"d1": ("d1",)}


def test_equal_ids_mean_nothing_where_one_is_an_answer(tmp_path: Path) -> None:
    queries = [{"_id": "d1", "text": "a"}, {"_id": "d2", "text": "b"}]
    folder = write_benchmark(tmp_path / "b", queries=queries, qrels={"test": "d1\td1\t1\nd2\td3\t1\n"})
    found = load_benchmark(folder)
    assert found.excluded == {}
    assert any("equal ids mean nothing" in warning for warning in found.warnings)


def test_excluded_documents_are_read_and_not_available_is_not_one(tmp_path: Path) -> None:
    queries = [
        {"_id": "q1", "text": "a", "excluded_ids": ["d2", "d4", "not in the corpus"]},
        {"_id": "q2", "text": "b", "excluded_ids": ["N/A"]},
        {"_id": "q3", "text": "c", "metadata": {"excluded_ids": ["d1"]}},
    ]
    found = load_benchmark(write_benchmark(tmp_path / "b", queries=queries))
    assert found.excluded == {"q1": ("d2", "d4"), "q3": ("d1",)}


def test_a_description_counts_and_is_kept_until_a_file_changes(folder: Path, workspace: Workspace) -> None:
    first = describe(folder, workspace)
    assert (first.n_documents, first.n_queries, first.splits) == (4, 3, ("test",))
    assert first.judged == {"test": 3}
    assert first.content_hash == load_benchmark(folder).hash
    assert describe(folder, workspace) == first
    with open(folder / "corpus.jsonl", "a") as file:
        file.write('{"_id": "d5", "text": "new"}\n')
    assert describe(folder, workspace).n_documents == 5
    assert choose_split(first) == "test"
    with pytest.raises(InputError, match="no split 'dev'"):
        choose_split(first, "dev")


def test_a_folder_is_copied_into_the_workspace_once(folder: Path, workspace: Workspace) -> None:
    (folder / "notes.txt").write_text("not part of the benchmark")
    assert add_benchmark(folder, workspace) == "small"
    assert add_benchmark(folder, workspace) == "small"
    target = resolve_benchmark("small", workspace)
    assert target == workspace.benchmarks / "small"
    assert not (target / "notes.txt").exists()
    assert load_benchmark(target).hash == load_benchmark(folder).hash
    assert [(info.name, info.n_documents, info.problem) for info in list_benchmarks(workspace)] == [("small", 4, "")]


def test_a_zip_with_one_folder_in_it(folder: Path, workspace: Workspace, tmp_path: Path) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.rglob("*.*l*"):
            file.write(path, f"inner/{path.relative_to(folder)}")
        file.write(folder / "qrels" / "test.tsv", "inner/qrels/test.tsv")
    assert add_benchmark(archive, workspace) == "packed"
    assert load_benchmark(resolve_benchmark("packed", workspace)).hash == load_benchmark(folder).hash


def test_what_a_zip_lacks_is_told_of_the_zip(folder: Path, workspace: Workspace, tmp_path: Path) -> None:
    archive = tmp_path / "packed.zip"
    for left_out in ("corpus.jsonl", "qrels/test.tsv"):
        with zipfile.ZipFile(archive, "w") as file:
            for name in {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"} - {left_out}:
                file.write(folder / name, f"inner/{name}")
        with pytest.raises(InputError) as caught:
            add_benchmark(archive, workspace)
        assert str(caught.value).startswith("packed.zip has no ")
        assert ".incoming" not in str(caught.value)


def test_a_name_that_is_taken_by_other_content_is_refused(folder: Path, workspace: Workspace, tmp_path: Path) -> None:
    add_benchmark(folder, workspace, "mine")
    other = write_benchmark(tmp_path / "other", queries=QUERIES[:1], qrels={"test": "q1\td1\t1\n"})
    with pytest.raises(InputError, match="another benchmark called 'mine'"):
        add_benchmark(other, workspace, "mine")
    assert load_benchmark(resolve_benchmark("mine", workspace)).n_queries == 3


def test_what_cannot_be_used_leaves_nothing_behind(folder: Path, workspace: Workspace, tmp_path: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text(QRELS + "q1\tunknown\t1\n")
    with pytest.raises(InputError, match="'unknown' in line 6"):
        add_benchmark(folder, workspace)
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(InputError, match="cannot be opened as a zip"):
        add_benchmark(broken, workspace)
    with pytest.raises(InputError, match="is a folder or a zip"):
        add_benchmark(folder / "qrels" / "test.tsv", workspace)
    assert list(workspace.benchmarks.iterdir()) == []


def test_a_benchmark_damaged_later_is_listed_with_its_problem(folder: Path, workspace: Workspace) -> None:
    add_benchmark(folder, workspace)
    (workspace.benchmarks / "small" / "queries.jsonl").unlink()
    (info,) = list_benchmarks(workspace)
    assert "queries.jsonl" in info.problem


def test_an_unknown_name_offers_those_there_are(folder: Path, workspace: Workspace) -> None:
    add_benchmark(folder, workspace, "mine")
    with pytest.raises(NotFoundError, match="There is: mine"):
        resolve_benchmark("yours", workspace)
    assert resolve_benchmark(str(folder), workspace) == folder
    remove_benchmark("mine", workspace)
    with pytest.raises(NotFoundError):
        resolve_benchmark("mine", workspace)
    with pytest.raises(NotFoundError):
        remove_benchmark("mine", workspace)


@pytest.mark.slow
def test_a_real_benchmark_is_read_whole() -> None:
    found = load_benchmark(shared("data/2wikimultihopqa_sample"), "")
    assert (found.n_documents, found.n_queries) == (7005, 164)
    assert sum(grade > 0 for grades in found.qrels.values() for grade in grades.values()) == 414
