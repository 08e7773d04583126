"""Columns of qrels go by the header's names; queries that cannot score, and ids that only look like passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.base.workspace import sha256_file
from cdp.benchmarks import load_benchmark
from cdp.benchmarks.beir_files import digest_of_qrels, read_qrels
from cdp.benchmarks.library import describe
from tests.benchmarks.folders import write_benchmark

JUDGED = {"1": {"3": 1, "4": 0}, "2": {"1": 2}}
ROWS = [("1", "3", "1"), ("1", "4", "0"), ("2", "1", "2")]


def table(header: str, order: tuple[int, ...], rows: list[tuple[str, ...]] = ROWS) -> str:
    lines = ["\t".join(row[at] if at >= 0 else "x" for at in order) for row in rows]
    return "\n".join([*([header] if header else []), *lines]) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        table("", (0, 1, 2)),
        table("query-id\tcorpus-id\tscore", (0, 1, 2)),
        table("corpus-id\tquery-id\tscore", (1, 0, 2)),
        table("score\tcorpus_id\tqid", (2, 1, 0)),
        table("label\tquery_id\tdocid\tannotator", (2, 0, 1, -1)),
        table("doc_id\tquestion\trelevance", (1, 0, 2)),
        table("question\tanswer\tRelevance", (0, 1, 2)),
        table("query_id\titeration\tdoc_id\trel", (0, -1, 1, 2)),
        table("", (0, -1, 1, 2)).replace("\t", " "),
        table("query-id\tcorpus-id\tscore", (0, 1, 2), [("1", "3", "yes"), ("1", "4", "no"), ("2", "1", "2")]),
    ],
)
def test_columns_go_by_the_names_of_the_header(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test.tsv"
    path.write_text(text, encoding="utf-8")
    assert read_qrels(path).grades == JUDGED


def test_words_for_grades_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("q1\td1\trelevant\nq1\td2\tirrelevant\n", encoding="utf-8")
    assert read_qrels(path).grades == {"q1": {"d1": 1, "d2": 0}}


def test_queries_without_a_relevant_document_are_counted(tmp_path: Path) -> None:
    qrels = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t0\nq3\td3\t-1\n"
    folder = write_benchmark(tmp_path / "b", qrels={"test": qrels})
    for warnings in (load_benchmark(folder).warnings, describe(folder).warnings):
        (said,) = [w for w in warnings if "no relevant document" in w]
        assert "2 of 3 judged queries" in said
        assert "q2, q3" in said
    whole = write_benchmark(tmp_path / "whole")
    assert not [w for w in load_benchmark(whole).warnings if "no relevant document" in w]


def test_results_on_columns_in_another_order_are_of_an_earlier_version(tmp_path: Path) -> None:
    """Such a file was read by position before; it kept its bytes, and its judgments are others now."""
    rows = [("q1", "d1", "1"), ("q2", "d2", "1")]
    usual, swapped, bare = (
        write_benchmark(tmp_path / name, qrels={"test": table(header, order, rows)})
        for name, header, order in (
            ("usual", "query-id\tcorpus-id\tscore", (0, 1, 2)),
            ("swapped", "corpus-id\tquery-id\tscore", (1, 0, 2)),
            ("bare", "", (0, 1, 2)),
        )
    )
    for folder in (usual, bare):
        assert digest_of_qrels(folder / "qrels" / "test.tsv") == sha256_file(folder / "qrels" / "test.tsv")
    path = swapped / "qrels" / "test.tsv"
    assert digest_of_qrels(path) != sha256_file(path)
    assert load_benchmark(swapped).qrels == load_benchmark(usual).qrels
