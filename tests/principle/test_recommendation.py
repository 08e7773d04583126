"""The recommendation: the published lines, its interval, and what it says about its own limits."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.principle import recommend
from cdp.principle.prior import expected
from cdp.principle.recommend import level_of, weighting_gains


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
    cw = np.random.default_rng(0).poisson(9.0, size=5000)
    low, high = recommend(cw).interval
    half = 1.96 * cw.std() / np.sqrt(cw.size)
    assert (low, high) == pytest.approx((cw.mean() - half, cw.mean() + half), abs=half * 0.1)


def test_expected_differences_stay_within_the_evidence() -> None:
    inside = recommend([9] * 100, task="multi-hop").expected
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
    found = recommend([9] * 100, domain="in-domain")
    assert "one good query per document" in found.advice
    assert found.expected == ()
    assert found.evidence() is None
    assert {s.dataset for s in found.similar} == {"trec-dl-2019", "trec-dl-2020"}
    assert all(max(g[5], g[10], g[20]) < 0 for s in found.similar for g in s.gains.values()), "what the sentence says"
    french = recommend([9] * 100, language="fr", task="multi-hop")
    assert french.advice.startswith(
        "The published rule has no evidence for such a task: the line was fitted on English"
    )
    assert (french.expected, french.prior, french.evidence()) == ((), (), None)
    assert french.missing == french.scope.text


def test_bad_input_is_one_clear_sentence() -> None:
    with pytest.raises(InputError, match="no target queries"):
        recommend([])
    with pytest.raises(InputError, match="counts"):
        recommend([1, -1])
    with pytest.raises(InputError, match="These are texts") as error:
        recommend(["who wrote it", "when"])
    assert "count_content_words" in str(error.value.hint)
    with pytest.raises(InputError, match="These are texts"):
        recommend("who wrote it")
    with pytest.raises(ConfigError, match="no kind of task"):
        recommend([1], task="cooking")
    assert any("another language or script" in caveat for caveat in recommend([0] * 60).caveats)
    with pytest.raises(InputError, match="counts"):
        recommend([float("nan")])
    with pytest.raises(ConfigError, match="ood or in-domain"):
        recommend([1], domain="moon")


def test_weighting_is_advised_by_domain_and_language() -> None:
    assert recommend([9] * 100, domain="in-domain").weighting.startswith("Do not weight by CW")
    assert "on BEIR and BRIGHT averages" in recommend([9] * 100).weighting
    assert "Japanese it changed MIRACL's OOD average by +4.5%" in recommend([9] * 100, language="ja").weighting
    assert recommend([9] * 100, language="fr").weighting == (
        "Do not weight by CW: trained on French it changed MIRACL's OOD average by −58.6% (one training)."
    )
    assert "−58.6 to +10.9%" in recommend([9] * 100, language="de").weighting


def test_the_published_gains_of_weighting() -> None:
    gains = weighting_gains()
    assert gains["Multi-hop"] == pytest.approx(
        {"Contriever": 1.34, "RetroMAE": -0.24, "Qwen3-Embedding-0.6B": -0.59}, abs=0.005
    )
    assert all(value > 0 for group in ("BEIR", "BRIGHT") for value in gains[group].values())
    assert all(value < 0 for value in gains["TREC-DL"].values())


def test_what_each_rule_rests_on_is_said() -> None:
    assert any("NovelHopQA alone" in c for c in recommend([11] * 100, task="multi-hop").caveats)
    assert any("2WikiMultihopQA alone" in c for c in recommend([6.5] * 100, task="multi-hop").caveats)
    assert not any("alone" in c for c in recommend([8] * 100, task="multi-hop").caveats)


def test_one_query_leaves_every_answer_open() -> None:
    found = recommend([3])
    assert found.level == "avoid"
    assert found.possible == ("avoid", "test", "recommend")
    assert not found.certain
    assert any("cannot stand for others" in caveat for caveat in found.caveats)


def test_the_prior_is_the_same_whatever_the_cw_and_kind() -> None:
    inside, elsewhere = recommend([11] * 100, task="multi-hop").evidence(), recommend([34.4] * 100).evidence()
    assert inside is not None
    assert elsewhere is not None
    assert inside.expected == elsewhere.expected == expected()
    assert {2, 5} <= {e.per_doc for e in inside.expected}
    assert "the paper" in inside.basis.name
    few = recommend([11] * 49, task="multi-hop")
    assert few.evidence() is None
    assert few.missing == "49 target queries are too few to tell: give 50 or more."
