"""The recommendation: the published lines, its interval, and what it says about its own limits."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.base.errors import ConfigError, InputError
from cdp.principle import recommend
from cdp.principle.recommend import expected, level_of


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


@pytest.mark.slow
def test_the_bootstrap_interval_matches_the_normal_one_for_many_queries() -> None:
    cw = np.random.default_rng(0).poisson(9.0, size=5000)
    low, high = recommend(cw).interval
    half = 1.96 * cw.std() / np.sqrt(cw.size)
    assert (low, high) == pytest.approx((cw.mean() - half, cw.mean() + half), abs=half * 0.1)


def test_in_domain_and_other_languages_are_said() -> None:
    found = recommend([9] * 100, domain="in-domain")
    assert "in the paper one query per document served such tasks best" in found.advice
    assert "found the opposite" in found.advice
    assert found.evidence() is None
    french = recommend([9] * 100, language="fr", task="multi-hop")
    assert french.advice.startswith(
        "The published rule has no evidence for such a task: the line was fitted on English"
    )
    assert (french.prior, french.evidence()) == ((), None)
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
    with pytest.raises(InputError, match="counts"):
        recommend([float("nan")])
    with pytest.raises(ConfigError, match="ood or in-domain"):
        recommend([1], domain="moon")


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
