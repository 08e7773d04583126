"""Folders of three tables, as MTEB, NanoBEIR, LongEmbed, ir_datasets and pytrec_eval lay them out, are benchmarks."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cdp.base.errors import InputError
from cdp.base.workspace import Workspace
from cdp.benchmarks import load_benchmark, manifests
from cdp.corpus.checks import ids_in
from cdp.query_sets import iter_lines
from cdp.services import adding, benchmarks
from tests.benchmarks.published import DOCUMENTS, QUERIES, lines, parquet

JUDGED = {"q1": {"d1": 2}, "q2": {"d3": 1, "d2": 0}}
ROWS = [{"query-id": q, "corpus-id": d, "score": float(grade)} for q, ds in JUDGED.items() for d, grade in ds.items()]
PLAIN: list[dict[str, Any]] = [{k: v for k, v in row.items() if k != "metadata"} for row in DOCUMENTS]
ASKED: list[dict[str, Any]] = [{"_id": row["_id"], "text": row["text"]} for row in QUERIES]


def renamed(rows: list[dict[str, Any]], **names: str) -> list[dict[str, Any]]:
    return [{names.get(name.replace("-", "_"), name): value for name, value in row.items()} for row in rows]


def mteb(split: str = "test") -> dict[str, bytes]:
    ending = f"{split}-00000-of-00001.parquet"
    return {
        f"corpus/{ending}": parquet(PLAIN),
        f"queries/{ending}": parquet(ASKED),
        f"qrels/{ending}": parquet(ROWS),
        "README.md": b"---\nconfigs: []\n---\n",
    }


BEIR = {"corpus.jsonl": lines(PLAIN), "queries.jsonl": lines(ASKED)}
TREC = "".join(f"{row['query-id']}\t0\t{row['corpus-id']}\t{row['score']:g}\n" for row in ROWS).encode()
FOLDERS = {
    "mteb": mteb(),
    "mteb-data": {**mteb(), "data/test-00000-of-00001.parquet": parquet(ROWS)},
    "nanobeir": mteb("train"),
    "json-lines": {**BEIR, "qrels/test.jsonl": lines(ROWS)},
    "json": {**BEIR, "qrels/test.json": json.dumps(JUDGED).encode()},
    "beir-flat": {**BEIR, "test.tsv": TREC},
    "longembed": {
        "corpus.jsonl": lines(renamed(PLAIN, _id="doc_id")),
        "queries.jsonl": lines(renamed(ASKED, _id="qid")),
        "qrels.jsonl": lines(renamed(ROWS, query_id="qid", corpus_id="doc_id")),
    },
    "ir_datasets": {
        "docs.jsonl": lines(renamed(PLAIN, _id="doc_id")),
        "queries.tsv": "".join(f"{row['_id']}\t{row['text']}\n" for row in ASKED).encode(),
        "qrels.tsv": "".join(f"{row['query-id']}\t{row['corpus-id']}\t{row['score']:g}\t0\n" for row in ROWS).encode(),
    },
    "ir_datasets-trec": {
        "docs.jsonl": lines(renamed(PLAIN, _id="doc_id")),
        "queries.jsonl": lines(renamed(ASKED, _id="query_id")),
        "qrels.txt": TREC,
    },
    "ranx": {**BEIR, "qrels.parquet": parquet(renamed(ROWS, query_id="q_id", corpus_id="doc_id"))},
}


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


# Judgments whose cells hold several documents, as pandas and others save them.
LISTS = {
    "python.csv": b"query-id,corpus-id,score\nq1,\"['d1', 'd2']\",1\nq2,d3,1\n",
    "json.csv": b'query-id,corpus-id,score\nq1,"[""d1"", ""d2""]",1\nq2,d3,1\n',
    "tabs.tsv": b"query-id\tcorpus-id\tscore\nq1\t['d1', 'd2']\t1\nq2\td3\t1\n",
    "lists.jsonl": lines(
        [{"query-id": "q1", "corpus-id": ["d1", "d2"], "score": 1}, {"query-id": "q2", "corpus-id": "d3", "score": 1}]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_a_cell_that_holds_a_list_judges_each_of_its_documents(name: str, workspace: Workspace, tmp_path: Path) -> None:
    ending = Path(name).suffix
    folder = laid_out(tmp_path / "judged", {**BEIR, f"qrels/test{ending}": LISTS[name]})

    info = benchmarks.add(workspace, folder)

    assert load_benchmark(workspace.benchmark(info.name), "test").qrels == {"q1": {"d1": 1, "d2": 1}, "q2": {"d3": 1}}


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_list_without_commas_is_refused(ending: str, workspace: Workspace, tmp_path: Path) -> None:
    mark = "," if ending == "csv" else "\t"
    written = f"query-id{mark}corpus-id{mark}score\nq1{mark}['d1' 'd2']{mark}1\n".encode()

    with pytest.raises(InputError, match="no commas"):
        benchmarks.add(workspace, laid_out(tmp_path / "judged", {**BEIR, f"qrels/test.{ending}": written}))


@pytest.mark.parametrize(("cell", "ids"), [("[12, 15]", ["12", "15"]), ("12", ["12"]), ("[draft] a", ["[draft] a"])])
def test_the_ids_of_a_cell(cell: str, ids: list[str]) -> None:
    assert ids_in(cell) == ids


@pytest.mark.slow
@pytest.mark.parametrize("name", FOLDERS)
def test_each_layout_gives_the_same_benchmark(name: str, workspace: Workspace, tmp_path: Path) -> None:
    info = benchmarks.add(workspace, laid_out(tmp_path / name, FOLDERS[name]))
    stored = load_benchmark(workspace.benchmark(info.name), "test")
    assert (info.name, list(info.splits)) == (name, ["test"])
    assert stored.qrels == JUDGED
    assert list(zip(stored.document_ids, stored.documents, strict=True)) == [
        (row["_id"], f"{row['title']} {row['text']}".strip()) for row in DOCUMENTS
    ]
    notes = manifests.read(workspace.benchmark(info.name)).notes
    assert "Queries without a judgment in this split, left out: 1." in notes
    assert any("is taken as test" in note for note in notes) == (name == "nanobeir")


@pytest.mark.slow
@pytest.mark.parametrize("files", [FOLDERS["mteb"], {**BEIR, "qrels/test.tsv": TREC}], ids=("mteb", "beir"))
def test_a_zip_of_folders_in_folders(files: dict[str, bytes], workspace: Workspace, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "sea.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(f"datasets/sea/{name}", data)

    assert load_benchmark(workspace.benchmark(benchmarks.add(workspace, tmp_path / "sea.zip").name)).qrels == JUDGED
    added = adding.add(workspace, tmp_path / "sea.zip")
    assert (added.corpus.n_documents, added.project.name) == (3, "sea")
    assert added.benchmark is not None


@pytest.mark.slow
def test_a_project_of_such_a_folder_has_its_judgments_and_training_queries(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Queries and judgments used to be taken for documents, or for rows that could not be read."""
    trained = parquet([{"query-id": "t1", "corpus-id": "d2", "score": 1.0}])
    folder = laid_out(tmp_path / "sea", {**mteb(), "qrels/train-00000-of-00001.parquet": trained})
    assert adding.examine(workspace, folder).splits == ("test", "train")

    added = adding.add(workspace, folder)
    assert (added.corpus.n_documents, added.left_out) == (3, {})
    assert added.benchmark is not None
    assert dict(added.benchmark.judged) == {"test": 2, "train": 1}
    (made,) = added.query_sets
    assert [line["queries"] for line in iter_lines(workspace, made.id)] == [[QUERIES[2]["text"]]]
    assert not [sentence for sentence in added.stated if "left out" in sentence]


@pytest.mark.slow
def test_judged_documents_that_are_missing_are_counted(workspace: Workspace, tmp_path: Path) -> None:
    rows = [*ROWS, {"query-id": "q1", "corpus-id": "d9", "score": 1.0}]
    folder = laid_out(tmp_path / "sea", {**mteb(), "qrels/test-00000-of-00001.parquet": parquet(rows)})
    info = benchmarks.add(workspace, folder)
    assert any("'d9'" in warning for warning in info.warnings)
    assert load_benchmark(workspace.benchmark("sea")).qrels["q1"] == {"d1": 2, "d9": 1}


@pytest.mark.parametrize("names", [("a/{}", "b/{}"), ("de-{}", "en-{}")], ids=("forums", "languages"))
def test_several_benchmarks_in_a_folder_are_not_one(
    names: tuple[str, str], workspace: Workspace, tmp_path: Path
) -> None:
    """Documents of equal ids in two forums, or languages, would be one document."""
    for name in names:
        laid_out(tmp_path / "sea", {name.format(path): data for path, data in mteb().items()})
    for add in (benchmarks.add, adding.add):
        with pytest.raises(InputError, match="holds 2 benchmarks"):
            add(workspace, tmp_path / "sea")


def test_a_zip_of_several_benchmarks_is_not_one(workspace: Workspace, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "sea.zip", "w") as archive:
        for forum in ("a", "b"):
            for name, data in {**BEIR, "qrels/test.tsv": TREC}.items():
                archive.writestr(f"cqadupstack/{forum}/{name}", data)
    for add in (benchmarks.add, adding.add):
        with pytest.raises(InputError, match=r"sea\.zip holds 2 benchmarks \(a, b\)"):
            add(workspace, tmp_path / "sea.zip")


def test_files_of_judgments_that_are_not_read_are_named(workspace: Workspace, tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "sea", {**BEIR, "qrels/test.tsv": TREC, "qrels/dev.json": b"{}"})
    assert "Not read in qrels: dev.json. Splits are .tsv or .txt files." in load_benchmark(folder).warnings
