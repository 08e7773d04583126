"""Each claim is judged as its plan says: made-up models and differences on both sides of every border."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from cdp.base.statistics import Coefficient, SeedTest
from cdp.studies import read_plan, ready_made
from cdp.studies.gains import PARAPHRASE, SCALING, WEIGHTING
from cdp.studies.pooling import MEAN, Pooled
from reproduction import claims, rules
from reproduction import evidence as ev
from reproduction.evidence import Evidence
from reproduction.outcomes import CONTRADICTED, NOT_RUN, NOT_SUPPORTED, SUPPORTED, UNDECIDED, UNTESTABLE
from tests.reproduction.support import Interval, gain, report

ABOVE, BELOW, ACROSS = (0.1, 1.0), (-1.0, -0.1), (-0.5, 0.5)
TOUCHES_ABOVE, TOUCHES_BELOW = (0.0, 1.0), (-1.0, 0.0)


def pooled(title: str, interval: Interval | None, name: str = MEAN) -> Pooled:
    """A model with one coefficient; none of it where there is no interval."""
    if interval is None:
        return Pooled(title, problem="2 independent groups are too few.", n_datasets=2, n_families=2)
    low, high = interval
    term = Coefficient(name, (low + high) / 2, low, high, 0.04, 0.5, 5.5)
    return Pooled(title, (term,), n=8, n_datasets=8, n_families=7, n_studies=1)


WHOLE = {plan: report() for pool in ev.POOLS.values() for plan in pool.plans}


def finding(letter: str, evidence: Evidence) -> claims.Judged:
    (claim,) = [claim for claim in claims.CLAIMS if claim.name.startswith(f"{letter}.")]
    return claims.judge(claim, evidence)


def verdict(letter: str, evidence: Evidence) -> str:
    return finding(letter, evidence).verdict


def slopes_of(
    first: Interval | None, second: Interval | None, held: Sequence[Interval | None], over_datasets: Interval | None
) -> list[tuple[int, Pooled]]:
    """Models of a slope claim by which of its two comparisons they are of, without a title's first part."""
    plain = [(0, pooled(rules.BY_CW, first, "cw")), (1, pooled(rules.BY_CW, second, "cw"))]
    beside = [(at, pooled(rules.HELD_OVER_QUERIES, one, "cw")) for at, one in enumerate(held)]
    over = [(0, pooled(rules.HELD, over_datasets, "cw"))] if over_datasets is not None else []
    return [*plain, *beside, *over]


SLOPES = [
    ("all above", ABOVE, ABOVE, [ABOVE, ABOVE], None, SUPPORTED),
    ("over datasets as well", ABOVE, ABOVE, [ABOVE, ABOVE], ABOVE, SUPPORTED),
    ("both below", BELOW, BELOW, [ACROSS, ABOVE], None, CONTRADICTED),
    ("one comparison holds 0", ABOVE, ACROSS, [ABOVE, ABOVE], None, UNDECIDED),
    ("one above, one below", ABOVE, BELOW, [ABOVE, ABOVE], None, UNDECIDED),
    ("an interval begins at 0", ABOVE, TOUCHES_ABOVE, [ABOVE, ABOVE], None, UNDECIDED),
    ("an interval ends at 0", BELOW, TOUCHES_BELOW, [ABOVE, ABOVE], None, UNDECIDED),
    ("not beside length and overlap, first", ABOVE, ABOVE, [ACROSS, ABOVE], None, UNDECIDED),
    ("not beside length and overlap, second", ABOVE, ABOVE, [ABOVE, ACROSS], None, UNDECIDED),
    ("begins at 0 beside length and overlap", ABOVE, ABOVE, [ABOVE, TOUCHES_ABOVE], None, UNDECIDED),
    ("no model with length and overlap", ABOVE, ABOVE, [None, None], None, UNDECIDED),
    ("not over datasets", ABOVE, ABOVE, [ABOVE, ABOVE], ACROSS, UNDECIDED),
    ("a slope that cannot be fitted", ABOVE, None, [ABOVE, ABOVE], None, UNTESTABLE),
]


@pytest.mark.parametrize(
    ("first", "second", "held", "over", "expected"), [case[1:] for case in SLOPES], ids=[case[0] for case in SLOPES]
)
def test_a_slope_needs_both_comparisons_and_stays_beside_length_and_overlap(
    first: Interval, second: Interval, held: list[Interval | None], over: Interval | None, expected: str
) -> None:
    made = slopes_of(first, second, held, over)
    of_a = [(("people", rules.DOCUMENTS_OUT), ("people", rules.PAIRS_OUT))[at] + (m,) for at, m in made]
    of_g = [(("contrast", rules.CONTRAST_OUT), ("contrast at 5", rules.DOCUMENTS_OUT))[at] + (m,) for at, m in made]
    for letter, models in (("A", of_a), ("G", of_g)):
        pools: dict[str, list[Pooled]] = {}
        for pool, title, model in models:
            pools.setdefault(pool, []).append(replace(model, title=f"{title}{model.title}"))
        assert verdict(letter, Evidence(WHOLE, pools)) == expected, letter


MEANS = [
    (ABOVE, SUPPORTED),
    (BELOW, CONTRADICTED),
    (ACROSS, UNDECIDED),
    (TOUCHES_ABOVE, UNDECIDED),
    (TOUCHES_BELOW, UNDECIDED),
    (None, UNTESTABLE),
]


@pytest.mark.parametrize(("interval", "expected"), MEANS)
@pytest.mark.parametrize(
    ("letter", "pool", "title"),
    [
        ("D", "people", rules.PAIRS_OUT),
        ("F", "contrast", rules.CONTRAST_OUT),
        ("I", "weighting", rules.weighting_out("cw")),
    ],
)
def test_a_mean_is_decided_by_its_whole_interval(
    letter: str, pool: str, title: str, interval: Interval | None, expected: str
) -> None:
    other = pooled("Another comparison, out of domain", ABOVE)
    assert verdict(letter, Evidence(WHOLE, {pool: [other, pooled(title, interval)]})) == expected
    assert verdict(letter, Evidence(WHOLE, {"template": [pooled(title, interval)]})) == UNTESTABLE


def test_templates_explain_by_form_and_change_no_verdict() -> None:
    def found(own: Interval, control: Interval) -> claims.Judged:
        pools = {"contrast": [pooled(rules.CONTRAST_OUT, own)], "template": [pooled(rules.CONTRAST_OUT, control)]}
        return finding("F", Evidence(WHOLE, pools))

    assert found(ABOVE, ABOVE).verdict == SUPPORTED
    assert "form explains it" in found(ABOVE, ABOVE).finding.why
    assert "form explains it" in found(BELOW, BELOW).finding.why
    for own, control in ((ABOVE, ACROSS), (ABOVE, BELOW), (ACROSS, ABOVE), (BELOW, ABOVE)):
        assert "form explains it" not in found(own, control).finding.why
    assert any(number.startswith("Control") for number in found(ABOVE, ACROSS).finding.numbers)
    without = {plan: r for plan, r in WHOLE.items() if plan != ev.TEMPLATE}
    alone = finding("F", Evidence(without, {"contrast": [pooled(rules.CONTRAST_OUT, ABOVE)]}))
    assert alone.verdict == SUPPORTED
    assert "The control is missing" in alone.finding.why


def simple(points: Mapping[int, Sequence[Interval]], **facts: object) -> Evidence:
    """Claim B's differences: intervals on benchmarks b0, b1 … by Q/Doc."""
    gains = [
        gain(SCALING, f"b{at}", interval, per_doc=per_doc, **facts)
        for per_doc, intervals in points.items()
        for at, interval in enumerate(intervals)
    ]
    return Evidence({ev.DOCUMENTS: report(gains)})


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ({2: [ACROSS], 3: [(-2.0, 0.4)], 5: [BELOW]}, SUPPORTED),
        ({2: [(-2.0, 0.4)], 3: [(-0.4, 2.0)], 5: [BELOW]}, SUPPORTED),  # two of three conditions
        ({2: [(-2.0, 0.4)], 5: [(-0.4, 2.0)]}, NOT_SUPPORTED),  # one of two is no majority
        ({2: [(-1.0, 1.0)], 5: [(-2.0, 0.4)]}, NOT_SUPPORTED),  # a mean of 0 is not below 0
        ({2: [BELOW], 3: [BELOW], 5: [(-9.0, -8.0), ABOVE]}, NOT_SUPPORTED),  # one difference is surely above 0
        ({2: [BELOW], 3: [BELOW], 5: [(-9.0, -8.0), TOUCHES_ABOVE]}, SUPPORTED),
        ({2: [(0.2, 0.9)], 3: [(0.2, 0.9)]}, NOT_SUPPORTED),
    ],
)
def test_simple_tasks_lose_in_most_conditions_and_none_surely_gains(
    points: Mapping[int, Sequence[Interval]], expected: str
) -> None:
    assert verdict("B", simple(points)) == expected


def test_claim_b_looks_at_simple_tasks_out_of_domain_alone() -> None:
    loses = {2: [BELOW], 5: [BELOW]}
    assert verdict("B", simple(loses)) == SUPPORTED
    assert verdict("B", simple(loses, cw=6.99)) == SUPPORTED
    assert verdict("B", simple(loses, cw=7.0)) == UNTESTABLE
    in_domain = Evidence({ev.DOCUMENTS: report(simple(loses).reports[ev.DOCUMENTS].gains, in_domain=["b0"])})
    assert verdict("B", in_domain) == UNTESTABLE
    assert verdict("B", simple(loses, weighting="cw")) == UNTESTABLE
    own = simple(loses).reports[ev.DOCUMENTS]
    sourced = replace(own, benchmarks=tuple(replace(b, in_domain_of=("human",)) for b in own.benchmarks))
    assert verdict("B", Evidence({ev.DOCUMENTS: sourced})) == UNTESTABLE
    # The overall mean gain does not matter to it.
    everything = Evidence(WHOLE | simple(loses).reports, {"people": [pooled(rules.DOCUMENTS_OUT, ABOVE)]})
    assert verdict("B", everything) == SUPPORTED


@pytest.mark.parametrize(
    ("one", "five", "expected"),
    [
        ((-0.4, 0.6), (0.5, 1.5), SUPPORTED),
        ((-0.5, 1.0), (0.5, 1.5), SUPPORTED),  # one and a half times as wide
        ((-0.51, 1.0), (0.5, 1.5), NOT_SUPPORTED),  # wider than that
        (ABOVE, (0.0, 1.0), NOT_SUPPORTED),
        (BELOW, (0.0, 1.0), NOT_SUPPORTED),
        ((0.0, 0.5), (0.0, 1.0), NOT_SUPPORTED),  # 0 at its end is not within it
        (None, ABOVE, UNTESTABLE),
        (ABOVE, None, UNTESTABLE),
    ],
)
def test_no_difference_at_one_needs_an_interval_that_is_narrow_enough(
    one: Interval | None, five: Interval | None, expected: str
) -> None:
    pools = {"contrast at 1": [pooled(rules.CONTRAST_OUT, one)], "contrast at 5": [pooled(rules.CONTRAST_OUT, five)]}
    assert verdict("H", Evidence(WHOLE, pools)) == expected


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0.0, 1.0), (1.1, 2.0), (2.1, 3.0)], SUPPORTED),
        ([(2.1, 3.0), (0.0, 1.0), (1.1, 2.0)], SUPPORTED),
        ([(0.0, 1.0), (1.0, 2.0), (2.1, 3.0)], NOT_SUPPORTED),  # they touch
        ([(0.0, 1.0), (0.5, 2.0), (2.1, 3.0)], NOT_SUPPORTED),
        ([(0.0, 1.0), (0.0, 1.0), (0.0, 1.0)], NOT_SUPPORTED),
        ([(0.0, 1.0), (1.1, 2.0), None], UNTESTABLE),
    ],
)
def test_the_cap_matters_where_no_two_intervals_overlap(intervals: list[Interval | None], expected: str) -> None:
    names = ("cw@4", "cw@8", "cw")
    models = [pooled(rules.weighting_out(name), i) for name, i in zip(names, intervals, strict=True)]
    assert verdict("κ", Evidence(WHOLE, {"weighting": models})) == expected


@pytest.mark.parametrize(
    ("loss", "half", "expected"),
    [
        (BELOW, ABOVE, SUPPORTED),
        (BELOW, TOUCHES_ABOVE, NOT_SUPPORTED),
        (BELOW, ACROSS, NOT_SUPPORTED),
        (ACROSS, ABOVE, NOT_SUPPORTED),
        (ABOVE, ABOVE, NOT_SUPPORTED),
        (TOUCHES_BELOW, ABOVE, NOT_SUPPORTED),
        (None, None, UNTESTABLE),
    ],
)
def test_question_words_explain_where_half_of_a_sure_loss_surely_comes_back(
    loss: Interval | None, half: Interval | None, expected: str
) -> None:
    gains = [gain(WEIGHTING, "zh", BELOW, weighting="cw", source="cmrc")]
    gains += [] if loss is None else [gain(WEIGHTING, "fr", loss, weighting="cw", source="piaf")]
    own = report(gains, languages={"fr": "fr", "zh": "zh"})
    back = None if half is None else SeedTest(sum(half) / 2, *half, 0.04, 5.0)
    judged = finding("Question words", Evidence({ev.FRENCH: own}, half=back))
    assert judged.verdict == expected
    if expected != UNTESTABLE:
        assert any("the same sign as published for MIRACL (−9.30%)" in number for number in judged.finding.numbers)


def test_a_loss_on_which_the_seeds_disagree_is_no_sure_loss() -> None:
    torn = gain(WEIGHTING, "fr", BELOW, weighting="cw", source="piaf", seeds_agree=False)
    evidence = Evidence({ev.FRENCH: report([torn], languages={"fr": "fr"})}, half=SeedTest(1, 0.5, 1.5, 0, 5))
    assert verdict("Question words", evidence) == NOT_SUPPORTED


@pytest.mark.parametrize("letter", ["C", "E", "J", "K"])
def test_what_a_plan_calls_not_testable_stays_so_whatever_was_measured(letter: str) -> None:
    models = [pooled(rules.weighting_out(name), ABOVE) for name in ("cw", "ri", "ri-cw")]
    full = Evidence({**WHOLE, ev.LANGUAGES: report([gain(SCALING, "ja", ABOVE)], languages={"ja": "ja"})},
                    dict.fromkeys(ev.POOLS, models))  # fmt: skip
    for evidence in (Evidence(), full):
        assert verdict(letter, evidence) == UNTESTABLE
    if letter in "EJ":
        assert "+0.10 to +1.00" in " ".join(finding(letter, full).finding.numbers)


def test_where_the_transformer_has_another_sign_it_is_named() -> None:
    static = report([gain(SCALING, name, ABOVE) for name in ("x", "y")])
    own = [gain(SCALING, "x", BELOW, retriever="minilm"), gain(SCALING, "y", ABOVE, retriever="minilm")]
    own.append(gain(SCALING, "y", BELOW, retriever="minilm", held="equal pairs"))
    evidence = Evidence({**WHOLE, ev.DOCUMENTS: static, ev.PAIRS: static, ev.MINILM: report(own)})
    numbers = finding("K", evidence).finding.numbers
    assert [n for n in numbers if "another sign" in n] == [
        "minilm, equal documents: another sign than static-minilm on 1 of 2 judged sets",
        "minilm, equal pairs: another sign than static-minilm on 1 of 1 judged sets",
    ]
    assert any(n.startswith("minilm, equal documents: x −0.55") for n in numbers)
    assert any(n.startswith("minilm, equal pairs: y −0.55") for n in numbers)


@pytest.mark.parametrize("claim", [c for c in claims.CLAIMS if c.needs], ids=lambda claim: claim.name[:3])
def test_nothing_is_judged_while_a_study_is_missing_or_not_whole(claim: claims.Claim) -> None:
    there = {**WHOLE, ev.FRENCH: report()}
    everything = {name: [pooled(title, ABOVE) for title in ALL_TITLES] for name in ev.POOLS}
    for plan in claim.needs:
        gone = {name: r for name, r in there.items() if name != plan}
        judged = claims.judge(claim, Evidence(gone, everything))
        assert (judged.verdict, f"{plan} was not run" in judged.finding.why) == (NOT_RUN, True)
        for broken in (replace(there[plan], finished=3), replace(there[plan], failures=(("a training", "no memory"),))):
            judged = claims.judge(claim, Evidence({**there, plan: broken}, everything))
            assert (judged.verdict, plan in judged.finding.why) == (NOT_RUN, True)
    assert claims.judge(claim, Evidence(there, everything)).verdict != NOT_RUN


ALL_TITLES = (rules.DOCUMENTS_OUT, rules.PAIRS_OUT, rules.CONTRAST_OUT, rules.weighting_out("cw"))


def test_the_spread_over_seeds_stands_beside_a_verdict() -> None:
    gains = [gain(PARAPHRASE, f"b{at}", ABOVE, seed_sd=0.1 * at or None, source="diverse") for at in range(4)]
    reports = {**WHOLE, ev.RECORDED: report(gains)}
    judged = finding("F", Evidence(reports, {"contrast": [pooled(rules.CONTRAST_OUT, ABOVE)]}))
    assert "median 0.20 points, largest 0.30 (3 differences)" in judged.spread


def test_every_criterion_of_a_plan_is_quoted_by_a_claim() -> None:
    quoted: dict[str, str] = {}
    for claim in claims.CLAIMS:
        for plan, text in claims.judge(claim, Evidence()).criteria:
            whole = " ".join(read_plan(plan).criteria.split())
            assert text
            assert text in whole
            quoted[plan] = f"{quoted.get(plan, '')} {text}"
    for plan in ready_made():
        whole = " ".join(read_plan(plan.name).criteria.split())
        rest = [s for s in re.split(r"(?<=\.) (?=[A-Zκ])", whole) if s and s not in quoted.get(plan.name, "")]
        assert not rest, plan.name


def test_the_criteria_are_those_that_were_committed_before_the_runs() -> None:
    """They are frozen: a plan with another criterion is another plan, under another name."""
    texts = {p.name: " ".join(read_plan(p.name).criteria.split()) for p in ready_made()}
    lines = "\n".join(f"{name}: {text}" for name, text in sorted(texts.items()) if text)
    assert hashlib.sha256(lines.encode()).hexdigest() == FROZEN


FROZEN = "e81adbcac8e7477527f932080116d18470651b09b19cca7af4a6f031a0468fd4"


@pytest.mark.parametrize("letter", ["A", "D", "F", "G", "H", "I", "κ"])
def test_the_sentence_beside_a_verdict_has_the_intervals_it_rests_on(letter: str) -> None:
    names = [*ALL_TITLES, rules.weighting_out("cw@4"), rules.weighting_out("cw@8")]
    models = [pooled(name, ABOVE) for name in names] + [pooled(f"{name}{rules.BY_CW}", ABOVE, "cw") for name in names]
    judged = finding(letter, Evidence(WHOLE, dict.fromkeys(ev.POOLS, models)))
    assert "+0.55 (+0.10 to +1.00)" in judged.finding.why
