"""The three-way verdict: its error rate under the null, its power, and which datasets count as independent."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from cdp.principle import Difference
from cdp.studies.verdict import (
    CONTRADICTS,
    SUPPORTS,
    UNCLEAR,
    BenchmarkFacts,
    as_independent,
    design_power,
    left_out,
    sentence,
    verdict,
)
from cdp.workers.study import families

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("n", [4, 8])
def test_with_the_cw_of_the_benchmarks_shuffled_few_reports_conclude_anything(n: int, slope: float) -> None:
    """The verdict went by the slope's sign: 52% of shuffled reports moved the published rule.

    The true order is no shuffle: of four datasets it comes up in one of 24.
    """
    random = np.random.default_rng(n)
    outcomes = []
    for _ in range(3000):
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
        for _ in range(1500):
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


def test_families_by_source_and_by_shared_documents() -> None:
    documents = {"a": set(range(100)), "a2": set(range(90, 130)), "b": set(range(500, 600)), "c": set(range(125, 400))}
    sources = {"a": "a", "a2": "a2", "b": "b", "c": "c"}
    # c shares 5 of the 40 documents of a2, which is 12.5% of the smaller one.
    assert families(sources, documents) == {"a": "a", "a2": "a", "b": "b", "c": "a"}
    assert families({"x dev": "x", "x test": "x"}, {"x dev": {1}, "x test": {2}}) == {"x dev": "x", "x test": "x"}
