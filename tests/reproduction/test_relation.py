"""A study's relation to content words: the verdict's errors, its power, and which datasets count as independent."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from cdp.base.statistics import fit_line
from cdp.principle import SCALING, Difference
from cdp.studies.report import BenchmarkFacts
from reproduction.relation import (
    CONTRADICTS,
    SUPPORTS,
    UNCLEAR,
    as_independent,
    design_power,
    extended,
    left_out,
    power_of_slope,
    relation,
    sentence,
    to_markdown,
    verdict,
    why_no_threshold,
)
from tests.studies.support import BENCHMARKS, study

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("n", [4, 8])
def test_with_the_cw_of_the_benchmarks_shuffled_few_reports_conclude_anything(n: int, slope: float) -> None:
    """The verdict went by the slope's sign: 52% of shuffled reports moved the published rule.

    The true order is no shuffle: of four datasets it comes up in one of 24.
    """
    random = np.random.default_rng(n)
    outcomes = []
    for _ in range(1200):
        cw = random.uniform(4, 14, n)
        gain = slope * (cw - 8) + random.normal(0, 1.5, n)
        shuffled = random.permutation(cw)
        if (shuffled != cw).any():
            outcomes.append(verdict(shuffled.tolist(), gain.tolist()).outcome)
    claimed = 1 - outcomes.count(UNCLEAR) / len(outcomes)
    # Shuffles that only swap neighbours leave part of a real relation in place.
    assert 0.03 <= claimed <= (0.065 if slope else 0.06)


def test_power_is_that_of_simulated_studies_and_the_stated_one() -> None:
    """Slope 1, datasets scattering by 1.5, CW anywhere from 4 to 14: 41% of runs at 4 datasets, 94% at 8."""
    random = np.random.default_rng(0)
    for n, stated in ((4, 0.41), (8, 0.94)):
        powers, runs = [], []
        for _ in range(600):
            cw = random.uniform(4, 14, n).tolist()
            power = design_power(cw)
            assert power is not None
            powers.append(power)
            gain = (np.array(cw) - 8 + random.normal(0, 1.5, n)).tolist()
            runs.append(verdict(cw, gain).outcome == SUPPORTS)
        assert np.mean(powers) == pytest.approx(np.mean(runs), abs=0.04)
        assert np.mean(powers) == pytest.approx(stated, abs=0.03)


def test_the_figures_are_scipys() -> None:
    cw, gain = [5.0, 7.0, 9.0, 12.0], [-3.0, -1.2, 1.4, 3.9]
    found, expected = verdict(cw, gain), scipy.stats.linregress(cw, gain)
    assert (found.outcome, found.slope, found.p) == (
        SUPPORTS,
        pytest.approx(expected.slope),
        pytest.approx(expected.pvalue),
    )
    reach = scipy.stats.t.ppf(0.975, 2) * expected.stderr
    assert found.interval == pytest.approx((expected.slope - reach, expected.slope + reach))
    assert sentence(found).startswith("This study supports")
    assert verdict(cw, [-g for g in gain]).outcome == CONTRADICTS
    assert "cannot tell" in sentence(verdict(cw, [1.0, -1.0, 1.0, -1.0]))
    assert "too few" in sentence(verdict(cw[:2], gain[:2]))


def kin(name: str, cw: float, **more: object) -> BenchmarkFacts:
    return BenchmarkFacts(name, cw, **more)  # type: ignore[arg-type]


def test_in_domain_benchmarks_other_languages_and_members_of_a_family_are_not_independent() -> None:
    known = [
        kin("own", 5.0, in_domain=True),
        kin("a:dev", 6.0, family="a"),
        kin("a:test", 8.0, family="a"),
        kin("b", 9.0),
        kin("c", 11.0, language="zh"),
        kin("d", 12.0, language="en"),
    ]
    data = [Difference("r", "qdoc_minus_one", 5, k.name, k.cw, float(i)) for i, k in enumerate(known)]
    found = as_independent(data, known)
    assert [(d.dataset, d.cw, d.points) for d in found] == [
        ("a (2 benchmarks)", 7.0, 1.5),
        ("b", 9.0, 3.0),
        ("d", 12.0, 5.0),
    ]
    assert set(left_out(known)) == {"own", "c"}


@pytest.mark.slow
@pytest.mark.parametrize(("n", "power"), [(4, 0.41), (8, 0.94)])
def test_power_of_a_design(n: int, power: float) -> None:
    """Slope 1 and 1.5 points between datasets, CW from 3 to 12 or so: by formula and by simulation."""
    cw = {4: np.array([5.0, 7.0, 9.0, 11.0]), 8: np.linspace(4.0, 12.0, 8)}[n]
    found = power_of_slope(cw, 1.0, 1.5)
    random = np.random.default_rng(0)
    seen = np.mean([fit_line(cw, cw + random.normal(0, 1.5, n)).p < 0.05 for _ in range(800)])
    assert found == pytest.approx(seen, abs=0.035)
    assert found == pytest.approx(power, abs=0.12)


def grows_with_cw(benchmark: str, source: str, per_doc: int, weighting: str) -> float:
    """5 points from training, and from more queries 2 points per content word above 8 (nothing at Q/Doc 1)."""
    return 5.0 + (2.0 * (BENCHMARKS[benchmark] - 8.0) if per_doc > 1 else 0.0) + (0.5 if weighting == "cw" else 0.0)


def test_the_threshold_of_the_study_by_the_same_functions_as_the_published_one() -> None:
    report = study(grows_with_cw, noise=0.5)
    found = relation(report)
    assert found.threshold is not None
    assert found.threshold.crossing == pytest.approx(8.0, abs=0.2)
    assert found.threshold.slope == pytest.approx(2.0, abs=0.1)
    assert (found.threshold.n_points, found.threshold.n_datasets) == (6, 3)
    assert {r.dataset: (r.positive, r.conditions) for r in found.rates if r.dataset != "medium"} == {
        "hard": (2, 2),
        "simple": (0, 2),
    }
    assert all(c.r > 0.99 for c in found.correlations)
    assert any("recommendation stays as it is" in text for text in extended(report).findings)


def test_a_gain_that_does_not_grow_with_cw_is_said_to() -> None:
    """The sign of the slope decided; now its p does, and three datasets seldom have one."""
    report = study(lambda b, s, m, w: 5.0 + (10 - BENCHMARKS[b] if m > 1 else 0.0), noise=0.2)
    found = relation(report)
    assert found.verdict.outcome == CONTRADICTS
    assert any("contradicts the principle" in text for text in extended(report).findings)
    bent = study(lambda b, s, m, w: 5.0 + (2.0 * (b == "medium") if m > 1 else 0.0))
    assert relation(bent).verdict.outcome == UNCLEAR
    assert any("cannot tell whether the gain grows with CW" in text for text in extended(bent).findings)
    assert not any("published rule" in text for text in extended(bent).findings)


def test_a_crossing_outside_the_benchmarks_is_called_an_extension() -> None:
    report = study(lambda b, s, m, w: 5.0 + (0.5 * BENCHMARKS[b] if m > 1 else 0.0), noise=0.05)
    assert any("extension of the line" in text for text in extended(report).findings)


def test_in_domain_benchmarks_and_families_do_not_count_as_independent() -> None:
    names = {"own": 4.0, "a": 5.0, "b": 8.0, "c": 12.0}
    facts: dict[str, dict[str, object]] = {"own": {"in_domain": True}, "b": {"family": "bc"}, "c": {"family": "bc"}}
    report = study(lambda b, s, m, w: 5.0 + (names[b] if m > 1 else 0.0), benchmarks=names, facts=facts)
    found = relation(report)
    assert found.verdict.n == 2
    assert found.threshold is None
    assert {d.dataset for d in found.differences} == {"a", "bc (2 benchmarks)"}
    assert any("line through CW: own," in text and "in-domain" in text for text in extended(report).limits)
    assert any("b, c are of one source (bc)" in text for text in extended(report).limits)
    assert len({g.benchmark for g in report.of(SCALING)}) == 4, "the gains themselves are all shown"


def test_fewer_than_three_benchmarks() -> None:
    report = study(grows_with_cw, benchmarks={"simple": 5.0, "hard": 12.0})
    found = relation(report)
    assert found.threshold is None
    assert found.correlations == ()
    assert any("at least three datasets" in text for text in extended(report).limits)
    assert "No threshold" in to_markdown(report)


def test_benchmarks_of_one_cw() -> None:
    report = study(lambda *_: 5.0, benchmarks={"a": 8.0, "b": 8.0, "c": 8.0})
    found = relation(report)
    assert found.threshold is None
    assert any("of the same CW" in text for text in extended(report).limits)


def test_paraphrases_equal_pairs_and_a_sources_own_benchmark_are_not_in_the_line() -> None:
    kinds = ("diverse on a", "paraphrase on a", "diverse on b")
    facts: dict[str, dict[str, object]] = {"simple": {"in_domain_of": ["diverse on a"]}}
    report = study(grows_with_cw, kinds=kinds, facts=facts, design="documents and pairs", max_documents=100)
    found = relation(report)
    conditions = {(d.retriever, d.dataset) for d in found.differences}
    assert ("tiny · diverse on a", "simple") not in conditions
    assert ("tiny · diverse on b", "simple") in conditions
    assert not any("paraphrase" in name or "equal pairs" in name for name, _ in conditions)
    assert "simple" not in found.left_out


@pytest.mark.parametrize(
    ("cws", "why"), [((5.0,), "there is 1."), ((5.0, 7.0), "there are 2."), ((5.0, 5.0), "there are 2 of the same CW.")]
)
def test_too_few_datasets_are_counted_in_words(cws: tuple[float, ...], why: str) -> None:
    few = [Difference("any", "qdoc_minus_one", 5, f"d{i}", cw, 1.0) for i, cw in enumerate(cws)]
    assert why_no_threshold(few).endswith(why)


def test_equal_differences_have_no_threshold() -> None:
    flat = [Difference("any", "qdoc_minus_one", 5, name, cw, 1.0) for name, cw in (("a", 5.0), ("b", 7.0), ("c", 9.0))]
    assert "do not depend on CW" in why_no_threshold(flat)
