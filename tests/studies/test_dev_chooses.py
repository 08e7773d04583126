"""What is selected is selected on dev and reported on other queries, also where the two disagree."""

from __future__ import annotations

from typing import Any

from cdp.studies.report import StudyReport, build
from tests.studies.support import made

RATES = (0.001, 0.01)


def report(dev: str) -> StudyReport:
    """Two learning rates: the first scores higher on the reported queries, the second on dev."""
    about, records = made(lambda *_: 5.0, learning_rate="0.001, 0.01", per_doc="1", dev=dev)
    for record in records:
        condition: dict[str, Any] | None = record["condition"]
        if condition is None:
            continue
        second = condition["rate"] == RATES[1]
        record["training"]["evaluations"] = [
            {"step": step, "ndcg@10": 50 + step / 10 + 5 * second} for step in (10, 20)
        ]
        for scores in record["evaluations"].values():
            lower = 0.1 * second
            scores["ndcg@10"] = [value - lower for value in scores["ndcg@10"]]
    return build("study-1", "made up", "finished", about, records)


def test_the_training_and_the_learning_rate_are_those_of_dev() -> None:
    found = report("devset:dev")
    rate, best = found.findings[:2]
    assert rate.startswith("tiny: learning rate 1e-2, dev NDCG@10 57.00 at step 20")
    assert best.startswith("Best training, chosen on dev and reported on average over 3 benchmarks: ")
    (reported,) = [row for row in found.rows if row.condition.rate == RATES[1]]
    (other,) = [row for row in found.rows if row.condition.rate == RATES[0]]
    assert f"NDCG@10 {reported.average:.2f}" in best
    assert (other.average or 0.0) > (reported.average or 0.0), "the reported queries would have chosen the other one"


def test_without_one_dev_split_the_best_is_said_to_be_that_of_the_reported_queries() -> None:
    assert report("").findings[1].startswith("Best training on average over 3 benchmarks: tiny")
    assert report("one:dev, two:dev").findings[1].startswith("Best training on average over 3 benchmarks: tiny")
