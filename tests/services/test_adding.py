"""The one import: corpus, benchmark and the queries of people from what somebody brings, and nothing thinned out."""

from __future__ import annotations

import csv
import errno
import io
import json
import random
import shutil
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import pytest

from cdp import query_sets
from cdp.base.errors import CdpError, InputError
from cdp.base.workspace import SHIPPED_DATA, Workspace
from cdp.benchmarks import load_benchmark
from cdp.benchmarks.manifests import read as read_manifest
from cdp.corpus import ReadOptions, iter_documents, looking
from cdp.query_sets.given import AddOptions
from cdp.services import adding, projects
from cdp.services.adding import Added
from tests.cli.support import run as cli
from tests.strategies import ODD, SCRIPTS

pytestmark = pytest.mark.slow


def table(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def text(n: int) -> str:
    return f"The lighthouse number {n} was built in {1800 + n} and stands on the northern coast."


def questions_of(workspace: Workspace, added: Added) -> dict[str, dict[str, list[str]]]:
    """{split: {document: questions}} of the query sets that came."""
    found: dict[str, dict[str, list[str]]] = {}
    for query_set in added.query_sets:
        lines = query_sets.iter_lines(workspace, query_set.id)
        found[str(query_set.parameters["splits"][0])] = {line["document_id"]: line["queries"] for line in lines}
    return found


def judged(workspace: Workspace, added: Added, split: str) -> dict[str, set[str]]:
    """{document: questions} that the benchmark judges as answered by it."""
    assert added.benchmark is not None
    benchmark = load_benchmark(workspace.benchmark(added.benchmark.name), split)
    texts = dict(zip(benchmark.query_ids, benchmark.queries, strict=True))
    answers: dict[str, set[str]] = {}
    for query, grades in benchmark.qrels.items():
        for document, grade in grades.items():
            if grade > 0:
                answers.setdefault(document, set()).add(texts[query])
    return answers


def test_a_table_with_questions_gives_all_three(workspace: Workspace, tmp_path: Path) -> None:
    rows = [
        (f"a{i}", text(i) if i != 7 else "", f"When was lighthouse {i} built?" if i != 9 else "", "x")
        for i in range(60)
    ]
    path = table(tmp_path / "faq.csv", ["Number", "Content of it", "question", "Colour"], rows)
    added = adding.add(workspace, path, options=AddOptions.from_dict({"id_field": "Number", "held_out": 0.2}))
    assert (added.project.name, added.corpus.n_documents, added.left_out) == (
        "faq",
        59,
        {"rows not taken (empty text)": 1},
    )
    assert added.project.corpora == (added.corpus.id,)
    assert added.benchmark is not None
    assert added.project.benchmarks == (added.benchmark.name,)
    train = questions_of(workspace, added)["train"]
    dev = judged(workspace, added, "dev")
    assert (len(train), len(dev)) == (46, 12), "58 documents have a question, and a fifth of them is held out"
    assert not set(train) & set(dev)
    assert set(train) | set(dev) == {f"a{i}" for i in range(60) if i not in (7, 9)}
    assert [q.kind for q in added.query_sets] == ["human"]
    held_out = {"by": "documents", "documents": 12, "share": 0.2, "seed": 0}
    assert added.query_sets[0].parameters["held_out"] == held_out
    assert read_manifest(workspace.benchmark(added.benchmark.name)).source["held_out"] == held_out
    assert any("Colour" in said for said in added.stated), "a column that became nothing is named"
    assert any("seed 0" in said and "12 queries of 12 documents" in said for said in added.stated)
    assert added.missing == ()


def test_the_same_again_adds_nothing(workspace: Workspace, tmp_path: Path) -> None:
    rows = [(f"a{i}", text(i), f"When was lighthouse {i} built?") for i in range(20)]
    path = table(tmp_path / "faq.csv", ["id", "text", "query"], rows)
    first, again = (adding.add(workspace, path) for _ in range(2))
    assert again.existed
    assert (first.project, first.benchmark, first.query_sets) == (again.project, again.benchmark, again.query_sets)
    assert len(projects.list_projects(workspace)) == 1
    drawn = [AddOptions.from_dict({"held_out": 0.2, "seed": seed}) for seed in (0, 1)]
    names = {
        added.benchmark.name for options in drawn if (added := adding.add(workspace, path, options=options)).benchmark
    }
    assert names == {"faq-2", "faq-3"}, "another draw is another benchmark"


def test_a_question_that_the_benchmark_asks_is_not_trained_on(workspace: Workspace, tmp_path: Path) -> None:
    rows = [(f"a{i}", text(i), "Which lighthouse is this?" if i % 2 else f"What of {i}?") for i in range(40)]
    rows += [(f"b{i}", text(100 + i), "WHICH lighthouse is this?") for i in range(5)]
    path = table(tmp_path / "faq.csv", ["id", "text", "query"], rows)
    added = adding.add(workspace, path, options=AddOptions(held_out=0.2))
    trained = {q.casefold() for texts in questions_of(workspace, added)["train"].values() for q in texts}
    asked = {q.casefold() for texts in judged(workspace, added, "dev").values() for q in texts}
    assert asked
    assert not trained & asked


def test_a_beir_folder_gives_all_three_and_test_is_no_training_set(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        shutil.copy(SHIPPED_DATA / "demo" / name, folder / name)
    lines = (SHIPPED_DATA / "demo" / "qrels" / "test.tsv").read_text().splitlines()
    for split, part in (("train", lines[1:80]), ("dev", lines[80:120]), ("test", lines[120:])):
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join([lines[0], *part]) + "\n")
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.rglob("*.*"):
            archive.write(file, f"inside/{file.relative_to(folder)}")
    for source in (folder, packed):
        added = adding.add(workspace, source, name=source.stem)
        assert added.benchmark is not None
        assert set(added.benchmark.splits) == {"train", "dev", "test"}
        assert set(questions_of(workspace, added)) == {"train", "dev"}
        assert added.missing == ()
        assert any("test is for measuring" in said for said in added.stated)
    deeper = tmp_path / "outer"
    shutil.copytree(folder, deeper / "mine")
    assert adding.examine(workspace, deeper).splits == ("dev", "test", "train")


def uploaded(files: dict[str, bytes]) -> list[tuple[str, BinaryIO]]:
    return [(name, io.BytesIO(content)) for name, content in files.items()]


MIXED = {
    "sea/ships.csv": "\n".join(["_id,text", *(f"s{i},{text(i)}" for i in range(20))]).encode(),
    "sea/notes/one.txt": b"A note on tides and currents.",
    "sea/notes/two.md": b"# Lights\n\nA note on lights.",
    "sea/asked.csv": "\n".join(
        ["query,doc_id,split", *(f"q {i}?,s{i},{'dev' if i % 2 else 'train'}" for i in range(20))]
    ).encode(),
    "sea/manual.rtf": b"{\\rtf1",
    "sea/../../../escape.txt": b"No file leaves its folder.",
    "sea/other.csv": b"colour,size\nred,7\n",
    "sea/.DS_Store": b"x",
}  # fmt: skip


def test_a_folder_of_mixed_files_is_one_corpus_with_its_questions_and_what_was_skipped(workspace: Workspace) -> None:
    with adding.received(workspace, uploaded(MIXED)) as (documents, asked):
        assert asked is not None
        assert documents.resolve().is_relative_to(workspace.uploads.resolve())
        assert any("manual.rtf" in note for note in adding.examine(workspace, documents).documents.notes)
        added = adding.add(workspace, documents, asked)
    assert added.corpus.n_documents == 23
    assert added.benchmark is not None
    assert (len(questions_of(workspace, added)["train"]), len(judged(workspace, added, "dev"))) == (10, 10)
    stated = "\n".join([*added.stated, *added.not_read])
    assert looking.problem(added.corpus) == "2 of 6 files could not be read."
    for skipped in ("manual.rtf", ".DS_Store", "other.csv"):
        assert skipped in stated
    assert not list(workspace.root.parent.rglob("escape.txt")), "and nothing is left behind"


@pytest.mark.parametrize("judgments", ["data/qrels/dev.tsv", "data/dev.tsv"])
def test_a_folder_with_a_benchmark_in_it_is_that_benchmark_whatever_lies_beside_it(
    workspace: Workspace, judgments: str
) -> None:
    demo = SHIPPED_DATA / "demo"
    files = {f"mine/data/{name}": (demo / name).read_bytes() for name in ("corpus.jsonl", "queries.jsonl")}
    files[f"mine/{judgments}"] = (demo / "qrels" / "test.tsv").read_bytes()
    files |= {"mine/data/LICENSE.txt": b"Free.", "mine/read me.pdf": b"%PDF", "mine/plots/run.txt": b"1"}
    with adding.received(workspace, uploaded(files)) as (documents, _):
        assert adding.examine(workspace, documents).splits == ("dev",)
        added = adding.add(workspace, documents, name="Mine")
    assert added.benchmark is not None
    assert added.corpus.n_documents == 96
    assert set(questions_of(workspace, added)) == {"dev"}
    stated = "\n".join(added.stated)
    for skipped in ("LICENSE.txt", "read me.pdf", "plots/run.txt"):
        assert skipped in stated
    assert "queries.jsonl" not in stated


def test_a_title_of_none_is_none(workspace: Workspace, tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ["id", "title", "text"], [(i, f"Name {i}", text(i)) for i in range(3)])
    named = adding.add(workspace, path)
    without = adding.add(workspace, path, options=AddOptions.from_dict({"title_field": "-", "id_field": "-"}))
    titles = [{d.title for d in iter_documents(workspace, a.corpus.id)} for a in (named, without)]
    assert titles == [{"Name 0", "Name 1", "Name 2"}, {""}]
    assert {d.id for d in iter_documents(workspace, without.corpus.id)} == {"1", "2", "3"}
    (said,) = (said for said in without.stated if "id, title" in said)
    assert "choose it" in said, "and it is said that they were not taken, and how they would be"


def test_questions_in_a_file_of_their_own_keep_their_splits(workspace: Workspace, tmp_path: Path) -> None:
    documents = table(tmp_path / "ships.csv", ["_id", "text"], [(i, text(i)) for i in range(30)])
    splits = ["train", "validation", "TEST"]
    rows: list[Sequence[object]] = [(f"where did ship {i} sail?", i, splits[i % 3], 1) for i in range(30)]
    rows += [("what is this", "nowhere", "train", 1), ("WHERE did ship 1 sail?", 1, "train", 1), ("", 3, "train", 1),
             ("lost", 3, "train", "bad"), ("wrong", 3, "test", 0)]  # fmt: skip
    asked = table(tmp_path / "asked.csv", ["query", "doc_id", "split", "grade"], rows)
    added = adding.add(workspace, documents, asked, name="Ships")
    assert set(questions_of(workspace, added)) == {"train", "dev"}
    assert {split: len(judged(workspace, added, split)) for split in ("dev", "test")} == {"dev": 10, "test": 10}
    assert added.left_out == {
        "queries for a document that is not here": 1,
        "queries without a text": 1,
        "rows of queries not taken (no grade in grade)": 1,
        "training queries that the benchmark asks too": 1,
    }
    with pytest.raises(InputError, match=r"there is no query, a text or a list of texts \(field frage"):
        adding.add(workspace, documents, asked, options=AddOptions.from_dict({"query_field": "frage"}))
    unnamed = table(tmp_path / "unnamed.csv", ["question", "answered by"], [("where did ship 1 sail?", 1)])
    with pytest.raises(InputError, match=r"there is no document id .*among question, answered by"):
        adding.add(workspace, documents, unnamed)


@pytest.mark.parametrize(
    ("n", "origin", "measured"), [(9, "human", 0), (30, "human", 30), (80, "human", 50), (80, "llm", 16)]
)
def test_questions_of_people_measure_before_they_train(
    workspace: Workspace, tmp_path: Path, n: int, origin: str, measured: int
) -> None:
    """Of twelve questions two measured, too few for any answer, and ten were to be trained on."""
    path = table(tmp_path / "faq.csv", ["id", "text", "query"], [(f"a{i}", text(i), f"What of {i}?") for i in range(n)])
    added = adding.add(workspace, path, options=AddOptions(origin=origin))
    assert (added.benchmark.n_queries if added.benchmark else 0) == measured
    assert sum(q.n_queries for q in added.query_sets) == n - measured


SHIPS = [(f"s{i}", text(i)) for i in range(20)]
# Header and rows of a file of queries, whose documents are named by the id, the file or the text of a ship.
NAMING = {
    "ids, in English": (["question", "document"], [(f"what of ship {i}?", f"s{i}") for i in range(12)]),
    "ids, in German": (["Frage", "Dokument"], [(f"was ist mit Schiff {i}?", f"s{i}") for i in range(12)]),
    "ids, by the usual name": (["query", "doc_id"], [(f"what of ship {i}?", f"s{i}") for i in range(12)]),
}


@pytest.mark.parametrize("shape", NAMING)
def test_questions_come_with_their_documents_or_after_them(workspace: Workspace, tmp_path: Path, shape: str) -> None:
    documents, asked = table(tmp_path / "ships.csv", ["_id", "text"], SHIPS), table(tmp_path / "q.csv", *NAMING[shape])
    files = {file.name: file.read_bytes() for file in (documents, asked)}
    with adding.received(workspace, uploaded(files)) as (first, second):
        assert (first.name, second and second.name) == ("ships.csv", "q.csv")

    with pytest.raises(InputError, match=r"It holds queries, each with the .* that answers it") as refused:
        adding.add(workspace, asked)
    assert "on Home" in refused.value.hint

    alone = adding.add(workspace, documents)
    assert alone.benchmark is None
    options = AddOptions()
    assert adding.n_answered(workspace, alone.corpus.id, asked, options) == 12
    later = adding.add_queries(workspace, alone.corpus.id, asked)
    assert later.benchmark is not None
    assert (later.benchmark.judged, later.query_sets, later.project.id) == ({"dev": 12}, (), alone.project.id)
    assert judged(workspace, later, "dev")["s3"] == {str(NAMING[shape][1][3][0])}
    assert adding.add(workspace, documents, asked).benchmark == later.benchmark, "the same, by either way"


ABOUT = {n: f"Paragraph {n} tells how lighthouse {n} was built." for n in range(12)}
BY_TEXT = {
    "query and text": [{"query": f"who built {n}?", "text": ABOUT[n]} for n in ABOUT],
    "anchor and positive": [{"anchor": f"who built {n}?", "positive": ABOUT[n]} for n in ABOUT],
    "lists": [{"query": f"who built {n}?", "pos": [ABOUT[n]], "neg": [ABOUT[0]]} for n in range(1, 12)],
    "contexts": [{"user_input": f"who built {n}?", "reference_contexts": [ABOUT[n]]} for n in ABOUT],
    "records": [{"id": n, "fields": {"query": f"who built {n}?"}, "metadata": {"doc_id": f"d{n}"}} for n in ABOUT],
    "id and text": [{"question": f"who built {n}?", "doc_id": f"d{n}", "text": ABOUT[n]} for n in ABOUT],
}


def _lines(rows: Iterable[dict[str, object]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


ABOUT_LINES = _lines({"_id": f"d{n}", "text": text} for n, text in ABOUT.items())


@pytest.mark.parametrize("shape", BY_TEXT)
def test_an_uploaded_file_that_names_documents_by_text_is_of_queries(workspace: Workspace, shape: str) -> None:
    files = {"documents.jsonl": ABOUT_LINES, "pairs.jsonl": _lines(BY_TEXT[shape])}
    with adding.received(workspace, uploaded(files)) as (documents, asked):
        assert asked is not None
        assert asked.name == "pairs.jsonl"
        added = adding.add(workspace, documents, asked)

    assert added.corpus.n_documents == 12
    assert added.benchmark is not None
    assert len(judged(workspace, added, "dev")) == len(BY_TEXT[shape])


@pytest.mark.parametrize(
    "rows",
    [
        # Documents with queries beside them, whose texts no other file has; with the same ids; answers of one word.
        [{"query": f"who built {n}?", "text": f"Another text {n}."} for n in range(12)],
        [{"doc_id": f"d{n}", "text": f"Another text {n}."} for n in range(12)],
        [{"id": f"d{n}", "question": f"who built {n}?", "answer": "me"} for n in range(12)],
        [{"_id": f"e{n}", "text": f"Another text {n}."} for n in range(12)],
    ],
)
def test_other_uploads_are_documents(workspace: Workspace, rows: list[dict[str, object]]) -> None:
    files = {"documents.jsonl": ABOUT_LINES, "more.jsonl": _lines(rows)}
    with adding.received(workspace, uploaded(files)) as (_, asked):
        assert asked is None


def test_queries_among_the_documents_of_a_folder_are_told(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / "documents.jsonl").write_bytes(ABOUT_LINES)
    (folder / "pairs.jsonl").write_bytes(_lines(BY_TEXT["query and text"]))
    added = adding.add(workspace, folder)
    assert any("pairs.jsonl holds queries for documents of the other files" in line for line in added.stated)
    assert any("--queries FILE" in line for line in added.stated)

    # As the sentence says.
    (folder / "pairs.jsonl").rename(tmp_path / "pairs.jsonl")
    added = adding.add(workspace, folder, tmp_path / "pairs.jsonl")
    assert added.corpus.n_documents == 12
    assert not any("holds queries" in line for line in added.stated)


def test_tables_of_a_folder_may_call_their_columns_by_other_names(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(_lines({"question": f"who {n}?", "passage": text} for n, text in ABOUT.items()))
    (folder / "b.jsonl").write_bytes(_lines({"text": f"Another text {n}."} for n in range(5)))
    added = adding.add(workspace, folder)
    assert (added.corpus.n_documents, added.not_read) == (17, [])


def test_generated_queries_beside_a_beir_corpus_are_taken_as_the_note_says(
    workspace: Workspace, tmp_path: Path
) -> None:
    folder = tmp_path / "generated"
    (folder / "qgen-qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_bytes(ABOUT_LINES)
    (folder / "qgen-queries.jsonl").write_bytes(_lines({"_id": f"genQ{n}", "text": f"who built {n}?"} for n in ABOUT))
    judgments = "".join(f"genQ{n}\td{n}\t1\n" for n in ABOUT)
    (folder / "qgen-qrels" / "train.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judgments}")
    added = adding.add(workspace, folder)
    assert "taken once their files are called queries.jsonl and qrels/train.tsv" in " ".join(added.stated)

    (folder / "qgen-queries.jsonl").rename(folder / "queries.jsonl")
    (folder / "qgen-qrels").rename(folder / "qrels")
    added = adding.add(workspace, folder)
    assert sum(len(of_split) for of_split in questions_of(workspace, added).values()) == len(ABOUT)


@pytest.mark.parametrize(
    ("name", "content", "hint"),
    [
        ("frame.json", {"title": {"0": "a"}, "text": {"0": "b"}}, "to_json(orient='records', lines=True)"),
        ("dumped.jsonl", {"lc": 1, "id": ["Document"], "kwargs": {"text": "b"}}, "known to hold the text"),
        ("store.json", {"docstore/data": {"1": {"text": "b" * 30}}}, "text and id are no objects"),
    ],
)
def test_documents_inside_of_objects_are_refused_with_the_way_out(
    workspace: Workspace, tmp_path: Path, name: str, content: dict[str, object], hint: str
) -> None:
    (tmp_path / name).write_bytes(_lines([content]))
    with pytest.raises(InputError) as refused:
        adding.add(workspace, tmp_path / name)
    assert hint in str(refused.value)


def test_a_log_of_queries_or_of_other_documents_gives_no_judgments(workspace: Workspace, tmp_path: Path) -> None:
    corpus = adding.add(workspace, table(tmp_path / "ships.csv", ["_id", "text"], SHIPS)).corpus.id
    log = tmp_path / "log.txt"
    log.write_text("what of ship 1?\n")
    others = table(tmp_path / "others.csv", ["question", "document"], [("what of it?", "none")])
    for file in (log, table(tmp_path / "log.csv", ["query"], [("what of ship 1?",)]), others):
        assert adding.n_answered(workspace, corpus, file, AddOptions()) == 0
    with pytest.raises(InputError, match=r"None of its queries names a document of ships \(queries for .*: 1\)"):
        adding.add_queries(workspace, corpus, others)
    assert not list(workspace.benchmarks.glob("*"))


def test_a_text_in_the_column_document_is_a_text(workspace: Workspace, tmp_path: Path) -> None:
    """The documents of a table may be called as the documents that queries name."""
    path = table(
        tmp_path / "faq.csv", ["id", "document", "question"], [(i, text(i), f"What of {i}?") for i in range(12)]
    )
    added = adding.add(workspace, path)
    assert next(iter_documents(workspace, added.corpus.id)).text == text(0)
    asked = table(tmp_path / "q.csv", ["question", "document"], [(f"What of {i}?", text(i)) for i in range(12)])
    assert adding.n_answered(workspace, added.corpus.id, asked, AddOptions()) == 12


def test_documents_alone_say_what_is_missing(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_text("\n\n".join(text(i) for i in range(6)), encoding="utf-8")
    added = adding.add(workspace, path)
    assert (added.corpus.n_documents, added.benchmark, added.query_sets) == (1, None, ())
    assert len(added.missing) == 2
    split = adding.add(workspace, path, name="split", reading=ReadOptions.from_dict({"passages": 20}))
    assert split.corpus.n_documents > 3
    joined = adding.add(workspace, table(tmp_path / "x.csv", ["id", "text"], [(1, text(1))]), project="split")
    assert joined.project.corpora == (split.corpus.id, joined.corpus.id)


def test_a_german_table_of_html_is_understood(workspace: Workspace, tmp_path: Path) -> None:
    cell = "<p>Die <b>Frist</b> endet&nbsp;am {}. Mai.</p><ul><li>a &lt; b</li></ul><script>x()</script>"
    rows = [(7 + i, f"Regel {i}", cell.format(i), f"Wann endet Frist {i}?") for i in range(5)]
    path = table(tmp_path / "faq.csv", ["Nr.", "Überschrift", "Inhalt", "Frage"], rows)
    seen = adding.examine(workspace, path).documents
    assert (seen.guess("id"), seen.guess("title"), seen.text, seen.queries) == ("Nr.", "Überschrift", "Inhalt", "Frage")
    added = adding.add(workspace, path)
    first = next(iter_documents(workspace, added.corpus.id))
    assert (first.id, first.title, first.text) == ("7", "Regel 0", "Die Frist endet am 0. Mai.\na < b")
    assert added.query_sets[0].n_queries == 5
    assert any("HTML tags were removed from 'Inhalt'" in said for said in added.stated)
    code = table(tmp_path / "code.csv", ["id", "text"], [(1, "Use List<int> where a < b"), (2, "if x > 3 then")])
    assert next(iter_documents(workspace, adding.add(workspace, code).corpus.id)).text == "Use List<int> where a < b"


JUDGED_TABLES = {
    "beside the text": (["id", "text", "query", "label"], [(7, text(7), "What of 7?", 1), (8, text(8), "Not 8?", 0),
                                                           (9, text(9), "What of 9?", 2), (10, text(10), "", "")]),
    "in words": (["id", "text", "query", "relevant"], [(7, text(7), "What of 7?", "yes"), (8, text(8), "Not 8?", "no"),
                                                       (9, text(9), "What of 9?", "Yes")]),
}  # fmt: skip


@pytest.mark.parametrize("shape", JUDGED_TABLES)
def test_a_question_judged_not_to_be_answered_is_no_pair(workspace: Workspace, tmp_path: Path, shape: str) -> None:
    header, rows = JUDGED_TABLES[shape]
    path = table(tmp_path / "faq.csv", header, rows)
    assert adding.examine(workspace, path).documents.grade == header[-1]
    added = adding.add(workspace, path)
    assert questions_of(workspace, added)["train"] == {"7": ["What of 7?"], "9": ["What of 9?"]}
    assert added.corpus.n_documents == len(rows)
    assert any("1 row judged not relevant" in said for said in added.stated)
    done = cli("corpus", "add", str(path), "--name", "again")
    assert "1 row judged not relevant" in f"{done.stdout}{done.stderr}"


def test_judged_queries_of_a_file_say_how_grades_and_columns_were_read(workspace: Workspace, tmp_path: Path) -> None:
    documents = table(tmp_path / "ships.csv", ["_id", "text"], [(i, text(i)) for i in range(30)])
    rows = [(f"where did ship {i} sail?", i, "relevant" if i % 2 else "not relevant", "log") for i in range(30)]
    asked = table(tmp_path / "asked.csv", ["query", "doc_id", "verdict", "origin"], rows)
    options = AddOptions.from_dict({"grade_field": "verdict", "held_out": 0})
    added = adding.add(workspace, documents, asked, options=options)
    assert set(questions_of(workspace, added)["train"]) == {str(i) for i in range(1, 30, 2)}
    stated = "\n".join(added.stated)
    assert "asked.csv: Grades in the column verdict: not relevant is 0 (15 rows), relevant is 1 (15 rows)" in stated
    assert "asked.csv: Columns that were not taken: origin." in stated


def test_only_a_corpus_that_was_cut_has_passages(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "issues.jsonl"
    path.write_text("".join(json.dumps({"_id": f"org/app#{i}", "text": text(i), "query": f"{i}?"}) + "\n"
                            for i in range(40, 60)))  # fmt: skip
    ids = [f"org/app#{i}" for i in range(40, 60)]
    whole = adding.add(workspace, path)
    assert whole.benchmark is not None
    assert not load_benchmark(workspace.benchmark(whole.benchmark.name), "dev").passages
    assert whole.corpus.place_of("org/app#41") == ("org/app#41", "")
    assert whole.corpus.neighbours(ids) == {}
    note = tmp_path / "note.txt"
    note.write_text("\n\n".join(text(i) for i in range(30)), encoding="utf-8")
    cut = adding.add(workspace, note, reading=ReadOptions.from_dict({"passages": 20})).corpus
    assert cut.place_of("note.txt#2") == ("note.txt", "")
    assert cut.neighbours(["note.txt#1", "note.txt#2"]) == {"note.txt#1": ["note.txt#2"], "note.txt#2": ["note.txt#1"]}


def test_few_questions_are_not_divided(workspace: Workspace, tmp_path: Path) -> None:
    path = table(tmp_path / "few.csv", ["id", "text", "query"], [(i, text(i), f"What of {i}?") for i in range(9)])
    added = adding.add(workspace, path)
    assert added.benchmark is None
    assert added.query_sets[0].n_queries == 9
    assert any("No queries were held out" in said for said in added.stated)
    without = AddOptions.from_dict({"with_queries": False})
    assert adding.add(workspace, path, name="alone", options=without).query_sets == ()


def test_a_look_shows_the_first_rows_and_stores_nothing(workspace: Workspace, tmp_path: Path) -> None:
    path = table(
        tmp_path / "faq.csv", ["id", "Inhalt", "question"], [(i, text(i) if i % 2 else "", "?") for i in range(40)]
    )
    seen = adding.examine(workspace, path).documents
    assert (len(seen.rows), seen.guess("id"), seen.text, seen.queries, seen.gaps["Inhalt"]) == (
        40,
        "id",
        "Inhalt",
        "question",
        20,
    )
    assert not workspace.corpora.exists()


def test_a_look_shows_only_what_a_page_can_show(workspace: Workspace, tmp_path: Path) -> None:
    """Half of a surrogate pair, as programs that cut texts leave it, would break the table on the page."""
    path = tmp_path / "cut.jsonl"
    path.write_text('{"_id": "1", "text": "cut \\ud83d", "\\ud83d": 5}\n', encoding="utf-8")
    seen = adding.examine(workspace, path).documents
    assert seen.columns == ("_id", "text", "?")
    assert seen.rows == ({"_id": "1", "text": "cut ?", "?": "5"},)


def test_a_first_row_of_data_is_not_taken_for_a_header(workspace: Workspace, tmp_path: Path) -> None:
    """MS MARCO's and LoTTE's collection.tsv have none: their first passage would be lost as the name of a column."""
    path = tmp_path / "collection.tsv"
    path.write_text("".join(f"{i}\t{text(i)}\n" for i in range(12)), encoding="utf-8")
    with pytest.raises(InputError, match="Or say that the file has no header row"):
        adding.add(workspace, path)

    added = adding.add(workspace, path, reading=ReadOptions(header=False))
    assert added.corpus.n_documents == 12


def stored(workspace: Workspace) -> list[str]:
    """All visible files of what an import makes."""
    tops = (workspace.corpora, workspace.queries, workspace.benchmarks, workspace.projects)
    return sorted(str(path.relative_to(workspace.root)) for top in tops for path in top.glob("[!.]*/*"))


def test_queries_whose_columns_are_not_known_leave_nothing_behind(workspace: Workspace, tmp_path: Path) -> None:
    documents = tmp_path / "docs.jsonl"
    documents.write_text("".join(json.dumps({"_id": f"d{n}", "text": text(n)}) + "\n" for n in range(20)))
    asked = table(tmp_path / "q.csv", ["colour", "shape"], [(f"Where is {n}?", f"d{n}") for n in range(20)])
    command = ("projects", "add", str(documents), "--queries", str(asked))
    told = cli("projects", "add", str(documents), "--queries", str(asked), code=2).stderr
    assert "colour, shape" in told
    assert stored(workspace) == []
    cli(*command, "--set", "query_field=colour", "--set", "document_field=shape")
    before = stored(workspace)
    cli(*command, code=2)
    assert stored(workspace) == before, "what was there before stays"


@pytest.mark.parametrize("step", ["cdp.services.metrics.quick", "cdp.services.projects.create"])
def test_an_import_that_fails_in_the_middle_leaves_nothing_behind(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    documents = tmp_path / "docs.jsonl"
    rows = [{"_id": f"d{n}", "text": text(n), "queries": [f"Where is {n}?"]} for n in range(20)]
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(step, full)
        assert "disk is full" in cli("projects", "add", str(documents), "--set", "held_out=0.2", code=2).stderr
    assert stored(workspace) == []
    cli("projects", "add", str(documents), "--set", "held_out=0.2")
    assert len(stored(workspace)) > 5


@pytest.mark.parametrize(
    "content", [b"", b"\0\0", b"\xff\xfe\xff", b"id,text\n", b"{", b"[" * 2000, b"PK\x03\x04 no zip"]
)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "zip", "txt"])
def test_what_is_no_data_is_refused_in_a_sentence(
    workspace: Workspace, tmp_path: Path, content: bytes, ending: str
) -> None:
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(content)
    for act in (adding.examine, adding.add):
        with suppress(CdpError):
            act(workspace, path)
    assert len(projects.list_projects(workspace)) == len(list(workspace.corpora.glob("[!.]*")))


def test_any_text_comes_through_whole(workspace: Workspace, tmp_path: Path) -> None:
    """Ids, texts and questions of every script; each question is trained on, judged, or counted."""
    dice = random.Random(16)
    pieces = [piece for piece in (*SCRIPTS, *ODD) if piece.strip()]
    with open(tmp_path / "odd.jsonl", "w", encoding="utf-8") as file:
        for i in range(80):
            row = {
                "_id": f"{dice.choice(SCRIPTS)[:5]} {i}",
                "text": f"{dice.choice(pieces)} {i}",
                "query": [f"{dice.choice(pieces)[:200]} {i}", f"{i}?"],
            }
            file.write(json.dumps(row) + "\n")
    added = adding.add(workspace, tmp_path / "odd.jsonl", name=SCRIPTS[2])
    assert added.corpus.n_documents == 80
    train = sum(map(len, questions_of(workspace, added)["train"].values()))
    dev = sum(map(len, judged(workspace, added, "dev").values()))
    assert train + dev == 160
    assert (len(judged(workspace, added, "dev")), added.left_out) == (50, {})
