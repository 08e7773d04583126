"""The recommendation: the published lines, its interval, and what it says about its own limits."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.errors import ConfigError, InputError
from cdp.principle import recommend
from cdp.principle.recommend import bootstrap_mean, level_of


@pytest.mark.parametrize(
    ("cw", "level"),
    [(0, "avoid"), (6.99, "avoid"), (7, "test"), (8.5, "test"), (10, "test"), (10.01, "recommend"), (50, "recommend")],
)
def test_the_published_lines(cw: float, level: str) -> None:
    assert level_of(cw) == level
    assert recommend([cw] * 100).level == level


def test_an_interval_that_crosses_a_line_is_not_certain() -> None:
    cw = np.random.default_rng(1).poisson(7.0, size=60)
    found = recommend(cw)
    assert found.interval[0] < 7 < found.interval[1]
    assert found.possible == ("avoid", "test")
    assert not found.certain
    assert any("more target queries would narrow it" in c for c in found.caveats)
    assert recommend([8] * 500).certain


def test_the_bootstrap_interval_matches_the_normal_one_for_many_queries() -> None:
    cw = np.random.default_rng(0).poisson(9.0, size=5000).astype(float)
    low, high = bootstrap_mean(cw)
    half = 1.96 * cw.std() / np.sqrt(cw.size)
    assert (low, high) == pytest.approx((cw.mean() - half, cw.mean() + half), abs=half * 0.1)


def test_expected_differences_stay_within_the_evidence() -> None:
    inside = recommend([9] * 100).expected
    assert {(e.comparison, e.per_doc) for e in inside} == {
        *(("qdoc_minus_one", m) for m in (2, 5, 10, 20)),
        *(("diverse_minus_paraphrase", m) for m in (5, 10, 20)),
    }
    assert all(e.low < e.points < e.high and e.n_datasets == 4 for e in inside)
    outside = recommend([30] * 100)
    assert outside.expected == ()
    assert any("lies outside" in c for c in outside.caveats)


def test_the_gain_grows_with_cw() -> None:
    simple, complex_ = recommend([7] * 100).expected, recommend([11] * 100).expected
    assert all(b.points > a.points for a, b in zip(simple, complex_, strict=True))


def test_in_domain_and_other_languages_are_said() -> None:
    found = recommend([12] * 100, language="fr", domain="in-domain")
    assert "one good query per document" in found.advice
    assert any("other languages" in c for c in found.caveats)
    assert any("in-domain" in c for c in found.caveats)


def test_shares_sum_to_one() -> None:
    assert sum(recommend([3, 7, 10, 11, 20]).shares.values()) == pytest.approx(1.0)
    assert recommend([3, 7, 10, 11, 20]).shares == pytest.approx({"avoid": 0.2, "test": 0.4, "recommend": 0.4})


def test_bad_input_is_one_clear_sentence() -> None:
    with pytest.raises(InputError, match="no target queries"):
        recommend([])
    with pytest.raises(InputError, match="counts"):
        recommend([1, -1])
    with pytest.raises(InputError, match="counts"):
        recommend([float("nan")])
    with pytest.raises(ConfigError, match="ood or in-domain"):
        recommend([1], domain="moon")
