"""Every measure equals pytrec_eval-terrier's, on random graded judgments with ties, missing and extra queries."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from cdp.base.errors import ConfigError, InputError
from cdp.evaluation import ndcg, score
from cdp.evaluation.measures import REPORTED, compute, from_ranking

pytestmark = pytest.mark.slow

DOCUMENTS = ["a", "b", "B", "10", "9", "é", "文", "zz", "\U0001f600", "\uff00", "d-1", "d_1"]
QUERIES = ["q1", "q2", "q3", "10", "9"]
TREC = {
    "ndcg@10": "ndcg_cut_10",
    "ndcg@3": "ndcg_cut_3",
    "recall@10": "recall_10",
    "recall@2": "recall_2",
    "map@100": "map_cut_100",
    "map@3": "map_cut_3",
    "p@1": "P_1",
    "p@10": "P_10",
}
ASKED = {"ndcg_cut.3,10", "recall.2,10", "map_cut.3,100", "P.1,10", "recip_rank"}

scores = st.one_of(st.sampled_from([0.0, -0.0, 1.0, 1.0, 0.5, -2.0]), st.floats(-100, 100), st.floats(-1, 1, width=16))
runs = st.dictionaries(st.sampled_from([*QUERIES, "extra"]), st.dictionaries(st.sampled_from(DOCUMENTS), scores))
judgments = st.dictionaries(
    st.sampled_from(QUERIES),
    # Not below -1: there pytrec_eval writes outside its arrays and takes the process down.
    st.dictionaries(st.sampled_from([*DOCUMENTS, "unseen"]), st.integers(-1, 4), min_size=1),
    min_size=1,
)


@settings(max_examples=50, deadline=None)
@given(runs, judgments)
def test_each_query_scores_as_in_trec_eval(run: dict, qrels: dict) -> None:
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    ours = score(run, qrels, [*TREC, "mrr@10"])
    for name, trec_name in TREC.items():
        assert set(ours[name].per_query) == set(qrels)
        for query, value in ours[name].per_query.items():
            assert value == pytest.approx(theirs.get(query, {}).get(trec_name, 0.0), abs=1e-9), (name, query)
        assert ours[name].mean == pytest.approx(np.mean(list(ours[name].per_query.values())), abs=1e-12)
    for query, value in ours["mrr@10"].per_query.items():
        reciprocal = theirs.get(query, {}).get("recip_rank", 0.0)
        assert value == pytest.approx(reciprocal if reciprocal > 0.0999 else 0.0, abs=1e-9)
    assert ours["p@1"].absent == sum(not run.get(query) for query in qrels)


@pytest.mark.slow
def test_long_runs_with_many_ties_score_as_in_trec_eval() -> None:
    random = np.random.default_rng(5)
    run, qrels = {}, {}
    for i in range(60):
        documents = random.choice(2000, 200, replace=False)
        run[f"q{i}"] = {f"d{d}": float(s) for d, s in zip(documents, random.integers(0, 25, 200), strict=True)}
        judged = np.concatenate([documents[:30], random.integers(0, 2000, 10)])
        qrels[f"q{i}"] = {f"d{d}": int(g) for d, g in zip(judged, random.integers(-1, 4, 40), strict=True)}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)
    ours = score(run, qrels, list(TREC))
    for name, trec_name in TREC.items():
        for query in qrels:
            assert ours[name].per_query[query] == pytest.approx(theirs[query][trec_name], abs=1e-9)


def test_among_equal_scores_the_higher_id_stands_first() -> None:
    run = {"q": {"a": 1.0, "b": 1.0}}
    assert ndcg(run, {"q": {"b": 1}}).mean == 1.0
    assert ndcg(run, {"q": {"a": 1}}).mean == pytest.approx(1 / np.log2(3))


def test_scores_are_compared_in_single_precision() -> None:
    assert ndcg({"q": {"a": 1.0 + 1e-9, "b": 1.0}}, {"q": {"b": 1}}).mean == 1.0
    assert ndcg({"q": {"a": 1e300, "b": 1e290}}, {"q": {"b": 1}}).mean == 1.0


def test_a_grade_below_zero_counts_as_zero() -> None:
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    expected = score(run, {"q": {"a": 0, "b": 0, "c": 2}}, list(TREC))
    for grade in (-1, -2, -100):
        found = score(run, {"q": {"a": grade, "b": grade, "c": 2}}, list(TREC))
        assert {name: value.mean for name, value in found.items()} == {n: v.mean for n, v in expected.items()}


def test_a_judged_query_without_results_counts_zero() -> None:
    found = ndcg({"q1": {"a": 1.0}, "q2": {}}, {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"b": 2}, "not judged": {}})
    assert found.per_query == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert found.mean == pytest.approx(1 / 3)
    assert found.absent == 2


def test_nothing_judged_gives_an_empty_result() -> None:
    assert ndcg({"q": {"a": 1.0}}, {}).per_query == {}
    assert ndcg({}, {"q": {"a": 1}}).mean == 0.0


def test_a_score_that_is_not_a_number_is_refused_with_its_query() -> None:
    with pytest.raises(InputError, match="'q2'"):
        ndcg({"q1": {"a": 1.0}, "q2": {"a": 2.0, "b": float("nan")}}, {"q1": {"a": 1}, "q2": {"a": 1}})


@pytest.mark.parametrize("name", ["ndcg", "ndcg@0", "bpref@10", "ndcg@ten", ""])
def test_an_unknown_measure_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a measure"):
        score({}, {}, [name])


def test_a_cut_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        ndcg({}, {}, k=0)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_the_array_form_equals_the_dictionary_form(data: st.DataObject) -> None:
    n_queries, depth, n_documents = 4, data.draw(st.integers(1, 12)), 20
    retrieved = np.full((n_queries, depth), -1)
    for row in range(n_queries):
        found = data.draw(st.lists(st.integers(0, n_documents - 1), unique=True, max_size=depth))
        retrieved[row, : len(found)] = found
    grades = [
        data.draw(st.dictionaries(st.integers(0, n_documents - 1), st.integers(0, 3), min_size=1))
        for _ in range(n_queries)
    ]
    pairs = [(row, document, grade) for row, g in enumerate(grades) for document, grade in g.items() if grade > 0]
    query, document, grade = np.array(pairs, np.int64).reshape(-1, 3).T
    names = [f"q{row}" for row in range(n_queries)]
    ours = compute(from_ranking(retrieved, names, query, document, grade), REPORTED)
    run = {
        f"q{row}": {f"d{d}": float(depth - place) for place, d in enumerate(retrieved[row]) if d >= 0}
        for row in range(n_queries)
    }
    expected = score(run, {f"q{row}": {f"d{d}": g for d, g in grades[row].items()} for row in range(4)}, list(REPORTED))
    for name in REPORTED:
        np.testing.assert_allclose(ours[name], list(expected[name].per_query.values()), atol=1e-12)
