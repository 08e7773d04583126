"""Each figure's numbers, computed once more in plain numpy from the scores of single queries that the study kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cdp.base.workspace import Workspace
from cdp.charts.holds import FIGURES
from cdp.principle.tables import TABLES
from cdp.results import arms, board, numbers
from cdp.results.arms import FigureData
from cdp.studies import records
from tests.charts import small_study, test_holds
from tests.charts.small_study import CW

pytestmark = pytest.mark.slow

# (method, Q/Doc, weighting, query source, held) of the retriever "tiny", as ``small_study.ADDED`` has them.
Arm = tuple[str, int, str, str, str]
Scores = dict[tuple[Arm, str], np.ndarray]


@pytest.fixture
def study(workspace: Workspace, tmp_path: Path) -> tuple[FigureData, Scores]:
    """The evidence, and {(arm, benchmark): NDCG@10 in percent (seeds, queries)} read from the files of the study."""
    small_study.make(workspace, tmp_path)
    found: dict[tuple[Arm, str], dict[int, list[float]]] = {}
    for record in records.list_records(workspace.job("study-1")):
        cell = record["condition"]
        if cell is None or cell["retriever"] != "tiny":
            continue
        arm = (cell["source"], cell["per_doc"], cell["weighting"], cell["query_source"], cell["held"])
        for evaluation in record["evaluations"].values():
            found.setdefault((arm, evaluation["benchmark"]), {})[cell["seed"]] = evaluation["ndcg@10"]

    scores = {key: 100 * np.array([of[seed] for seed in sorted(of)]) for key, of in found.items()}
    return arms.own(workspace, board.list_evaluations(workspace)), scores


def plain(method: str, per_doc: int) -> Arm:
    return method, per_doc, "none", "query-only", ""


def around(per_query: np.ndarray, degrees: float, variance: float) -> tuple[float, float]:
    """Student's 95% interval of the mean."""
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    return float(per_query.mean() - reach), float(per_query.mean() + reach)


def of_score(runs: np.ndarray) -> tuple[float, float, float]:
    """(mean, low, high) of (seeds, queries) whose seeds shift all queries alike: both variances add up."""
    per_query, means = runs.mean(axis=0), runs.mean(axis=1)
    of_queries, of_seeds = per_query.var(ddof=1) / len(per_query), means.var(ddof=1) / len(means)
    both = of_queries + of_seeds
    degrees = both**2 / (of_queries**2 / (len(per_query) - 1) + of_seeds**2 / (len(means) - 1))
    return float(runs.mean()), *around(per_query, degrees, both)


def of_difference(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """(mean, low, high) of the paired differences; seeds, which shift both alike, cancel: the paired t-test."""
    per_query = (first - second).mean(axis=0)
    variance = per_query.var(ddof=1) / len(per_query)
    return float(per_query.mean()), *around(per_query, len(per_query) - 1, variance)


def rows(found: list[dict[str, Any]], *keys: str, **wanted: Any) -> dict[Any, tuple[float, float, float]]:
    """{values of ``keys``: (NDCG@10, low, high)} of the rows that have what is ``wanted``."""
    chosen = [row for row in found if all(row[name] == given for name, given in wanted.items())]
    return {tuple(row[key] for key in keys): (row["ndcg"], row["low"], row["high"]) for row in chosen}


def same(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == pytest.approx(value, abs=1e-9), key


def test_scores_with_their_intervals(study: tuple[FigureData, Scores]) -> None:
    evidence, scores = study
    expected = {(name, m): of_score(scores[plain("diverse", m), name]) for name in CW for m in (1, 3, 5)}
    found = rows(numbers.ndcg_over_qdoc(evidence), "benchmark", "per_doc", method="diverse")
    same({key: value for key, value in found.items() if key[0] in CW}, expected)
    means = {m: np.mean([scores[plain("diverse", m), name].mean() for name in CW]) for m in (1, 3, 5)}
    assert {key[1]: value for key, value in found.items() if key[0] not in CW} == {
        m: (pytest.approx(value), None, None) for m, value in means.items()
    }

    names = {"tiny · diverse × 3 · cw": ("diverse", 3, "cw", "query-only", ""),
             "tiny · diverse × 3 · equal pairs": ("diverse", 3, "none", "query-only", "equal pairs"),
             "tiny · paraphrase × 3": plain("paraphrase", 3)}  # fmt: skip
    for name, arm in names.items():
        of_arm = rows(numbers.methods_by_benchmark(evidence), "benchmark", arm=name)
        same({key[0]: value for key, value in of_arm.items() if key[0] in CW},
             {benchmark: of_score(scores[arm, benchmark]) for benchmark in CW})  # fmt: skip


def test_differences_with_their_intervals(study: tuple[FigureData, Scores]) -> None:
    evidence, scores = study
    expected = {(name, m): of_difference(scores[plain("diverse", m), name], scores[plain("paraphrase", m), name])
                for name in CW for m in (1, 3)}  # fmt: skip
    same(rows(numbers.diverse_against_paraphrase(evidence), "benchmark", "per_doc"), expected)

    (gain,) = (row for row in numbers.gain_by_retriever(evidence) if row["retriever"] == "tiny")
    assert gain["points"] == pytest.approx(np.mean([expected[name, 3][0] for name in CW]))

    weighted = ("diverse", 3, "cw", "query-only", "")
    minus = {(name,): of_difference(scores[weighted, name], scores[plain("diverse", 3), name]) for name in CW}
    found = rows(numbers.weights_by_benchmark(evidence), "benchmark", weighting="cw")
    same({key: value for key, value in found.items() if key[0] in CW}, minus)

    cells = [row for row in numbers.train_by_evaluate(evidence) if row["weighting"] == "cw" and row["benchmark"] in CW]
    before = {name: scores[plain("diverse", 3), name].mean() for name in CW}
    assert {row["benchmark"]: row["change"] for row in cells} == {
        name: pytest.approx(100 * (scores[weighted, name].mean() / before[name] - 1)) for name in CW
    }


def test_what_is_laid_over_content_words(study: tuple[FigureData, Scores]) -> None:
    evidence, scores = study
    controls: dict[str, Callable[[int], Arm]] = {
        "diverse_minus_paraphrase": lambda m: plain("paraphrase", m), "qdoc_minus_one": lambda _: plain("diverse", 1),
    }  # fmt: skip
    depths = {"diverse_minus_paraphrase": (1, 3), "qdoc_minus_one": (3, 5)}
    expected = {
        (kind, m, name): float((scores[plain("diverse", m), name] - scores[control(m), name]).mean())
        for kind, control in controls.items()
        for m in depths[kind]
        for name in CW
    }
    found = {(row["kind"], row["per_doc"], row["dataset"]): row["points"] for row in numbers.gain_over_cw(evidence)}
    same(found, expected)

    for row in numbers.correlations(evidence):
        values = [expected[row["comparison"], row["per_doc"], name] for name in CW]
        r = np.corrcoef(list(CW.values()), values)[0, 1]
        t = r * np.sqrt((len(values) - 2) / max(1e-300, 1 - r * r))
        assert row["r"] == pytest.approx(r)
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(t), len(values) - 2), abs=1e-6)
        assert (row["low"], row["high"]) == (None, None), "three datasets have no interval"

    for row in numbers.positives(evidence):
        gains = [value for (_, _, name), value in expected.items() if name == row["dataset"]]
        assert (row["positive"], row["conditions"]) == (sum(gain > 0 for gain in gains), len(gains))

    best = [max((1, 3, 5), key=lambda m: (round(scores[plain("diverse", m), name].mean(), 4), -m)) for name in CW]
    counts = {row["per_doc"]: row["n_datasets"] for row in numbers.best_qdoc(evidence) if row["retriever"] == "tiny"}
    assert counts == {m: best.count(m) for m in (1, 3, 5)}


def test_documents_with_their_means(study: tuple[FigureData, Scores]) -> None:
    evidence, scores = study
    held = ("diverse", 3, "none", "query-only", "equal pairs")
    found = rows(numbers.documents_against_diversity(evidence), "benchmark", "documents", method="diverse",
                 retriever="tiny")  # fmt: skip
    expected = {
        (name, n): of_score(scores[arm, name]) for name in CW for n, arm in ((6, plain("diverse", 1)), (2, held))
    }
    same({key: value for key, value in found.items() if key[0] in CW}, expected)

    grid = [
        row for row in numbers.documents_by_qdoc(evidence) if (row["retriever"], row["method"]) == ("tiny", "diverse")
    ]
    cells = {(6, m): plain("diverse", m) for m in (1, 3, 5)} | {(2, 3): held}
    same({(row["documents"], row["per_doc"]): row["ndcg"] for row in grid},
         {key: np.mean([scores[arm, name].mean() for name in CW]) for key, arm in cells.items()})  # fmt: skip


# The test of each function's values on the small study; facts, measures and cases are told by hand in ``test_holds``.
TESTED_BY = {
    "ndcg_over_qdoc": test_scores_with_their_intervals,
    "methods_by_benchmark": test_scores_with_their_intervals,
    "diverse_against_paraphrase": test_differences_with_their_intervals,
    "gain_by_retriever": test_differences_with_their_intervals,
    "weights_by_benchmark": test_differences_with_their_intervals,
    "train_by_evaluate": test_differences_with_their_intervals,
    "gain_over_cw": test_what_is_laid_over_content_words,
    "correlations": test_what_is_laid_over_content_words,
    "positives": test_what_is_laid_over_content_words,
    "best_qdoc": test_what_is_laid_over_content_words,
    "documents_against_diversity": test_documents_with_their_means,
    "documents_by_qdoc": test_documents_with_their_means,
    "measures_over_qdoc": test_holds.test_q_d_measures_and_scores_over_ce,
    "quality_against_diversity": test_holds.test_q_d_measures_and_scores_over_ce,
    "ndcg_over_ce": test_holds.test_q_d_measures_and_scores_over_ce,
    "learning_rates": test_holds.test_learning_rates_by_dev,
    "datasets": test_holds.test_facts_of_benchmarks,
    "hops": test_holds.test_facts_of_benchmarks,
    "cw_of_languages": test_holds.test_facts_of_benchmarks,
    "who_is_right": test_holds.test_who_is_right_at_rank_one,
}


def test_every_published_table_has_its_function_and_every_function_its_test() -> None:
    assert set(test_holds.DRAWN_BY) == set(TABLES)
    assert set(test_holds.DRAWN_BY.values()) <= set(TESTED_BY) == {f.numbers.__name__ for f in FIGURES.values()}
    for function, test in TESTED_BY.items():
        assert f"numbers.{function}(" in inspect.getsource(test), function
