"""The recommendation: the published lines, its interval, and what it says about its own limits."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.errors import ConfigError, InputError
from cdp.principle import recommend
from cdp.principle.advice import narrow_width, weighting_gains
from cdp.principle.recommend import level_of


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
    with pytest.raises(ConfigError, match="budget must be at least 1"):
        recommend([1], budget=0)


@pytest.mark.parametrize(("cw", "per_doc"), [(5, 1), (8, 2), (9, 2), (11, 5), (11.6, 10), (30, 10)])
def test_queries_per_document_follow_the_published_gains(cw: float, per_doc: int) -> None:
    found = recommend([cw] * 100)
    assert found.suggestion.per_doc == per_doc
    assert found.suggestion.documents is None
    gains = {1: 0.0, **{e.per_doc: e.points for e in found.expected if e.comparison == "qdoc_minus_one"}}
    if found.expected:
        assert gains[per_doc] > max(gains.values()) - 1


def test_a_budget_is_split_between_documents_and_queries() -> None:
    found = recommend([11] * 100, budget=8000)
    assert (found.suggestion.per_doc, found.suggestion.documents) == (10, 800)
    assert {s.per_doc: s.documents for s in found.splits} == {1: 8000, 2: 4000, 5: 1600, 10: 800, 20: 400}
    assert {s.per_doc: s.llm_cost for s in found.splits} == pytest.approx({1: 1, 2: 0.5, 5: 0.2, 10: 0.1, 20: 0.05})
    reference = found.splits[0]
    assert (reference.points, reference.low, reference.high) == (0, 0, 0)
    simple = recommend([5] * 100, budget=8000).suggestion
    assert (simple.per_doc, simple.documents) == (1, 8000)


def test_the_study_that_would_settle_it() -> None:
    assert recommend([5] * 100).plan == ""
    assert recommend([8] * 100).plan == "qdoc-scaling"
    assert recommend([12] * 100).plan == "qdoc-scaling"
    assert recommend([8] * 100, budget=1000).plan == "document-quantity"
    assert recommend([8] * 100, domain="in-domain").plan == ""


def test_a_small_corpus_limits_what_a_budget_buys() -> None:
    found = recommend([5] * 100, budget=5000, n_documents=1000).suggestion
    assert (found.per_doc, found.documents) == (1, 1000)
    assert "leaves 4,000 of 5,000 queries unspent" in found.text


def test_weighting_is_warned_of_where_content_words_hardly_differ() -> None:
    assert narrow_width() == 8  # Chinese: 1 to 9
    narrow = recommend([2, 3, 4, 5, 6] * 40).weighting
    assert narrow.narrow
    assert narrow.use == "no"
    assert "MIRACL" in narrow.text
    wide = recommend(list(range(1, 30)) * 10).weighting
    assert not wide.narrow
    assert wide.use == "compare"
    assert recommend([9] * 100, domain="in-domain").weighting.use == "no"


def test_the_published_gains_of_weighting() -> None:
    gains = weighting_gains()
    assert gains["Multi-hop"] == pytest.approx(
        {"Contriever": 1.34, "RetroMAE": -0.24, "Qwen3-Embedding-0.6B": -0.59}, abs=0.005
    )
    assert all(value > 0 for group in ("BEIR", "BRIGHT") for value in gains[group].values())
    assert all(value < 0 for value in gains["TREC-DL"].values())


def test_the_summary_says_what_to_do_and_how_sure_it_is() -> None:
    clear = recommend([12] * 300).summary
    assert "is clear of the published lines at 7 and 10" in clear
    assert "four published datasets" in clear
    cw = np.random.default_rng(1).poisson(7.0, size=60)
    assert "the answer could also be avoid" in recommend(cw).summary or "also be test" in recommend(cw).summary


def test_one_query_leaves_every_answer_open() -> None:
    found = recommend([3])
    assert found.level == "avoid"
    assert found.possible == ("avoid", "test", "recommend")
    assert not found.certain
    assert "One query cannot tell" in found.summary
    assert any("cannot stand for others" in caveat for caveat in found.caveats)
