"""TREC run and qrels files: written so that trec_eval reads them, read strictly."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import pytrec_eval

from cdp.errors import InputError
from cdp.evaluation import ndcg
from cdp.evaluation.beir_files import read_qrels
from cdp.evaluation.trec_files import read_run_file, write_qrels_file, write_run_file

RUN = {"q1": {"d2": 0.25, "d1": 1.0, "d3": 0.25}, "q2": {"é": -1e-7}}
QRELS = {"q1": {"d1": 2, "d3": 0}, "q2": {"é": 1}}


def test_what_is_written_is_what_trec_eval_reads(tmp_path: Path) -> None:
    write_run_file(tmp_path / "run.trec", RUN, tag="static-minilm")
    write_qrels_file(tmp_path / "qrels.trec", QRELS)
    with open(tmp_path / "run.trec") as run, open(tmp_path / "qrels.trec") as qrels:
        parsed, judged = pytrec_eval.parse_run(run), pytrec_eval.parse_qrel(qrels)
    assert (parsed, judged) == (RUN, QRELS)
    lines = (tmp_path / "run.trec").read_text().splitlines()
    assert [line.split()[2:4] for line in lines[:3]] == [["d1", "1"], ["d3", "2"], ["d2", "3"]]


def test_files_are_read_back(tmp_path: Path) -> None:
    write_run_file(tmp_path / "run.trec", RUN)
    write_qrels_file(tmp_path / "qrels.txt", QRELS)
    compressed = tmp_path / "run.trec.gz"
    compressed.write_bytes(gzip.compress((tmp_path / "run.trec").read_bytes()))
    assert read_run_file(tmp_path / "run.trec") == read_run_file(compressed) == RUN
    assert ndcg(RUN, read_qrels(tmp_path / "qrels.txt").grades).mean == 1.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q1 Q0 d9 4 0.1", "line 5: There are 5 columns"),
        ("q1 Q0 d9 4 high tag", "line 5: The score 'high' is not a number"),
        ("q1 Q0 d9 4 nan tag", "line 5: The score 'nan'"),
        ("q1 Q0 d1 4 0.1 tag", "line 5: 'd1' was already retrieved for query 'q1'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "run.trec"
    write_run_file(path, RUN)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError) as caught:
        read_run_file(path)
    assert said in str(caught.value)


def test_an_empty_run_and_ids_with_spaces_are_refused(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("\n")
    with pytest.raises(InputError, match="no result"):
        read_run_file(tmp_path / "run.trec")
    with pytest.raises(InputError, match="white space"):
        write_run_file(tmp_path / "run.trec", {"q 1": {"d": 1.0}})
