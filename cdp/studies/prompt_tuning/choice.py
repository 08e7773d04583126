"""How far a candidate is from the target, how sure that is, and which candidate is chosen. Pure: numbers in, words out.

The target is a corner of the unit square of (CE, Self-BLEU): both below 0.5 for OOD tasks, both above for in-domain
ones (Algorithm 1, alg:method). A yes or no would hide much: the paper's own paraphrase prompt measures Self-BLEU 0.21
to 0.35, so neither of its prompts is in-domain by its rule. Hence the distance to the corner, 0 inside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LINE = 0.5
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a candidate stands. ``distance`` from the target has a 95% bootstrap interval over documents; ``inside``
    is the share of the resamples in which the candidate meets the target.
    """

    distance: float
    interval: tuple[float, float]
    inside: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What the choice is made from. ``quality`` is the mean of Dist-Sim and Len-Sim, None without human queries;
    ``tokens`` are those of a document's prompt and answer.
    """

    name: str
    standing: Standing
    ce: float
    self_bleu: float
    quality: float | None
    tokens: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The candidate that is chosen, and why, in sentences."""

    name: str
    why: str


def distance(ce: float, self_bleu: float, target: str) -> float:
    """Euclidean distance of a point in the unit square from the target's corner; 0 inside it."""
    return float(_distances(np.array([ce]), np.array([self_bleu]), target)[0])


def _distances(ce: NDArray[np.float64], bleu: NDArray[np.float64], target: str) -> NDArray[np.float64]:
    sign = 1.0 if target == "ood" else -1.0
    return np.hypot(np.maximum(0.0, sign * (ce - LINE)), np.maximum(0.0, sign * (bleu - LINE)))


def standing(ce: NDArray[np.float64], self_bleu: NDArray[np.float64], target: str, *, seed: int = 0) -> Standing | None:
    """The standing of a candidate from its documents' CE and Self-BLEU, both of shape (n_documents,).

    NaN marks documents where the measures are not defined (fewer than two queries); None if they are for none.
    """
    both = ~(np.isnan(ce) | np.isnan(self_bleu))
    ce, self_bleu = ce[both], self_bleu[both]
    if len(ce) == 0:
        return None
    drawn = np.random.default_rng(seed).integers(0, len(ce), size=(RESAMPLES, len(ce)))
    resampled = _distances(ce[drawn].mean(axis=1), self_bleu[drawn].mean(axis=1), target)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Standing(
        distance=distance(float(ce.mean()), float(self_bleu.mean()), target),
        interval=(float(low), float(high)),
        inside=float((resampled == 0).mean()),
    )


def choose(tried: Sequence[Tried], target: str, *, ce: str = "CE") -> Choice:
    """The nearest to the target; among equally near ones the best quality, then the deepest inside, then the cheapest.

    ``tried`` holds at least one candidate; ``ce`` is what CE is called, which may have a stand-in.
    """

    def rank(candidate: Tried) -> tuple[float, float, float, float]:
        inside = (
            min(abs(candidate.ce - LINE), abs(candidate.self_bleu - LINE)) if candidate.standing.distance == 0 else 0.0
        )
        return round(candidate.standing.distance, 6), -(candidate.quality or 0.0), -round(inside, 6), candidate.tokens

    first, *others = sorted(tried, key=rank)
    wanted = "both below 0.5" if target == "ood" else "both above 0.5"
    values = f"{ce} {first.ce:.2f} and Self-BLEU {first.self_bleu:.2f}"
    if first.standing.distance == 0:
        why = f"It meets the target ({values}, {wanted} wanted)."
    else:
        why = f"It comes nearest to the target but does not meet it: {values}, {wanted} wanted; {_off(first)} away."
    if others:
        why += f" {_against(first, others[0], rank(first), rank(others[0]))}"
    return Choice(first.name, why)


def _off(candidate: Tried) -> str:
    return f"{candidate.standing.distance:.2f}"


def _against(first: Tried, second: Tried, a: Sequence[float], b: Sequence[float]) -> str:
    """What decided against the runner-up."""
    decided = next((i for i in range(len(a)) if not math.isclose(a[i], b[i], abs_tol=1e-9)), None)
    if decided == 0:
        apart = first.standing.interval[1] < second.standing.interval[0]
        sure = "" if apart else ", although their intervals overlap: more documents would make it surer"
        return f"The next, {second.name}, is {_off(second)} away{sure}."
    reasons = {
        1: f"is closer to the human queries (mean of Dist-Sim and Len-Sim {first.quality or 0:.2f} against "
        f"{second.quality or 0:.2f})",
        2: "lies further inside it",
        3: f"needs fewer tokens per document ({first.tokens:.0f} against {second.tokens:.0f})",
        None: "was named first; nothing tells them apart",
    }
    return f"{second.name} is as near; {first.name} {reasons[decided]}."
