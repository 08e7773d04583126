"""Every published table and figure has the same of one's own results, by one function, with the numbers that a small
study has by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdp import query_sets
from cdp.base.workspace import Workspace, write_json
from cdp.charts.holds import FIGURES
from cdp.principle import correlation_table, differences
from cdp.principle.tables import TABLES
from cdp.results import arms, board, numbers
from cdp.results.arms import FigureData
from cdp.services import demo, metrics
from tests.catalog.support import add_job
from tests.charts import small_study
from tests.charts.small_study import CW, DEV, UNTRAINED

pytestmark = pytest.mark.slow

# Every table and figure of the paper, and the function of ``cdp.charts.holds`` that draws it from own results.
DRAWN_BY = {
    "tab:main_results": "methods_by_benchmark",
    "tab:multihop_full": "methods_by_benchmark",
    "tab:multihop_diversity": "diverse_against_paraphrase",
    "tab:multihop_scaling": "ndcg_over_qdoc",
    "tab:query_scaling": "ndcg_over_qdoc",
    "tab:scaling_full": "ndcg_over_qdoc",
    "fig:qdoc_distribution": "best_qdoc",
    "tab:single_query_ablation": "diverse_against_paraphrase",
    "tab:diversity_ablation": "diverse_against_paraphrase",
    "fig:diversity_multihop": "ndcg_over_ce",
    "tab:content_words": "gain_over_cw",
    "tab:cw_threshold": "gain_over_cw",
    "tab:cost_efficiency_full": "documents_against_diversity",
    "fig:cost_efficiency_multihop": "documents_against_diversity",
    "fig:cost_efficiency_full": "documents_against_diversity",
    "fig:cost_efficiency_full_retromae": "documents_against_diversity",
    "tab:cw_weighting": "weights_by_benchmark",
    "tab:cw_weighting_full": "weights_by_benchmark",
    "tab:reasonembed": "weights_by_benchmark",
    "tab:reasonembed_full": "weights_by_benchmark",
    "tab:miracl_results": "train_by_evaluate",
    "tab:multilingual": "cw_of_languages",
    "tab:mistral_generator": "diverse_against_paraphrase",
    "tab:qwen_retriever": "diverse_against_paraphrase",
    "tab:retriever_comparison": "gain_by_retriever",
    "tab:lr_sensitivity": "learning_rates",
    "tab:qd_full": "measures_over_qdoc",
    "fig:qd_tradeoff": "quality_against_diversity",
    "fig:diversity_ablation_qd": "measures_over_qdoc",
    "tab:dataset_stats": "datasets",
    "tab:multihop_difficulty": "hops",
    "tab:error_analysis": "who_is_right",
}


@pytest.fixture
def held(workspace: Workspace, tmp_path: Path) -> FigureData:
    """All that the figures read of the small study, with a metric job of each set."""
    written = small_study.make(workspace, tmp_path)
    for method, query_set in written.items():
        measured(workspace, query_set, {"diverse": 0.2, "paraphrase": 0.9}[method])
    evaluations = board.list_evaluations(workspace)
    found = arms.own(workspace, evaluations, written.values())
    compared = arms.compared(workspace, evaluations)
    pair, _ = arms.pair(workspace, compared["short"], ("tiny · diverse × 1", "tiny · diverse × 3"))
    return FigureData(found.rows, found.measures, arms.statistics(workspace, CW), pair.table(), found.differences)


def measured(workspace: Workspace, query_set: str, ce: float) -> None:
    """The quick measures of a set, and CE and Dist-Sim at Q/Doc 1 and 3 as metric jobs leave them."""
    kept = metrics.quick(workspace, query_set, per_doc=3)
    for m in (1, 3):
        add_job(workspace, f"metrics-{query_set}-{m}", "metrics")
        values = [{"name": name, "value": value, "interval": None, "per_doc": m, "n_documents": 6, "n_queries": 6 * m}
                  for name, value in (("paraphrase_ratio", ce), ("dist_sim", 0.7))]  # fmt: skip
        about = {"query_set": query_set, "query_set_hash": kept.query_set_hash, "method": kept.method,
                 "human": "", "created": "2026-01-01", "measures": values}  # fmt: skip
        write_json(workspace.job(f"metrics-{query_set}-{m}") / "results" / "metrics.json", about)


def test_every_published_table_has_its_function() -> None:
    assert set(DRAWN_BY) == set(TABLES)
    by_label = {label: {f.numbers.__name__ for f in FIGURES.values() if label in f.tables} for label in TABLES}
    assert all(name in by_label[label] for label, name in DRAWN_BY.items())


@pytest.mark.parametrize("label", TABLES)
def test_the_published_side_is_drawn_from_data_published(label: str) -> None:
    for figure in FIGURES.values():
        if label in figure.tables:
            chart = figure.draw(figure.numbers(arms.published(label)))
            assert sum(len(getattr(trace, "y", None) or ()) for trace in chart.data)


def test_each_figure_is_drawn_from_the_small_study(held: FigureData) -> None:
    empty = {name for name, figure in FIGURES.items() if not figure.numbers(held)}
    assert empty == set()
    for figure in FIGURES.values():
        assert figure.draw(figure.numbers(held)).to_plotly_json()["data"], figure.name
        said = figure.sentence(held, figure.numbers(held))
        assert not figure.of_scores or figure.name == "errors" or "3 datasets, out of domain" in said, said
        assert "interval" in said or "95%" in said, f"{figure.name} says nothing of its uncertainty"


def test_nothing_is_drawn_from_nothing() -> None:
    assert {name for name, figure in FIGURES.items() if figure.numbers(FigureData())} == set()


def test_the_demos_finished_test_fills_eight_figures_at_the_first_start(workspace: Workspace) -> None:
    demo.load(workspace)
    sets = [q.id for q in query_sets.list_query_sets(workspace)]
    for query_set in sets:
        metrics.quick(workspace, query_set)
    found = arms.own(workspace, board.list_evaluations(workspace), sets)
    mine = replace(found, stats=arms.statistics(workspace, ["demo"]))
    drawn = {name for name, figure in FIGURES.items() if figure.numbers(mine)}
    assert len(drawn) >= 8, drawn
    assert {"qdoc", "best", "paraphrase", "retrievers", "methods", "matrix", "documents", "measures"} <= drawn
    qdoc = FIGURES["qdoc"]
    assert qdoc.sentence(mine, qdoc.numbers(mine)) == (
        "Rests on 1 dataset, all in-domain; 3 seeds. 95% intervals over queries and seeds, each by itself. "
        "Left out, as it chose checkpoints: demo dev."
    )
    assert arms.compared(workspace, board.list_evaluations(workspace)), "what was retrieved is kept for error analysis"


def by(rows: list[dict[str, Any]], value: str, *keys: str, **wanted: Any) -> dict[Any, float]:
    """{values of ``keys``: rounded ``value``} of the rows that have what is ``wanted``."""
    chosen = [row for row in rows if all(row[name] == given for name, given in wanted.items())]
    named = {tuple(row[key] for key in keys): round(row[value], 2) for row in chosen}
    return {key[0] if len(keys) == 1 else key: found for key, found in named.items()}


def test_ndcg_over_qdoc_is_the_mean_of_the_seeds(held: FigureData) -> None:
    found = numbers.ndcg_over_qdoc(held)
    assert by(found, "ndcg", "benchmark", "per_doc", method="diverse") == {
        ("short", 1): 45.0, ("short", 3): 43.0, ("short", 5): 41.0,
        ("middle", 1): 55.0, ("middle", 3): 57.0, ("middle", 5): 58.0,
        ("long", 1): 65.0, ("long", 3): 71.0, ("long", 5): 70.0,
        ("out of domain mean (3)", 1): 55.0, ("out of domain mean (3)", 3): 57.0,
        ("out of domain mean (3)", 5): 56.33,
    }  # fmt: skip
    assert {round(row["sd"], 4) for row in found} == {0.7071}


def test_the_best_qdoc_of_each_dataset(held: FigureData) -> None:
    assert by(numbers.best_qdoc(held), "n_datasets", "per_doc", retriever="tiny") == {1: 1, 3: 1, 5: 1}


def test_diverse_minus_paraphrase_and_its_line_over_cw(held: FigureData) -> None:
    minus = by(numbers.diverse_against_paraphrase(held), "ndcg", "benchmark", per_doc=3)
    assert minus == {"short": -2.0, "middle": 1.0, "long": 3.0}
    gains = by(numbers.gain_over_cw(held), "points", "kind", "per_doc", "dataset")
    assert {key[2]: value for key, value in gains.items() if key[:2] == ("diverse_minus_paraphrase", 3)} == minus
    scaling = {key[2]: value for key, value in gains.items() if key[:2] == ("qdoc_minus_one", 3)}
    assert scaling == {"short": -2.0, "middle": 2.0, "long": 6.0}
    assert by(numbers.gain_over_cw(held), "cw", "dataset") == {name: float(cw) for name, cw in CW.items()}
    (r,) = (
        row["r"] for row in numbers.correlations(held) if row["comparison"] == "qdoc_minus_one" and row["per_doc"] == 3
    )
    assert r == pytest.approx(1.0)
    assert by(numbers.positives(held), "rate", "dataset")["short"] == pytest.approx(0.0)
    assert by(numbers.gain_by_retriever(held), "points", "retriever") == {"tiny": 0.67}


def test_the_numbers_of_the_principle_are_found_again_from_the_published_rows() -> None:
    rows = [row for label in ("tab:multihop_diversity", "tab:multihop_scaling") for row in arms.published(label).rows]
    ours = {(d.retriever, d.comparison, d.per_doc, d.dataset): round(d.points, 6) for d in arms.gains(rows)}
    theirs = {(d.retriever, d.comparison, d.per_doc, d.dataset): round(d.points, 6) for d in differences()}
    assert ours == theirs
    assert len(correlation_table(arms.gains(rows))) == 14


def test_documents_against_diversity_has_fewer_documents_at_more_queries(held: FigureData) -> None:
    found = numbers.documents_against_diversity(held)
    assert by(found, "ndcg", "documents", benchmark="short", method="diverse") == {6: 45.0, 2: 44.0}
    assert by(found, "ndcg", "benchmark", method="untrained")["short"] == UNTRAINED["short"]
    assert by(found, "requests", "documents", benchmark="short", method="diverse") == {6: 6, 2: 2}


def test_documents_by_queries_say_what_they_cost(held: FigureData) -> None:
    found = numbers.documents_by_qdoc(held)
    grid = by(found, "ndcg", "documents", "per_doc", retriever="tiny", method="diverse")
    assert grid == {(6, 1): 55.0, (6, 3): 57.0, (6, 5): 56.33, (2, 3): 54.0}
    assert "tiny · diverse · 2 documents (2 requests)" in {row["arm"] for row in found}


def test_q_d_measures_and_scores_over_ce(held: FigureData) -> None:
    ce = by(numbers.measures_over_qdoc(held), "value", "method", "per_doc", measure="CE")
    assert ce == {("diverse", 1): 0.2, ("diverse", 3): 0.2, ("paraphrase", 1): 0.9, ("paraphrase", 3): 0.9}
    points = numbers.quality_against_diversity(held)
    assert {(row["method"], row["ce"], row["dist_sim"]) for row in points} == {
        ("diverse", 0.2, 0.7), ("paraphrase", 0.9, 0.7),
    }  # fmt: skip
    over = by(numbers.ndcg_over_ce(held), "ndcg", "ce", "per_doc", benchmark="long", retriever="tiny")
    assert over == {(0.2, 1): 65.0, (0.2, 3): 71.0, (0.9, 1): 65.0, (0.9, 3): 68.0}


def test_weights_minus_equal_weights_for_each_query_source(held: FigureData) -> None:
    found = by(numbers.weights_by_benchmark(held), "ndcg", "query_source", "weighting", "benchmark")
    assert {key: value for key, value in found.items() if " mean" not in key[2]} == {
        **{("query-only", "cw", name): 1.0 for name in CW},
        **{("multi-query", "ri", name): 2.0 for name in CW},
    }
    change = by(numbers.train_by_evaluate(held), "change", "benchmark", weighting="cw")
    assert change == {
        "short": round(100 / 43, 2), "middle": round(100 / 57, 2), "long": round(100 / 71, 2),
        "out of domain mean": round(100 / 57, 2),
    }  # fmt: skip


def test_learning_rates_by_dev(held: FigureData) -> None:
    assert by(numbers.learning_rates(held), "dev", "rate") == DEV


def test_facts_of_benchmarks(held: FigureData) -> None:
    assert by(numbers.datasets(held), "cw", "dataset") == {"long": 6.0, "middle": 4.0, "short": 2.0}
    (short,) = (row for row in numbers.datasets(held) if row["dataset"] == "short")
    assert (short["n_queries"], short["n_docs"], short["docs_per_query"], short["queries_per_doc"]) == (4, 4, 1.0, 4.0)
    assert short["query_len_chars"] == len("the amber basalt")
    assert numbers.cw_of_languages(held) == [{"language": "en", "cw_min": 2, "cw_max": 6, "benchmarks": 3}]
    assert by(numbers.hops(held), "most", "dataset") == dict.fromkeys(("long", "middle", "short"), 1.0)


def test_who_is_right_at_rank_one(held: FigureData) -> None:
    """Of q0 to q3 Q/Doc 1 has the first alone (the other had another file), Q/Doc 3 the next two."""
    assert by(numbers.who_is_right(held), "value", "what") == {
        "queries": 4, "right with both": 0, "right with neither": 1,
        "right only with tiny · diverse × 3": 2,
        "right only with tiny · diverse × 3: tiny · diverse × 1 had another passage of the same file": 1,
        "right only with tiny · diverse × 3: tiny · diverse × 1 had another file": 1,
        "right only with tiny · diverse × 1": 1,
        "right only with tiny · diverse × 1: tiny · diverse × 3 had another passage of the same file": 0,
        "right only with tiny · diverse × 1: tiny · diverse × 3 had another file": 1,
        "net gain of tiny · diverse × 3": 1,
    }  # fmt: skip
