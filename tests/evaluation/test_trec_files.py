"""TREC run and qrels files: written so that trec_eval reads them, in its order."""

from __future__ import annotations

import pytest
import pytrec_eval

from cdp.base.errors import InputError
from cdp.evaluation import ndcg
from cdp.evaluation.results import qrels_lines, run_lines

RUN = {"q1": {"d2": 0.25, "d1": 1.0, "d3": 0.25}, "q2": {"é": -1e-7}}
QRELS = {"q1": {"d1": 2, "d3": 0}, "q2": {"é": 1}}


def test_what_is_written_is_what_trec_eval_reads() -> None:
    run, qrels = list(run_lines(RUN, tag="static-minilm")), list(qrels_lines(QRELS))
    assert (pytrec_eval.parse_run(run), pytrec_eval.parse_qrel(qrels)) == (RUN, QRELS)
    assert [line.split()[2:4] for line in run[:3]] == [["d1", "1"], ["d3", "2"], ["d2", "3"]]
    assert run[0] == "q1 Q0 d1 1 1.0 static-minilm\n"


def test_what_was_read_scores_the_same() -> None:
    theirs = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(qrels_lines(QRELS)), {"ndcg_cut.10"})
    found = theirs.evaluate(pytrec_eval.parse_run(run_lines(RUN)))
    assert {query: values["ndcg_cut_10"] for query, values in found.items()} == ndcg(RUN, QRELS).per_query


@pytest.mark.parametrize("name", ["q 1", "q\t1", "", " q", "q\n", "q\u00a01"])
def test_ids_that_the_format_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="white space"):
        list(run_lines({name: {"d": 1.0}}))
    with pytest.raises(InputError, match="white space"):
        list(qrels_lines({"q": {name: 1}}))
