"""Algorithm 1 of the paper, its pure part: the distance of a prompt's queries from the target, the choice and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

LINE = 0.5
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Tried:
    """A prompt that was measured. ``distance`` from the target has a 95% bootstrap interval over documents; ``inside``
    is the share of the resamples that meet the target, ``quality`` the mean of Dist-Sim and Len-Sim (None without human
    queries)."""

    name: str
    ce: float
    self_bleu: float
    distance: float
    interval: tuple[float, float]
    inside: float
    quality: float | None = None

    @classmethod
    def of(
        cls, name: str, ce: NDArray[np.float64], self_bleu: NDArray[np.float64], target: str, *,
        quality: float | None = None, seed: int = 0,
    ) -> Self | None:  # fmt: skip
        """From the documents' CE and Self-BLEU, both (n_documents,); NaN marks documents with fewer than two queries.
        None if all are."""
        both = ~(np.isnan(ce) | np.isnan(self_bleu))
        ce, self_bleu = ce[both], self_bleu[both]
        if len(ce) == 0:
            return None
        drawn = np.random.default_rng(seed).integers(0, len(ce), size=(RESAMPLES, len(ce)))
        resampled = distances(ce[drawn].mean(axis=1), self_bleu[drawn].mean(axis=1), target)
        low, high = map(float, np.percentile(resampled, [2.5, 97.5]))
        at = float(ce.mean()), float(self_bleu.mean())
        return cls(name, *at, float(distances(*at, target)), (low, high), float((resampled == 0).mean()), quality)

    @property
    def rank(self) -> tuple[float, float, float]:
        """The order of the choice: the nearest, among equally near ones the best quality, then the deepest inside."""
        depth = 0.0 if self.distance else min(abs(self.ce - LINE), abs(self.self_bleu - LINE))
        return round(self.distance, 6), -round(self.quality or 0.0, 6), -round(depth, 6)


def distances(ce: ArrayLike, self_bleu: ArrayLike, target: str) -> NDArray[np.float64]:
    """Euclidean distances of points in the unit square, each (n,), from the target's corner; 0 inside it."""
    sign = 1.0 if target == "ood" else -1.0
    beyond = (np.maximum(0.0, sign * (np.asarray(values, np.float64) - LINE)) for values in (ce, self_bleu))
    return np.asarray(np.hypot(*beyond))


def choose(tried: Sequence[Tried], target: str, *, ce: str = "CE") -> tuple[str, str]:
    """(name of the chosen prompt, why in sentences) of at least one; ``ce`` is what CE is called: it has a stand-in."""
    first, *others = sorted(tried, key=lambda t: t.rank)
    wanted = "both below 0.5" if target == "ood" else "both above 0.5"
    values = f"{ce} {first.ce:.2f} and Self-BLEU {first.self_bleu:.2f}, {wanted} wanted"
    why = f"It meets the target ({values})."
    if first.distance > 0:
        why = f"It comes nearest to the target but does not meet it: {values}; {first.distance:.2f} away."
    if others:
        why += f" {_against(first, others[0])}"
    return first.name, why


def _against(first: Tried, second: Tried) -> str:
    """What decided against the runner-up."""
    decided = next((i for i, (a, b) in enumerate(zip(first.rank, second.rank, strict=True)) if a != b), None)
    if decided == 0:
        apart = first.interval[1] < second.interval[0]
        sure = "" if apart else ", although their intervals overlap: more documents would make it surer"
        return f"The next, {second.name}, is {second.distance:.2f} away{sure}."
    reasons = {
        1: f"is closer to the human queries ({first.quality or 0:.2f} against {second.quality or 0:.2f})",
        2: "lies further inside it",
        None: "was named first; nothing tells them apart",
    }
    return f"{second.name} is as near; {first.name} {reasons[decided]}."
