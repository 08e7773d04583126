"""Does a 95% interval cover 95%? Found out on data with a known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Range = tuple[float, float]
# One simulated data set: its interval (None: no bounds, which covers everything) and the truth behind it.
Draw = Callable[[np.random.Generator], tuple[Range | None, float]]


@dataclass(frozen=True, slots=True)
class Coverage:
    """In which share of ``runs`` the truth lay inside. ``unbounded`` is the share of runs without bounds."""

    share: float
    unbounded: float
    runs: int

    @property
    def error(self) -> float:
        """The standard error of the share."""
        return (self.share * (1 - self.share) / self.runs) ** 0.5


def coverage(draw: Draw, *, runs: int = 10_000, seed: int = 0) -> Coverage:
    """Simulate ``runs`` data sets and count how often their interval holds their truth."""
    random = np.random.default_rng(seed)
    inside = unbounded = 0
    for _ in range(runs):
        interval, truth = draw(random)
        if interval is None:
            unbounded += 1
            inside += 1
        else:
            inside += interval[0] <= truth <= interval[1]
    return Coverage(inside / runs, unbounded / runs, runs)
