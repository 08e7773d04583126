"""What a study's report says, against differences that were put in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cdp.base.condition import Condition
from cdp.base.statistics import holm, paired_test
from cdp.principle import PARAPHRASE, SCALING, WEIGHTING
from cdp.studies import records
from cdp.studies.gains import CW_BESIDE_RI, TRAINING, WEIGHED
from cdp.studies.plan import PlannedTraining
from cdp.studies.text import to_markdown
from tests.studies.support import BENCHMARKS, study


def grows_with_cw(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
    """5 points from training, and from more queries 2 points per content word above 8 (nothing at Q/Doc 1)."""
    return 5.0 + (2.0 * (BENCHMARKS[benchmark] - 8.0) if per_doc > 1 else 0.0) + (0.5 if weighting == "cw" else 0.0)


def test_known_differences_are_found_again() -> None:
    report = study(grows_with_cw, weightings="none, cw")
    scaling = {(g.benchmark, g.condition.per_doc, g.condition.weighting): g for g in report.of(SCALING)}
    assert len(scaling) == 3 * 2 * 2
    for (benchmark, _, _), gain in scaling.items():
        assert gain.points == pytest.approx(2 * (BENCHMARKS[benchmark] - 8), abs=0.7)
        assert gain.low < gain.points < gain.high
        assert gain.n_seeds == 3
        assert gain.seed_sd is not None
    assert all(g.significant for g in report.of(SCALING) if g.benchmark != "medium")
    assert {g.points > 4 for g in report.of(TRAINING) if g.condition.per_doc == 1} == {True}
    assert np.mean([g.points for g in report.of(WEIGHTING)]) == pytest.approx(0.5, abs=0.2)
    assert report.of(PARAPHRASE) == []


def test_diverse_against_paraphrase() -> None:
    def truth(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
        return 6.0 if source == "diverse" and per_doc > 1 else 4.0

    report = study(truth, kinds=("diverse", "paraphrase"), noise=1.0)
    assert {(g.condition.per_doc, round(g.points)) for g in report.of(PARAPHRASE)} == {(1, 0), (2, 2), (5, 2)}
    assert {g.condition.source for g in report.of(SCALING)} == {"diverse", "paraphrase"}


def test_no_effect_is_not_called_one() -> None:
    report = study(lambda *_: 5.0)
    assert sum(g.significant for g in report.of(SCALING)) <= 1
    assert any("0 gain and 0 lose significantly" in text or "1 " in text for text in report.findings)


def test_one_seed() -> None:
    report = study(grows_with_cw, seeds="7")
    assert all(g.seed_sd is None and g.n_seeds == 1 for g in report.gains)
    assert all(not row.spread for row in report.rows)
    assert any("With one seed" in text for text in report.limits)
    assert "±" not in to_markdown(report).split("## NDCG@10")[1].split("\nDifference in")[0]


def test_seeds_that_change_nothing_are_no_spread() -> None:
    """ "± 0.00" over three seeds of one batch looked like certainty."""
    report = study(grows_with_cw, noise=0.0)
    assert all(gain.seed_sd is None for gain in report.gains)
    assert any("No spread over the seeds" in text for text in report.limits)
    text = to_markdown(report)
    assert "(no spread)" in text
    assert "± 0.00" not in text


def test_the_gains_are_tested_by_seeds_and_queries_together() -> None:
    gain = study(grows_with_cw).of(SCALING)[-1]
    assert gain.seed_sd is not None
    by_seed = gain.seed_sd / gain.n_seeds**0.5
    assert (gain.high - gain.low) / 2 > 2 * by_seed


def test_a_failed_condition_is_named_and_left_out() -> None:
    report = study(
        grows_with_cw,
        drop=lambda c: c["per_doc"] == 5 and c["seed"] == 1,
        failures=[("tiny · human × 5, seed 1", "The disk is on fire.")],
    )
    assert (report.planned, report.finished) == (9, 8)
    assert {g.n_seeds for g in report.of(SCALING) if g.condition.per_doc == 5} == {2}
    assert any("1 of 9 trainings are missing" in text for text in report.limits)
    assert any("The disk is on fire." in text for text in report.limits)


def test_without_the_control_there_is_no_comparison() -> None:
    report = study(grows_with_cw, drop=lambda c: c["per_doc"] == 1)
    assert report.of(SCALING) == []


def test_nothing_finished_yet() -> None:
    report = study(grows_with_cw, drop=lambda c: True)
    assert report.finished == 0
    assert "- Nothing yet." in to_markdown(report)


def test_a_budget_removes_the_warning_about_more_pairs() -> None:
    assert any("each pair is seen more often" in text for text in study(grows_with_cw).limits)
    assert not any("seen more often" in text for text in study(grows_with_cw, budget=100).limits)
    assert any("come from fewer documents" in text for text in study(grows_with_cw, budget=100).limits)


def test_holms_correction() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@pytest.mark.slow
def test_the_paired_test_is_scipys() -> None:
    assert paired_test(np.zeros(10)).p_t == 1.0
    assert paired_test(np.ones(10)).p_t == 0.0
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(3)
    a, b = rng.normal(size=50), rng.normal(0.2, size=50)
    assert paired_test(b - a).p_t == pytest.approx(ttest_rel(b, a).pvalue)


def test_queries_are_matched_by_id_whatever_their_order() -> None:
    from cdp.studies.gains import read_scores

    def made(ids: list[str], values: list[float]) -> dict[str, object]:
        return {
            "retriever": "tiny",
            "condition": None,
            "evaluations": {"p": {"query_ids": ids, "ndcg@10": values}},
        }

    one, _ = read_scores([made(["a", "b"], [0.1, 0.2])], {"p": "x"})
    other, _ = read_scores([made(["b", "a"], [0.2, 0.1])], {"p": "x"})
    assert [list(s["x"][0]) for s in one.values()] == [list(s["x"][0]) for s in other.values()] == [[10.0, 20.0]]


@pytest.mark.slow
def test_the_markdown_tables_are_whole() -> None:
    text = to_markdown(study(grows_with_cw, weightings="none, cw", name="a | b"))
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")
    assert "a \\| b" in text
    assert "| tiny · human × 5 · cw" in text


@pytest.mark.slow
def test_settings_name_a_model_only_where_one_was_asked() -> None:
    for generator, named in (("recorded", False), ("template", False), ("openai", True)):
        found = study(grows_with_cw, corpus="demo", methods="diverse", query_sets="", generator=generator)
        assert ("| model" in to_markdown(found)) is named, generator


def both(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
    return per_doc if source == "diverse" else 1.0


def test_equal_documents_and_equal_pairs_are_told_apart() -> None:
    report = study(both, kinds=("diverse", "paraphrase"), design="documents and pairs", max_documents=100, lexical=2.0)
    assert report.rows[0].name == "BM25"
    names = [row.name for row in report.rows]
    assert "tiny · diverse × 5" in names
    assert "tiny · diverse × 5 · equal pairs" in names
    assert len(names) == len(set(names)) == 2 + 2 * 5
    held = [g for g in report.of(PARAPHRASE) if g.benchmark == "simple" and g.condition.per_doc == 5]
    assert [(g.condition.held, round(g.points)) for g in held] == [("", 4), ("equal pairs", 4)]


def test_two_sets_of_the_same_pairs_keep_a_record_each(tmp_path: Path) -> None:
    """Both have one key: the second condition took the first one's place, and half of the study was missing."""
    for source in ("diverse", "paraphrase", "diverse"):
        planned = PlannedTraining(Condition("tiny", source, 1), 0)
        records.save(tmp_path, "key", planned, {"retriever": "tiny", "evaluations": {}})
    stored = list(records.list_records(tmp_path))
    assert sorted(record["condition"]["source"] for record in stored) == ["diverse", "paraphrase"]
    assert {record["key"] for record in stored} == {"key"}


TWELVE = {
    "weightings": "none, cw, ri, ri-cw",
    "query_sources": "query-only, reasoning-only, multi-query",
    "per_doc": "1",
}


def test_each_of_the_twelve_conditions_stands_under_its_own_comparison() -> None:
    """CW adds 1 point, RI 2, both together 2.5: RI × CW minus RI is the half point that CW adds to RI."""
    points = {"none": 0.0, "cw": 1.0, "ri": 2.0, "ri-cw": 2.5}
    report = study(lambda _, __, ___, weighting: 5.0 + points[weighting], noise=0.1, reasoning="q2", **TWELVE)
    assert len({row.condition for row in report.rows if row.condition.per_doc}) == 12

    found = {
        kind: {(g.condition.query_source, g.condition.weighting): round(g.points, 1) for g in report.of(kind)}
        for kind in (WEIGHTING, WEIGHED, CW_BESIDE_RI)
    }
    sources = ("query-only", "reasoning-only", "multi-query")
    assert found[WEIGHTING] == {(source, "cw"): 1.0 for source in sources}
    assert found[WEIGHED] == {(s, w): p for s in sources for w, p in (("ri", 2.0), ("ri-cw", 2.5))}
    assert found[CW_BESIDE_RI] == {(source, "ri-cw"): 0.5 for source in sources}
    text = to_markdown(report)
    assert "## RI × CW minus RI" in text
    assert ", ri" not in text.split("## CW-weighted minus equal weights")[1].split("\n## ")[0]


def test_means_are_not_over_both_domains() -> None:
    truth = {"simple": 10.0, "medium": 2.0, "hard": 4.0}
    facts = {"simple": {"in_domain": True}}
    report = study(lambda benchmark, *_: truth[benchmark], facts=facts, noise=0.0, per_doc="1", seeds="0")
    (row,) = (row for row in report.rows if row.condition.per_doc)
    scores = row.scores
    assert row.average == pytest.approx((scores["medium"] + scores["hard"]) / 2)
    assert row.average_in_domain == pytest.approx(scores["simple"])
    assert "| Mean out of domain | Mean in-domain |" in to_markdown(report)
    assert any("on average over 2 benchmarks out of domain" in text for text in report.findings)


def test_the_best_training_is_not_called_the_best_above_what_needs_none() -> None:
    report = study(lambda *_: 5.0, lexical=30.0)
    (said,) = (text for text in report.findings if text.startswith("Best"))
    assert said.startswith("Best training on average over 3 benchmarks: tiny · human")
    assert "; BM25 has 7" in said
    assert said.endswith("without a training.")
