"""The difference of two systems by a judge model, corrected by people's labels of a sample of the queries."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.evaluation.calibration import FEWEST, Corrected, correct, estimate
from perf.judging import JUDGES, Pool, arrays, simulate


def collection(n_queries: int = 300, seed: int = 7) -> Pool:
    """Two systems that find each query's two relevant documents with different chances, and share some of the rest."""
    draw = np.random.default_rng(seed)
    queries = []
    for _ in range(n_queries):
        rankings = []
        for chance in (0.8, 0.5):
            found = [document for document in (0, 1) if draw.random() < chance]
            others = draw.permutation(np.arange(2, 40))[: 10 - len(found)].tolist()
            rankings.append(draw.permutation([*found, *others]).tolist())
        pooled = dict.fromkeys([*rankings[0], *rankings[1]])
        overlap = [float(draw.beta(5, 2) if document in (0, 1) else draw.beta(2, 5)) for document in pooled]
        queries.append((rankings[0], rankings[1], {0, 1}, overlap))
    return arrays(queries)


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
def test_the_corrected_interval_covers_the_true_difference_for_every_judge(judge: str) -> None:
    result = simulate(collection(), JUDGES[judge], 60, 1000, seed=1)
    assert 0.925 <= result["covers"] <= 0.97  # 95%, standard error 0.7
    # Unbiased, where the judge itself is not.
    assert abs(result["corrected"] - result["truth"]) < 3.5 * result["half"] / 1.96 / np.sqrt(1000)
    assert result["half"] <= 1.05 * result["half of labels alone"]


def test_without_correction_a_biased_judge_is_confidently_wrong() -> None:
    biased = simulate(collection(), JUDGES["biased to the dense retriever: 40% of its results"], 60, 200, seed=2)
    assert biased["uncorrected covers"] < 0.2
    assert biased["judge"] - biased["truth"] > 10


def test_a_perfect_judge_and_a_useless_one_bound_the_interval() -> None:
    draw = np.random.default_rng(3)
    people = draw.normal(5, 30, 400)
    n = 50
    perfect = estimate(people, people[:n], people[:n])
    alone = 2.01 * people[:n].std(ddof=1) / np.sqrt(n)
    # As good as if people had labelled all 400.
    assert perfect.half == pytest.approx(2.01 * people[:n].std(ddof=1) / np.sqrt(400), rel=0.01)
    assert perfect.weight == pytest.approx(1.0)
    noise = draw.normal(0, 30, 400)
    useless = estimate(noise, people[:n], noise[:n])
    assert useless.half == pytest.approx(alone, rel=0.08)
    constant = np.zeros(400)
    assert estimate(constant, people[:n], constant[:n]).mean == pytest.approx(people[:n].mean())


@pytest.mark.slow
def test_labels_without_any_difference_do_not_make_it_certain_that_there_is_none() -> None:
    """One query in ten differs, by 40 points, and no labelled one happened to: the interval holds the truth."""
    draw = np.random.default_rng(6)
    covered = drawn = 0
    for _ in range(4000):
        people = 40.0 * (draw.random(300) < 0.1)
        model = np.where(draw.random(300) < 0.7, people, 40.0 * (draw.random(300) < 0.1))
        if people[:FEWEST].any():
            continue
        found = estimate(model, people[:FEWEST], model[:FEWEST])
        drawn += 1
        covered += abs(people.mean() - found.mean) <= found.half
    assert drawn > 1000
    assert covered / drawn > 0.95
    none = correct({f"q{i}": float(i % 2) for i in range(50)}, {f"q{i}": 0.0 for i in range(FEWEST)})
    assert none is not None
    assert none.half > 0
    assert none.more_labels(0.1) > 0


def test_the_weight_of_a_query_is_fitted_to_the_others() -> None:
    draw = np.random.default_rng(4)
    model = draw.normal(0, 1, 40)
    people = model[:12] * 0.5 + draw.normal(0, 1, 12)
    others = [np.delete(np.arange(12), i) for i in range(12)]
    slopes = [np.cov(people[rest], model[rest])[0, 1] / np.var(model[rest], ddof=1) for rest in others]
    residual = people - np.array(slopes) * (model[:12] - model.mean())
    assert estimate(model, people, model[:12]).mean == pytest.approx(residual.mean())


def test_missing_labels_are_counted_until_the_interval_is_narrow_enough() -> None:
    result = Corrected(500, 60, 60, 0.0, 7.0, 0.8, sd_people=35.0, sd_residual=25.0)
    for target in (4.0, 2.0):
        more = result.more_labels(target)
        assert result._half_at(60 + more) <= target < result._half_at(59 + more)
    assert result.more_labels(2.0) > 1100  # more than there are queries: 1.96 · 35 / √n alone
    assert result.more_labels(8.0) == 0


def test_too_few_labels_give_no_interval_and_strangers_are_ignored() -> None:
    judged = {f"q{i}": float(i % 7) for i in range(50)}
    people = {f"q{i}": float(i % 5) for i in range(FEWEST)}
    assert correct(judged, dict(list(people.items())[:-1])) is None
    known = correct(judged, people | {"another query": 99.0})
    assert known is not None
    assert (known.n_queries, known.n_labelled) == (50, FEWEST)
    assert known.interval[0] < known.mean < known.interval[1]
