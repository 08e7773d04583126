"""The distance to the target and the choice: pure functions, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cdp.synthesis.candidates import Tried, choose, distances


@pytest.mark.parametrize(
    ("ce", "bleu", "target", "expected"),
    [
        (0.2, 0.1, "ood", 0.0),
        (0.5, 0.5, "ood", 0.0),
        (0.8, 0.1, "ood", 0.3),
        (0.8, 0.9, "ood", 0.5),
        (0.8, 0.9, "in-domain", 0.0),
        (0.8, 0.3, "in-domain", 0.2),
        (0.2, 0.1, "in-domain", 0.5),
    ],
)
def test_distance_is_that_to_the_corner(ce: float, bleu: float, target: str, expected: float) -> None:
    assert float(distances(ce, bleu, target)) == pytest.approx(expected)


def test_a_standing_has_an_interval_and_leaves_undefined_documents_out() -> None:
    ce = np.array([0.9, 0.7, 0.8, np.nan, 0.6])
    bleu = np.array([0.3, 0.2, 0.4, 0.9, np.nan])
    found = Tried.of("a", ce, bleu, "ood")
    assert found is not None
    assert found.distance == pytest.approx(0.3)
    assert found.interval[0] < 0.3 < found.interval[1]
    assert found.inside == 0.0
    assert Tried.of("a", ce, bleu, "ood") == found
    assert Tried.of("a", np.array([np.nan]), np.array([0.2]), "ood") is None


def test_near_the_line_some_resamples_meet_the_target_and_some_do_not() -> None:
    found = Tried.of("a", np.array([0.2, 0.9, 0.3, 0.7, 0.4, 0.5]), np.full(6, 0.1), "ood")
    assert found is not None
    assert found.distance == 0.0
    assert 0.3 < found.inside < 0.95


def tried(
    name: str, ce: float, bleu: float, *, target: str = "ood", quality: float | None = None, width: float = 0.01
) -> Tried:
    far = float(distances(ce, bleu, target))
    return Tried(name, ce, bleu, far, (max(0.0, far - width), far + width), float(far == 0), quality)


def test_the_nearest_is_chosen_and_the_next_named() -> None:
    found = choose([tried("paraphrase", 0.8, 0.3), tried("diverse", 0.1, 0.1)], "ood")
    assert found[0] == "diverse"
    assert "meets the target" in found[1]
    assert "paraphrase, is 0.30 away." in found[1]


def test_in_domain_the_papers_rule_selects_neither_and_says_so() -> None:
    candidates = [tried("diverse", 0.04, 0.15, target="in-domain"), tried("paraphrase", 0.55, 0.21, target="in-domain")]
    found = choose(candidates, "in-domain")
    assert found[0] == "paraphrase"
    assert "does not meet it" in found[1]
    assert "0.29 away" in found[1]


def test_overlapping_intervals_are_said() -> None:
    found = choose([tried("a", 0.6, 0.1, width=0.1), tried("b", 0.65, 0.1, width=0.1)], "ood")
    assert found[0] == "a"
    assert "intervals overlap" in found[1]


def test_among_those_that_meet_it_quality_then_depth_decide() -> None:
    better = choose([tried("a", 0.1, 0.1, quality=0.5), tried("b", 0.3, 0.3, quality=0.7)], "ood")
    assert (better[0], "closer to the human queries" in better[1]) == ("b", True)
    deeper = choose([tried("a", 0.4, 0.1), tried("b", 0.2, 0.1)], "ood")
    assert (deeper[0], "further inside" in deeper[1]) == ("b", True)
    equal = choose([tried("a", 0.2, 0.1), tried("b", 0.2, 0.1)], "ood")
    assert (equal[0], "nothing tells them apart" in equal[1]) == ("a", True)
    assert "next" not in choose([tried("a", 0.2, 0.1)], "ood")[1]


def test_a_stand_in_is_named_as_one() -> None:
    assert "Paraphrase ratio 0.20" in choose([tried("a", 0.2, 0.1)], "ood", ce="Paraphrase ratio")[1]
