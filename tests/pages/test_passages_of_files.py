"""Passages of files: what is judged and counted per passage says so, on the pages and in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from cdp import cli, query_sets
from cdp.base.workspace import Workspace, read_json, write_json
from cdp.corpus import looking
from cdp.results import board
from cdp.services import corpora, jobs, queries
from tests.pages.conftest import Open
from tests.pages.support import evaluated
from tests.pages.test_every_page_in_every_state import words


def plain(at: AppTest) -> str:
    return words(at).replace("\\", "")


FIRST, SECOND = "evaluation-1-first", "evaluation-2-second"


@pytest.fixture
def judged(workspace: Workspace) -> Workspace:
    """Two evaluations on passages of files (60.00 and 70.00 per file), and one on whole documents."""
    for job, retriever, per_file, score in ((FIRST, "static-minilm", 0.6, 0.4), (SECOND, "bm25", 0.7, 0.5)):
        evaluated(workspace, job, retriever, [score, score / 2] * 10)
        path = workspace.job(job) / "results" / "evaluation.json"
        record = read_json(path)
        more = {"ndcg@10_of_files": per_file, "mrr@10": 0.5, "map@100": 0.4}
        write_json(path, {**record, "measures": {**record["measures"], **more}})
    evaluated(workspace, "evaluation-3-whole", "static-minilm", [0.5] * 20, benchmark="whole")
    return workspace


def test_compare_says_what_was_judged_with_the_figure_per_file(judged: Workspace, open_page: Open) -> None:
    at = open_page("compare", benchmark="demo")
    assert not at.exception
    assert list(at.dataframe[0].value["Per file"]) == ["70.00", "60.00"]
    said = plain(at)
    assert "2 recipes. Judged per passage." in said
    assert "NDCG@10 in percent, judged per passage." in said
    assert f"demo: {board.PER_PASSAGE}" in said
    at = open_page("compare", benchmark="whole")
    assert "Per file" not in at.dataframe[0].value.columns
    assert "judged per document." in plain(at)
    assert "passage" not in plain(at)


def test_the_terminal_says_it_too(judged: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*command: str) -> str:
        assert cli.main(list(command)) == 0
        return capsys.readouterr().out

    listed = said("results", "list")
    assert "per file  judged per" in listed
    assert any("70.00  passage" in line for line in listed.splitlines() if "BM25" in line)
    assert any("–  document" in line for line in listed.splitlines() if "whole" in line)
    compared = said("results", "compare", "--baseline", "static-minilm")
    assert "demo per passage" in compared
    assert "demo per file" in compared
    assert f"demo: {board.PER_PASSAGE}" in compared
    rows = json.loads(said("results", "compare", "--baseline", "static-minilm", "--format", "json"))["rows"]
    assert [(row["benchmark"], row["judged_per"], row["per_file"]) for row in rows] == [
        ("demo", "passage", 60.0), ("demo", "passage", 70.0), ("whole", "document", None),
    ]  # fmt: skip


def test_a_finished_evaluation_shows_what_the_terminal_does(
    judged: Workspace, open_page: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["jobs", "wait", SECOND]) == 0
    out = capsys.readouterr().out
    at = open_page("jobs", job=SECOND)
    assert not at.exception
    table = next(d.value for d in at.dataframe if "Result" in d.value.columns)
    shown = dict(zip(table["Result"], table["Value"], strict=True))
    assert (shown["NDCG@10 per file (%)"], shown["Judged per"]) == ("70.00", "passage")
    assert {"NDCG@10 (%)", "MRR@10 (%)", "MAP@100 (%)"} <= shown.keys()
    assert "NDCG@10 per file (%): 70.00" in out
    assert "judged per: passage" in out
    assert board.PER_PASSAGE in out
    assert board.PER_PASSAGE in plain(at)
    assert jobs.outcome(judged, "evaluation-3-whole")["judged_per"] == "document"


@pytest.fixture
def cut(workspace: Workspace, tmp_path: Path) -> str:
    """The corpus of one file that was cut, with two query sets of two queries per passage."""
    text = " ".join(f"On day {n} the ship sailed {n} miles to the island of {n} trees." for n in range(400))
    (tmp_path / "log.txt").write_text(text)
    corpus = corpora.add(workspace, tmp_path / "log.txt").corpus
    ids = [document.id for document in looking.page(workspace, corpus.id, 0, 50)]
    for method in ("diverse", "paraphrase"):
        asked = [(name, [f"{method} where on {name}", f"{method} who at {name}"]) for name in ids]
        query_sets.import_queries(asked, workspace, corpus.id, method, kind="synthetic", method=method)
    return corpus.id


def test_writing_and_measuring_count_passages(workspace: Workspace, cut: str, open_page: Open) -> None:
    at = open_page("queries", corpus=cut, tab="write")
    assert "Queries per passage" in [field.label for field in at.number_input]
    assert "Queries per document" not in [field.label for field in at.number_input]
    n = corpora.resolve_corpus(workspace, cut).n_documents
    assert f"{n} passages. No LLM is asked" in plain(at)
    chosen = [q.id for q in queries.list_query_sets(workspace)]
    said = plain(open_page("queries", corpus=cut, tab="quality", sets=chosen))
    assert "Computed on the first M queries of every passage." in said
    assert "queries per document" not in said


def test_a_test_on_files_is_planned_per_passage(cut: str, open_page: Open) -> None:
    at = open_page("decide", corpus=cut, test="1")
    said = plain(at)
    assert "for a part of the passages, and trains on one and on several per passage" in said
    assert "Passages" in [metric.label for metric in at.metric]
