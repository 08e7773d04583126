"""Bad input gets one clear sentence, exit code 2 and no traceback, and loses nothing that was there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp.base.workspace import Workspace
from tests.cli.support import answer, refusal, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("jobs_here")]


def write(path: Path, *lines: str, encoding: str = "utf-8") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    return str(path)


def documents(*ids: str) -> list[str]:
    return [json.dumps({"_id": i, "title": "", "text": f"Document {i} tells of salt."}) for i in ids]


def test_files_that_cannot_be_read(workspace: Workspace, tmp_path: Path) -> None:
    good = answer("corpus", "add", write(tmp_path / "good.jsonl", *documents("a", "b")))

    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"")
    assert "empty" in refusal("corpus", "add", str(empty))

    wrong = refusal("corpus", "add", write(tmp_path / "wrong.csv", "number,colour", "1,red"))
    assert "colour" in wrong
    assert "text" in wrong

    line = '{"_id": "1", "text": "Caf\xe9"}'
    latin = refusal("corpus", "add", write(tmp_path / "latin.jsonl", line, encoding="latin-1"), "--encoding", "utf-8")
    assert f"byte 0xE9 at offset {line.index(chr(0xE9))}" in latin
    assert "cp1252" in latin

    assert "no file or folder" in refusal("corpus", "add", str(tmp_path / "missing.jsonl"))
    assert [c["id"] for c in answer("corpus", "list")] == [good["id"]]


@pytest.mark.parametrize("words", ["corpus add", "projects add", "benchmarks add", "cw profile --file"])
def test_an_address_in_the_place_of_a_file_is_called_one(workspace: Workspace, words: str) -> None:
    told = refusal(*words.split(), "https://example.org/handbook.zip")
    assert "'https://example.org/handbook.zip' is an address" in told
    assert "Download it" in told


def test_a_single_file_that_cannot_be_read_is_named_once(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(b"no PDF at all")
    assert refusal("projects", "add", str(path)).count("scan.pdf") == 1


def test_latin_1_is_read_when_it_is_named(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "latin.jsonl", '{"_id": "1", "text": "Caf\xe9"}', encoding="latin-1")
    corpus = answer("corpus", "add", path, "--encoding", "latin-1")
    assert corpus["n_documents"] == 1
    (preview,) = answer("queries", "preview", "--corpus", corpus["id"], "--methods", "diverse")["methods"].values()
    assert any("Café" in query for query in preview["queries"])


def test_bad_rows_are_rejected_with_line_and_reason_and_the_rest_is_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = write(
        tmp_path / "mixed.jsonl",
        *documents("a"),
        '{"_id": "b", "text": "broken',
        *documents("a"),
        '{"_id": "c", "text": "   "}',
        *documents("d"),
    )
    corpus = answer("corpus", "add", path)
    assert corpus["n_documents"] == 2
    assert [row["line"] for row in corpus["rejected"]] == [2, 3, 4]
    assert [row["kind"] for row in corpus["rejected"]] == ["broken JSON", "duplicate id", "empty text"]
    assert "line 1" in corpus["rejected"][1]["reason"]
    shown = run("corpus", "show", corpus["id"]).stdout
    assert "mixed.jsonl, line 2: broken JSON: Unterminated string" in shown


def test_a_file_with_no_usable_row(workspace: Workspace, tmp_path: Path) -> None:
    line = refusal("corpus", "add", write(tmp_path / "broken.jsonl", "{", '{"_id": 1', "nonsense"))
    assert "line 1" in line


def test_unknown_names(workspace: Workspace, tmp_path: Path) -> None:
    corpus = answer("corpus", "add", write(tmp_path / "good.jsonl", *documents("a", "b", "c")))
    queries = write(tmp_path / "queries.csv", "document_id,query", "a,what is salt?", "b,why salt?", "nobody,lost?")
    imported = answer("queries", "import", queries, "--corpus", corpus["id"])
    assert (imported["n_queries"], imported["n_rejected"]) == (2, 1)
    assert "nobody" in run("queries", "import", queries, "--corpus", corpus["id"], "--name", "again").stdout

    assert "no-such-model" in refusal("train", imported["id"], "--retriever", "no-such-model!")
    assert "nowhere" in refusal("corpus", "show", "nowhere")
    assert "nothing" in refusal("train", "nothing")
    assert "learning_rte" in refusal("train", imported["id"], "--set", "learning_rte=1")
    assert "at least 1" in refusal("train", imported["id"], "--set", "epochs=0")
    assert "no-bench" in refusal("evaluate", "static-minilm", "--benchmark", "no-bench")
    assert answer("jobs", "list") == []


def test_a_benchmark_whose_judgments_name_unknown_ids(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    write(folder / "corpus.jsonl", *documents("a", "b"))
    write(folder / "queries.jsonl", '{"_id": "q1", "text": "salt?"}')
    write(folder / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore", "q1\ta\t1", "q1\tghost\t1")
    line = refusal("benchmarks", "add", str(folder))
    assert "ghost" in line
    assert "test.tsv" in line
    assert answer("benchmarks", "list")["own"] == []


def test_queries_of_cw_that_are_none(workspace: Workspace, tmp_path: Path) -> None:
    assert "It holds no query" in refusal("cw", "recommend", "--file", write(tmp_path / "none.txt", "", "  "))
    assert "Name one of" in refusal("cw", "recommend")


def test_the_catalogue_answers_questions_and_takes_no_orders(workspace: Workspace) -> None:
    assert answer("catalog", "query", "SELECT count(*) AS n FROM evaluations") == [{"n": 0}]
    assert "SELECT" in refusal("catalog", "query", "DELETE FROM evaluations")


def test_a_setting_is_said_by_its_option_or_by_set(workspace: Workspace, tmp_path: Path) -> None:
    told = {
        "_id": "a",
        "title": "Salt",
        "text": "Salt is a mineral. Salt was traded in Venice. The salt tax fell in 1790.",
    }
    answer("corpus", "add", write(tmp_path / "few.jsonl", json.dumps(told)), "--name", "few")
    words = ("queries", "generate", "--corpus", "few", "--wait")
    answer(*words, "--set", "per_doc=2", "--set", "method=paraphrase")
    (made,) = answer("queries", "list")
    assert (made["per_doc"], made["method"]) == (2, "paraphrase")
    said = refusal(*words, "--per-doc", "3", "--set", "per_doc=2")
    assert "per_doc is 3, and --set per_doc=2 says otherwise" in said
    shown = answer("queries", "preview", "--corpus", "few", "--methods", "diverse", "--set", "per_doc=2")
    assert len(shown["methods"]["diverse"]["queries"]) == 2
    assert "at least 1" in refusal("queries", "preview", "--corpus", "few", "--per-doc", "0")
