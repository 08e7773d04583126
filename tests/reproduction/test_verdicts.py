"""Exactly four verdicts, by the criterion as it was before the run; and what is left of the published effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import scipy.stats

from cdp.base.statistics import Coefficient
from reproduction import criteria, verdicts
from reproduction.criteria import Claim, Published
from reproduction.figures import Figure
from reproduction.kept import Kept
from reproduction.verdicts import CANNOT_TELL, CONTRADICTED, EQUIVALENT, SUPPORTED
from tests.reproduction.support import criterion, study

pytestmark = pytest.mark.slow

POSITIVE, NEGATIVE, AROUND = (0.2, 1.8), (-1.8, -0.2), (-0.6, 0.9)


@pytest.mark.parametrize(
    ("direction", "above", "below", "around"),
    [
        ("gain", SUPPORTED, CONTRADICTED, CANNOT_TELL),
        ("loss", CONTRADICTED, SUPPORTED, CANNOT_TELL),
        ("difference", SUPPORTED, SUPPORTED, CANNOT_TELL),
        ("no difference", CONTRADICTED, CONTRADICTED, CANNOT_TELL),
        ("no gain", CONTRADICTED, SUPPORTED, CANNOT_TELL),
    ],
)
def test_the_whole_interval_decides_by_its_sign(direction: str, above: str, below: str, around: str) -> None:
    for whole, expected in ((POSITIVE, above), (NEGATIVE, below), (AROUND, around)):
        ninety = (whole[0] + 0.1, whole[1] - 0.1)
        assert verdicts.decide(direction, whole, ninety, 0.5) == expected
        assert verdicts.decide(direction, whole, ninety, 2.0) == EQUIVALENT, "too small to matter, whatever its sign"
    assert verdicts.decide("no gain", (-2.0, 0.6), (-1.8, 0.4), 0.5) == SUPPORTED
    at_margin = verdicts.decide(direction, (-0.6, 0.6), (-0.5, 0.5), 0.5)
    assert at_margin == CANNOT_TELL, "the margin itself is outside"


def test_inside_the_margin_means_that_both_one_sided_tests_reject() -> None:
    for value, error, degrees in ((0.1, 0.2, 6.0), (0.1, 0.21, 6.0), (0.1, 0.2, 4.5), (-0.3, 0.1, 9.0)):
        low, high = scipy.stats.t.interval(0.95, degrees, value, error)
        found = Figure(Coefficient("mean gain", value, low, high, 0.5, error, degrees))
        larger = [scipy.stats.t.sf((0.5 - sign * value) / error, degrees) for sign in (1, -1)]
        decided = verdicts.decide("gain", (low, high), found.ninety, 0.5)
        assert (decided == EQUIVALENT) == (max(larger) < 0.05)


@pytest.mark.parametrize(
    ("several", "expected"),
    [
        ([SUPPORTED, SUPPORTED], SUPPORTED),
        ([SUPPORTED, CONTRADICTED], CONTRADICTED),
        ([SUPPORTED, CANNOT_TELL], CANNOT_TELL),
        ([SUPPORTED, EQUIVALENT], CANNOT_TELL),
        ([EQUIVALENT, EQUIVALENT], EQUIVALENT),
    ],
)
def test_a_claim_must_meet_all_of_its_criteria(several: list[str], expected: str) -> None:
    assert verdicts.combined(several) == expected


@pytest.mark.parametrize(
    ("interval", "effect", "says"),
    [
        ((-0.4, 0.5), 2.0, "Excludes the published +2.00: at most 25% of it is left."),
        ((-0.4, -0.1), 2.0, "Excludes the published +2.00, and every effect of its sign."),
        ((-0.4, 2.5), 2.0, "Excludes no part of the published +2.00."),
        ((0.5, 2.5), 2.0, "Holds the published +2.00; excludes what is below 25% of it."),
        ((2.5, 3.5), 2.0, "Lies beyond the published +2.00."),
        ((-0.5, 0.4), -2.0, "Excludes the published −2.00: at most 25% of it is left."),
        ((0.2, 0.6), -0.02, "Excludes the published −0.02, itself inside the margin."),
        ((-0.2, 0.6), -0.02, "Holds the published −0.02, itself inside the margin."),
    ],
)
def test_what_is_left_of_the_published_effect(interval: tuple[float, float], effect: float, says: str) -> None:
    low, high = interval
    c = Coefficient("cw", (low + high) / 2, low, high, 0.5, 0.1, 5)
    assert verdicts.excluded(c, effect, 0.25) == says


def test_published_effects_are_computed_from_the_published_results() -> None:
    one = Published(
        ("tab:single_query_ablation",), {"method": "Ours-diverse", "queries_per_doc": 1}, {"method": "Ours-paraphrase"}
    )
    assert verdicts.published_effect(one, "mean") == pytest.approx(-0.02, abs=0.005)
    scaling = Published(("tab:multihop_scaling",), {"queries_per_doc": [2, 5, 10, 20]}, {"queries_per_doc": 1})
    assert verdicts.published_effect(scaling, "slope") == pytest.approx(3.075, abs=0.001)
    assert all(verdicts.published_effect(c.published, "mean") for c in criteria.read() if c.published)


def claim(**changes: object) -> Claim:
    return replace(Claim("X", "Different beats alike.", (criterion(),), settles="More."), **changes)  # type: ignore[arg-type]


def measured(folder: Path, points: float, of: Claim, **settings: object) -> Kept:
    def truth(name: str, source: str, per_doc: int, weighting: str) -> float:
        return points * source.startswith("diverse")

    return study(folder, truth, frozen={"criteria": {of.id: of.digest}}, noise=1.0, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def two_points(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A study that found two points for the claim. Its digest is that of the criterion, whatever its controls."""
    return measured(tmp_path_factory.mktemp("kept"), 2.0, claim())


@pytest.mark.parametrize(("points", "verdict"), [(2.0, SUPPORTED), (-2.0, CONTRADICTED), (0.05, EQUIVALENT)])
def test_a_claim_is_judged_by_what_was_measured(two_points: Kept, tmp_path: Path, points: float, verdict: str) -> None:
    asked = claim(controls=(criterion(name="in-domain", domain="in", judged=("set7",)),))
    found = two_points if points == 2.0 else measured(tmp_path, points, asked)
    judged = verdicts.judge(asked, {"recorded-contrast": found})
    assert judged.verdict == verdict
    assert "90% interval" in judged.why
    (control,) = judged.controls
    assert control.told.startswith("no figure: 1 judged family of the 3")


def test_a_criterion_that_is_younger_than_its_run_decides_nothing(two_points: Kept) -> None:
    studied = {"recorded-contrast": two_points}
    assert verdicts.judge(claim(sentence="In other words."), studied).verdict == SUPPORTED
    later = verdicts.judge(claim(criteria=(criterion(margin=0.1),)), studied)
    assert (later.verdict, later.why) == (
        CANNOT_TELL,
        "recorded-contrast began before the criterion was as it is now.",
    )
    assert later.criteria[0].figure.coefficient is not None, "what was measured is shown all the same"


def test_what_is_missing_is_told_and_nothing_is_judged_by_the_rest(tmp_path: Path) -> None:
    both = claim(criteria=(criterion(studies=("recorded-contrast", "template-contrast")),))
    part = measured(tmp_path, 2.0, both, drop=lambda condition: condition["seed"] == 2)
    judged = verdicts.judge(both, {"recorded-contrast": part})
    assert judged.verdict == CANNOT_TELL
    assert judged.why == "recorded-contrast has 48 of 72 trainings; template-contrast was not run."
    never = verdicts.judge(claim(criteria=(), untestable="The queries are not public."), {})
    assert (never.verdict, never.why) == (CANNOT_TELL, "The queries are not public.")


def test_the_advice_is_that_of_the_verdict(two_points: Kept) -> None:
    asked = claim(
        question="which queries",
        then={"supported": "Write different ones ({figure}; in-domain {X in-domain}; {Y})."},
        controls=(criterion(name="in-domain", domain="in"),),
    )
    other = claim(id="Y", criteria=(), untestable="Not public.")
    judged = [verdicts.judge(c, {"recorded-contrast": two_points}) for c in (asked, other)]
    own = judged[0].criteria[0].told
    assert own.startswith("+")
    assert verdicts.advice(judged, "which queries") == (
        f"Write different ones ({own}; in-domain no figure: 1 judged family of the 3 that it needs; Not public)."
    )
    assert verdicts.advice(judged, "how many") == ""
    assert verdicts.advice([verdicts.judge(asked, {})], "which queries") == ""


def test_advice_follows_what_survives_the_correction_for_all_claims(two_points: Kept) -> None:
    """One claim among many that its own level alone supports gives no imperative."""
    then = {"supported": "Write different ones.", "cannot tell": "Which are better is open."}
    first = verdicts.judge(claim(question="which queries", then=then), {"recorded-contrast": two_points})
    (decided,) = first.criteria
    assert decided.figure.coefficient is not None

    def with_p(p: float, verdict: str = "supported") -> verdicts.Judged:
        figure = replace(decided.figure, coefficient=replace(decided.figure.coefficient, p=p))
        return replace(first, verdict=verdict, criteria=(replace(decided, figure=figure),))

    asked = replace(first.claim, question="how many")
    others = [replace(with_p(0.5, "cannot tell"), claim=asked) for _ in range(15)]
    assert verdicts.advice([with_p(0.03)], "which queries") == "Write different ones."
    assert verdicts.advice([with_p(0.03), *others], "which queries") == "Which are better is open."
    assert verdicts.advice([with_p(0.001), *others], "which queries") == "Write different ones."


def test_every_sentence_of_the_shipped_claims_names_figures_that_there_are() -> None:
    judged = [verdicts.judge(c, {}) for c in criteria.read()]
    for verdict in verdicts.VERDICTS:
        said = [replace(j, verdict=verdict) for j in judged]
        assert any(verdicts.advice(said, question) for question in criteria.QUESTIONS)
